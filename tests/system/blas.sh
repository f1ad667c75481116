#!/bin/sh
# A program written for BLAS, linked again with librepops_blas, gives one hash on every backend with 1 to 3 threads; its error
# handlers are called for wrong arguments; calls are counted.
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

# The numbers are those of netlib's BLAS, whose handlers reverse the arguments of row-major products.
$cc -std=c11 -O2 tests/link/blas_errors.c "-L$lib" -lrepops_blas "-Wl,-rpath,$lib" -o "$work/errors"
cat > "$work/errors.want" << 'TEXT'
cblas_xerbla cblas_sgemm 2
cblas_xerbla cblas_sgemm 5
cblas_xerbla cblas_sgemm 4
cblas_xerbla cblas_sgemm 11
cblas_xerbla cblas_sgemm 9
cblas_xerbla cblas_sgemm 14
cblas_xerbla cblas_sgemv 4
cblas_xerbla cblas_sgemv 12
cblas_xerbla cblas_ssyrk 3
cblas_xerbla cblas_ssyrk 8
cblas_xerbla cblas_sgemm 2
cblas_xerbla cblas_sgemm 4
cblas_xerbla cblas_sgemm 5
cblas_xerbla cblas_sgemm 9
cblas_xerbla cblas_sgemm 11
cblas_xerbla cblas_sgemm 14
cblas_xerbla cblas_sgemv 3
cblas_xerbla cblas_sgemv 12
cblas_xerbla cblas_ssyrk 3
cblas_xerbla cblas_ssyrk 8
cblas_xerbla cblas_sgemm 1
xerbla <SGEMM > 1
xerbla <SGEMM > 5
xerbla <SGEMM > 8
xerbla <SGEMV > 2
xerbla <SGEMV > 8
xerbla <SSYRK > 1
xerbla <SSYRK > 10
9
TEXT
"$work/errors" > "$work/errors.txt" 2> "$work/errors.err"
diff "$work/errors.want" "$work/errors.txt"
[ ! -s "$work/errors.err" ] || { echo "a program with handlers is told in another way, too:"; cat "$work/errors.err"; exit 1; }
$cc -std=c11 -O2 -DWITHOUT_HANDLERS tests/link/blas_errors.c "-L$lib" -lrepops_blas "-Wl,-rpath,$lib" -o "$work/errors"
[ "$("$work/errors" 2> "$work/errors.err")" = 9 ]
[ "$(grep -c 'parameter' "$work/errors.err")" -eq 28 ] || { echo "not a line for each of 28 wrong arguments"; exit 1; }
grep -qx 'cblas_sgemm: parameter 9 (lda) must be at least 2, got 1' "$work/errors.err"

# The counts are those of the program's calls.
for verbose in 1 0; do
    REPOPS_VERBOSE=$verbose "$work/user" 2> "$work/count.txt" > /dev/null
    sed -i 's/process [0-9]*/process N/' "$work/count.txt"
    [ $verbose = 0 ] || echo 'librepops_blas: calls of process N: sgemm 9, sgemv 9, ssyrk 9, sdot 9' | diff - "$work/count.txt"
    [ $verbose = 1 ] || [ ! -s "$work/count.txt" ]
done

printf '%s\n' cblas_sdot cblas_sgemm cblas_sgemv cblas_ssyrk sdot_ sgemm_ sgemv_ ssyrk_ > "$work/want"
nm -D --defined-only "$lib/librepops_blas.so.1" | sed 's/.* //' | sort > "$work/got"
diff "$work/want" "$work/got" || { echo "exports other names"; exit 1; }
echo "$count runs, one hash: $want"
