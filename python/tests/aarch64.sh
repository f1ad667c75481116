#!/bin/sh
# Tests the wheel for aarch64 under an emulator: operators, and models trained with PyTorch, whose weights must match
# hashes.txt. Downloads Debian's Python for arm64 and PyTorch for it, about 250 MB; takes ten minutes.
# usage: aarch64.sh BUILD WHEELS
set -eu
build=$1 wheels=$2
[ "$(. /etc/os-release && echo "$VERSION_ID")" = 12 ] || { echo "needs Debian 12, whose Python for arm64 it takes"; exit 77; }
for tool in qemu-aarch64 apt-get dpkg-deb; do
    command -v $tool > /dev/null || { echo "no $tool"; exit 77; }
done
top=$(pwd)
work=$top/$build/emulated
mkdir -p "$work/apt/lists/partial" "$work/apt/archives/partial" "$work/debs" "$work/root"

# Downloads Debian's packages of another architecture with a separate package list: the system's packages stay as they
# are.
if [ ! -x "$work/root/usr/bin/python3.11" ]; then
    touch "$work/apt/status"
    apt="apt-get -qq -o Dir::State=$work/apt -o Dir::State::status=$work/apt/status -o Dir::Cache=$work/apt -o APT::Architecture=arm64
        -o APT::Architectures::=arm64 -o APT::Sandbox::User=root"
    $apt update
    (cd "$work/debs" && $apt download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libssl3 zlib1g \
        libexpat1 libffi8 libbz2-1.0 liblzma5 libcrypt1 libuuid1 libgcc-s1 libstdc++6)
    for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$work/root"; done
fi

# PyTorch's requirements are listed here, because pip would choose those of this machine.
if [ ! -e "$work/site/torch" ]; then
    pip="$PYTHON -m pip install -q --target $work/site --python-version 3.11 --only-binary=:all: --platform manylinux_2_28_aarch64
        --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64"
    $pip --no-deps "torch==${TORCH:-2.9.1}" "torchvision==${TORCHVISION:-0.24.1}"
    $pip numpy transformers pytest pillow filelock typing-extensions sympy networkx jinja2 fsspec
fi
rm -rf "$work"/site/repops* "$work/site/verde"
"$PYTHON" -m pip install -q --target "$work/site" --platform manylinux_2_34_aarch64 --only-binary=:all: --no-index --no-deps \
    "$wheels"/*.whl

export PYTHONPATH="$work/site" PYTHONHOME="$work/root/usr" PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1
emulated="qemu-aarch64 -L $work/root $work/root/usr/bin/python3.11"
cd python/tests
# The excluded tests start other programs, which the emulator cannot.
REPOPS_TOP=$top $emulated -m pytest -q -p no:cacheprovider test_operators.py -k "not generated and not not_there and not first_program"
$emulated train.py gpt2 llama bert resnet > "$work/hashes.txt"
cmp hashes.txt "$work/hashes.txt"
echo "aarch64: all weights are those of hashes.txt"
