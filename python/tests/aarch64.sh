#!/bin/sh
# Tests the wheel for aarch64 under an emulator: operators, and models trained with PyTorch, whose weights must match
# hashes.txt. Downloads Debian's Python for arm64 and PyTorch for it, about 250 MB; takes ten minutes.
# usage: aarch64.sh BUILD WHEELS
set -eu
build=$1 wheels=$2
top=$(pwd)
work=$top/$build/emulated
sh python/tests/arm64.sh "$work"

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
