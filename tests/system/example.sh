#!/bin/sh
# The example trainer on every backend, with 1 to 3 threads, by compilers with all their liberties: one hash of weights.
set -eu
build=$1
work=$build/tests/example
rm -rf "$work"
mkdir -p "$work"
want=$(cat tests/golden/example.txt)
count=0

check() {
    "$@" > "$work/out.txt" 2>&1 || { cat "$work/out.txt"; echo "fails: $*"; exit 1; }
    got=$(sed -n 's/^weights //p' "$work/out.txt")
    [ "$got" = "$want" ] || { echo "other weights: $*: $got, expected $want"; exit 1; }
    count=$((count + 1))
}

[ "$(wc -l < examples/trainer.c)" -lt 200 ] || { echo "the example is no longer short"; exit 1; }
threads_tried='1 2 3'
[ -z "${SANITIZED:-}" ] || threads_tried=2
for backend in $("$build/bin/repops-conform" --list); do
    for threads in $threads_tried; do
        check env REPOPS_CPU=$backend "$build/examples/trainer" $threads
    done
done
awk '/^step/ { last = $4 } /^step 200 / { first = $4 } END { exit !(last < 0.5 && last < first) }' "$work/out.txt" ||
    { echo "it does not learn"; exit 1; }
[ -n "${SANITIZED:-}" ] || for compiler in gcc clang; do
    command -v $compiler > /dev/null || continue
    for opt in -O0 "-O3 -march=native" -Ofast; do
        # shellcheck disable=SC2086
        $compiler -std=gnu11 $opt -Irepops/include examples/trainer.c "$build/lib/librepops.a" -pthread -o "$work/other"
        check "$work/other" 2
    done
done
echo "$count runs, one hash: $want"
