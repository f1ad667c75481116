#!/bin/sh
# A program written for BLAS, relinked with librepops_blas: one hash on every backend, with 1 to 3 threads.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$build/tests/blas
rm -rf "$work"
mkdir -p "$work"
cc=${CC:-cc}
lib=$(cd "$build/lib" && pwd)
want=$(cat tests/golden/blas.txt)
count=0

$cc -std=c11 -O2 tests/link/cblas_user.c "-L$lib" -lrepops_blas "-Wl,-rpath,$lib" -o "$work/user"
for backend in $("$build/bin/repops-conform" --list); do
    for threads in 1 2 3; do
        got=$(REPOPS_CPU=$backend REPOPS_THREADS=$threads "$work/user")
        [ "$got" = "$want" ] || { echo "$backend, $threads threads: $got, expected $want"; exit 1; }
        count=$((count + 1))
    done
done

$cc -std=c11 -O2 -D_GNU_SOURCE tests/link/blas_loader.c -ldl -o "$work/loader"
REPOPS_THREADS=3 "$work/loader" "$lib/librepops_blas.so.1"

printf '%s\n' cblas_sdot cblas_sgemm cblas_sgemv cblas_ssyrk sdot_ sgemm_ sgemv_ ssyrk_ > "$work/want"
nm -D --defined-only "$lib/librepops_blas.so.1" | sed 's/.* //' | sort > "$work/got"
diff "$work/want" "$work/got" || { echo "exports other names"; exit 1; }
echo "$count runs, one hash: $want"
