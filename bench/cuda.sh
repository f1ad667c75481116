#!/bin/sh
# Builds and runs bench/cuda.c: a table, and bench/results/<device>/bench.json. Needs nvcc and a C compiler; PyTorch is a peer where
# PYTHON (python3) has it. Usage: bench/cuda.sh BUILD_DIR [--small]; --small: tiny sizes on the shim (tests/simt), without a GPU.
. tests/cuda/setup
nvcc=${NVCC:-nvcc}
command -v "$nvcc" > /dev/null || { echo "$0: no nvcc: install the CUDA toolkit, or set NVCC" >&2; exit 1; }
make --no-print-directory -j"$(nproc)" BUILD="$build" "$build/bench/cuda" > "$build/bench-cuda.log" 2>&1 ||
    { tail -n 20 "$build/bench-cuda.log"; exit 1; }
echo "$device" >&2
if [ $small ]; then
    timeout 470 "$build/bench/cuda" --small --json "$folder/bench.json"
else
    timeout 470 "$build/bench/cuda" --torch "${PYTHON:-python3}" --json "$folder/bench.json"
fi
