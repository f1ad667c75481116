#!/bin/sh
# The Python package without PyTorch: structures passed to the library have the headers' layout, generated texts and types are
# current, the library of commitments exports only what Python calls, and operators run on arrays if Debian's numpy is installed.
# `make test-python` tests the rest.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
command -v python3 > /dev/null || { echo "no python3"; exit 77; }
work=$build/tests/python
rm -rf "$work"
mkdir -p "$work"

cat > "$work/layout.py" << 'PY'
"""Prints the structures of ctypes as a C program that fails to compile where a header has others."""
import ctypes
import importlib.util
import sys

spec = importlib.util.spec_from_file_location("library", "python/repops/_library.py")
library = importlib.util.module_from_spec(spec)
spec.loader.exec_module(library)
NAMES = {
    "Shape": "ro_shape", "AttrInfo": "ro_attr_info", "OpInfo": "ro_op_info", "Call": "ro_call", "Options": "ro_options",
    "LinearLayer": "ro_linear_layer", "AttentionDropout": "ro_attention_dropout", "Attention": "ro_attention",
    "Gradient": "ro_gradient", "AdamwStep": "ro_adamw_step", "AdamwParameter": "ro_adamw_parameter", "SgdStep": "ro_sgd_step",
}
found = {n for n, v in vars(library).items() if isinstance(v, type) and issubclass(v, ctypes.Structure) and hasattr(v, "_fields_")}
assert found == set(NAMES), found ^ set(NAMES)
print("#include <stddef.h>\n#include <repops/layers.h>")
for python, c in NAMES.items():
    structure = getattr(library, python)
    print(f'_Static_assert(sizeof({c}) == {ctypes.sizeof(structure)}, "{python} has another size");')
    for name, kind in structure._fields_:
        field = name.rstrip("_")
        print(f'_Static_assert(offsetof({c}, {field}) == {getattr(structure, name).offset} && '
              f'sizeof((({c} *)0)->{field}) == {ctypes.sizeof(kind)}, "{python}.{name} lies elsewhere");')
assert library.VERSION == sys.argv[1], library.VERSION
PY
version=$(sed -n 's/^#define RO_VERSION *"\(.*\)"/\1/p' repops/include/repops/repops.h)
REPOPS_LIBRARY=$build/lib/librepops.so.1 python3 "$work/layout.py" "$version" > "$work/layout.c"
${CC:-cc} -std=c11 -Irepops/include -fsyntax-only "$work/layout.c"
fields=$(grep -c offsetof "$work/layout.c")

# A structure that lacks a field is noticed.
sed 's/("window", I64),//' python/repops/_library.py > "$work/short.py"
cmp -s python/repops/_library.py "$work/short.py" && { echo "no field was taken away"; exit 1; }
sed "s|python/repops/_library.py|$work/short.py|" "$work/layout.py" > "$work/short_layout.py"
REPOPS_LIBRARY=$build/lib/librepops.so.1 python3 "$work/short_layout.py" "$version" > "$work/short.c"
! ${CC:-cc} -std=c11 -Irepops/include -fsyntax-only "$work/short.c" 2> "$work/short.txt" || { echo "a missing field goes unnoticed"; exit 1; }
grep -q "Attention has another size" "$work/short.txt"

# The package's texts and types match this table of operators.
REPOPS_LIBRARY=$build/lib/librepops.so.1 python3 python/generate.py --check

# Commitments of an f32 tensor of one element 1, compared with PROTOCOL.md section 2.3 by hashlib.
cat > "$work/commit.py" << 'PY'
import ctypes
import hashlib
import struct
import sys

lib = ctypes.CDLL(sys.argv[1])
shape = struct.pack("<ii8q", 1, 1, 1, *[0] * 7)
data, root, out = struct.pack("<f", 1), ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
assert lib.vd_tensor_hash(None, shape, data, root, out, None) == 0
byte_root = hashlib.sha256(b"\0" + data).digest()
assert root.raw == byte_root
assert out.raw == hashlib.sha256(b"verde/tensor/1\0" + struct.pack("<IIQ", 1, 1, 1) + byte_root).digest()
PY
python3 "$work/commit.py" "$build/lib/libverde_commit.so"
shown=$(${NM:-nm} -D --defined-only "$build/lib/libverde_commit.so" | awk '{ print $3 }' | sort | tr '\n' ' ')
called=$(sed -n 's/.*lib\.\(vd_[a-z_]*\)\.argtypes.*/\1/p' python/repops/_commit.py | sort | tr '\n' ' ')
[ "$shown" = "$called" ] || { echo "libverde_commit.so shows $shown; Python calls $called"; exit 1; }

# Operators on numpy arrays: known values, the same bits in every setting, and the library's sentences as errors.
cat > "$work/operators.py" << 'PY'
import numpy as np
import repops

a, b = np.arange(6, dtype="f4").reshape(2, 3), np.arange(12, dtype="f4").reshape(3, 4)
assert np.array_equal(repops.matmul(a, b), a @ b)
assert np.array_equal(repops.transpose(b, d0=1, d1=0, d2=0, d3=0, d4=0), b.T)
out = np.empty((2, 4), "f4")
assert repops.matmul(a, b, out=out) is out and np.array_equal(out, a @ b)
x, w = (np.random.default_rng(i).random(s, "f4") for i, s in enumerate([(2, 9, 9, 40), (3, 3, 40, 24)]))
images = {}
for threads, backend in [(1, "scalar"), (1, None), (3, None)]:
    with repops.Context(threads=threads, backend=backend):
        y = repops.conv2d(x, w, stride_h=2, stride_w=2, pad_h=1, pad_w=1, dilation_h=1, dilation_w=1, groups=1)
        turned = repops.transpose(w, d0=3, d1=2, d2=0, d3=1, d4=0)
        assert np.array_equal(turned, w.transpose(3, 2, 0, 1))
        images[threads, backend] = repops.commitment(y), repops.root([repops.commitment(y)])
assert y.shape == (2, 5, 5, 24) and len(set(images.values())) == 1, images
try:
    repops.matmul(a, a)
except repops.Error as error:
    assert "matmul" in str(error), error
else:
    raise AssertionError("a product of 2 x 3 and 2 x 3 went through")
PY
numpy="operators not run: no numpy for /usr/bin/python3"
if /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
    PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 REPOPS_LIBRARY=$build/lib/librepops.so.1 /usr/bin/python3 "$work/operators.py"
    numpy="operators run on numpy"
fi
echo "$numpy; $fields fields lie as the headers say; libverde_commit.so shows $called"
