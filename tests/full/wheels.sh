#!/bin/sh
# Wheels for x86-64 and aarch64: auditwheel finds that none needs more of a system than its name says. The one for this machine,
# and the source distribution, which is compiled, are installed by pip in fresh environments of every Python from 3.9 on, and
# compute the specified bits; so does the one for aarch64, under qemu. Takes auditwheel and numpy from PyPI, Python for aarch64 from Debian.
# PYTHONS="/opt/python3.9/bin/python3 ...": the Pythons to use.
set -eu
build=$1
[ -z "${SANITIZED:-}" ] || { echo "the plain build shows it"; exit 77; }
work=$PWD/$build/tests/wheels
rm -rf "$work"
mkdir -p "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset MAKEFLAGS

fail() {
    echo "$*"
    exit 1
}
# quietly NAME COMMAND...: shows the command's output only if it fails.
quietly() {
    name=$1
    shift
    "$@" > "$work/$name.txt" 2>&1 || { tail -n 20 "$work/$name.txt"; fail "$name: $*"; }
}

python3 -m venv "$work/tools" > "$work/venv.txt" 2>&1 || { echo "no venv: on Debian, apt-get install python3-venv"; exit 77; }
"$work/tools/bin/pip" install -q auditwheel > "$work/pip.txt" 2>&1 || { tail -n 1 "$work/pip.txt"; echo "auditwheel cannot be had from PyPI"; exit 77; }

quietly wheel make -s wheel BUILD="$build"
wheels=$(ls "$build"/wheels/*.whl)
cross=aarch64-linux-gnu
if command -v $cross-gcc > /dev/null; then
    quietly cross make -s wheel CC=$cross-gcc ARCH=aarch64 BUILD="$build/aarch64" PORTABLE_SHA=own PKG_CFLAGS= OBJDUMP=$cross-objdump \
        STRIP=$cross-strip CFLAGS=-g0
    cross_wheel=$(ls "$build"/aarch64/wheels/*.whl)
    wheels="$wheels $cross_wheel"
fi
levels=
for wheel in $wheels; do
    level=$(basename "$wheel" .whl | sed 's/.*-//')
    "$work/tools/bin/auditwheel" show "$wheel" > "$work/audit.txt" 2>&1 || { cat "$work/audit.txt"; fail "auditwheel does not take $wheel"; }
    tr '\n' ' ' < "$work/audit.txt" | tr -s ' ' | grep -q "consistent with the following platform tag: \"$level\"" ||
        { cat "$work/audit.txt"; fail "$wheel: auditwheel finds another level than $level"; }
    levels="$levels $level"
done

cat > "$work/check.py" << 'CODE'
import numpy as np, repops, verde
assert (repops.matmul(np.ones((2, 3), "f4"), np.ones((3, 4), "f4")) == 3).all()
drawn = repops.commitment(repops.uniform(seed=1, low=0, high=1, shape=[5]))
assert drawn == "519c348b4878209af799e695ebf07a44566cfc2bafcb7e45cbcc959297b7d87e", drawn
CODE
# installs PYTHON WHAT NAME: installs it in a fresh environment, and computes with it there.
installs() {
    quietly "$3" "$1" -m venv "$work/$3"
    quietly "$3" "$work/$3/bin/pip" install -q "$2"
    (cd / && env -u PYTHONPATH -u REPOPS_LIBRARY "$work/$3/bin/python" "$work/check.py") > "$work/$3.txt" 2>&1 || { cat "$work/$3.txt"; fail "$3: $2"; }
}
versions=
for python in ${PYTHONS:-python3.9 python3.10 python3.11 python3.12 python3.13 python3.14}; do
    version=$("$python" -c 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])' 2> /dev/null) || continue
    installs "$python" "$(ls "$build"/wheels/*.whl)" "wheel$version"
    versions="$versions $version"
done
[ "$versions" ] || fail "no Python from 3.9 on has venv"

# emulated WHEEL: installs it for Debian's Python of aarch64, and checks what it computes; or prints why it cannot.
emulated() {
    sh python/tests/arm64.sh "$build/emulated" > "$work/arm64.txt" 2>&1 || {
        code=$?
        tail -n 1 "$work/arm64.txt"
        return $code
    }
    root=$PWD/$build/emulated/root
    quietly numpy "$work/tools/bin/pip" install -q --target "$work/site" --only-binary=:all: --python-version 3.11 \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 numpy
    quietly "wheel of aarch64" "$work/tools/bin/pip" install -q --target "$work/site" --only-binary=:all: --no-index --no-deps \
        --platform "$(basename "$1" .whl | sed 's/.*-//')" "$1"
    quietly "under qemu" env -u REPOPS_LIBRARY PYTHONHOME="$root/usr" PYTHONPATH="$work/site" qemu-aarch64 -L "$root" "$root/usr/bin/python3.11" "$work/check.py"
    echo "in an emulator"
}
other="no $cross-gcc"
if [ "${cross_wheel:-}" ]; then
    code=0
    other=$(emulated "$cross_wheel") || code=$?
    [ $code -eq 0 ] || [ $code -eq 77 ] || fail "$other"
fi

# From the tarball, since the checkout has compiled libraries.
quietly dist make -s dist BUILD="$build"
installs python3 "$(ls "$build"/dist/*.tar.gz)" sdist
echo "wheels of$levels; installed by Python$versions, that of aarch64 $other, and from sources by $(python3 --version | tr A-Z a-z)"
