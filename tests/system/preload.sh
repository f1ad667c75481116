#!/bin/sh
# A program linked with another BLAS computes repops's bits under LD_PRELOAD; functions that librepops_blas lacks come from that
# one.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/preload
rm -rf "$work"
mkdir -p "$work"
cc=${CC:-cc}
preload=$(cd "$build/lib" && pwd)/librepops_blas.so.1
want=$(cat tests/golden/blas.txt)
count=0 alone=

for name in blas openblas blis; do
    $cc -std=c11 -O2 -DWITH_DOUBLE tests/link/cblas_user.c -l$name -o "$work/$name" 2> "$work/log.txt" || continue
    alone="$alone $name $("$work/$name")"
    for threads in 1 2 3; do
        got=$(LD_PRELOAD=$preload REPOPS_THREADS=$threads "$work/$name")
        [ "$got" = "$want" ] || { echo "$name, $threads threads: $got, expected $want"; exit 1; }
        count=$((count + 1))
    done
done
[ $count -gt 0 ] || { echo "no BLAS to link with (libblas-dev)"; exit 77; }
echo "$count runs, one hash: $want; without LD_PRELOAD:$alone"
