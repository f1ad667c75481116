#!/bin/sh
# Debian's numpy, which links libblas, under LD_PRELOAD: a @ b has the bytes of a direct ro_sgemm.
set -eu
build=$1
python=/usr/bin/python3
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python (python3-numpy)"; exit 77; }
work=$build/tests/numpy
rm -rf "$work"
mkdir -p "$work"
preload=$(cd "$build/lib" && pwd)/librepops_blas.so.1
${CC:-cc} -std=c11 -O2 -Irepops/include tests/link/product.c "$build/lib/librepops.a" -pthread -o "$work/product"

cat > "$work/multiply.py" << 'PY'
import sys
import numpy as np

m, n, k = map(int, sys.argv[1:4])
x = (np.arange(m * k + k * n, dtype=np.int64) * 7919 % 100003).astype(np.float32) / np.float32(65536) - np.float32(0.75)
a, b = x[: m * k].reshape(m, k), x[m * k :].reshape(k, n)
(np.concatenate([a.ravel(), b.ravel()])).tofile(sys.argv[4])
(a @ b).tofile(sys.argv[5])
# The same product through transposed views, and column by column.
assert (np.ascontiguousarray((b.T @ a.T).T) == a @ b).all()
assert all(((a @ b[:, j]) == (a @ b)[:, j]).all() for j in range(0, n, 7))
assert a[0] @ b[:, -1] == (a @ b)[0, -1]
gram = a @ a.T
assert (gram == gram.T).all() and gram[0, -1] == a[0] @ a[-1]
PY

other=0
for size in "64 48 700" "257 130 1031" "1 300 513" "300 1 513"; do
    # shellcheck disable=SC2086
    set -- $size
    for threads in 1 3; do
        LD_PRELOAD=$preload REPOPS_THREADS=$threads $python "$work/multiply.py" "$1" "$2" "$3" "$work/in" "$work/got"
        "$work/product" "$1" "$2" "$3" < "$work/in" > "$work/want"
        cmp "$work/got" "$work/want"
    done
    $python -c "import sys; sys.argv[1:] = '$1 $2 $3 $work/in $work/alone'.split()
try: exec(open('$work/multiply.py').read())
except AssertionError: pass"
    cmp -s "$work/alone" "$work/want" || other=$((other + 1))
done
[ $other -gt 0 ] || { echo "numpy alone has the same bytes: the test shows nothing"; exit 1; }
echo "4 products have the bytes of ro_sgemm; without LD_PRELOAD $other of them have others"
