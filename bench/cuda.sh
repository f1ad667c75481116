#!/bin/sh
# Builds and runs bench/cuda.c: a table, and bench/results/<device>/bench.json, both kept row by row; clocks of the card beside them. Needs
# nvcc and a C compiler; cuBLAS and PyTorch are peers where they are (BENCH_CUBLAS: its file; PYTHON: python3).
# Usage: bench/cuda.sh BUILD_DIR [--small | --quick] [ARGUMENT...]; --small: tiny sizes on the shim (tests/simt), without a GPU; others:
# bench/cuda.c. Stops after BUDGET seconds (470), of which on a GPU building is a part; BUILT=1: see tests/cuda/setup.
end=$(($(date +%s) + ${BUDGET:-470}))
. tests/cuda/setup
if [ -z "${BUILT:-}" ]; then
    nvcc=${NVCC:-nvcc}
    command -v "$nvcc" > /dev/null || { echo "$0: no nvcc: install the CUDA toolkit, or set NVCC" >&2; exit 1; }
    make --no-print-directory -j"$(nproc)" BUILD="$build" "$build/bench/cuda" > "$build/bench-cuda.log" 2>&1 ||
        { tail -n 20 "$build/bench-cuda.log"; exit 1; }
fi
echo "$device" >&2
if [ $small ]; then
    timeout "${BUDGET:-470}" "$build/bench/cuda" "$@" --json "$folder/bench.json"
    exit
fi

python=${PYTHON:-python3}
# The toolkit's cuBLAS, or PyTorch's.
find_blas() {
    toolkit=$(dirname "$(readlink -f "$(command -v "${NVCC:-nvcc}")")" 2> /dev/null)
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2> /dev/null)
    for file in "$toolkit"/../lib64/libcublas.so.1? "$toolkit"/../targets/*/lib/libcublas.so.1? /usr/local/cuda*/lib64/libcublas.so.1? \
        "$packages"/nvidia/*/lib/libcublas.so.1?; do
        [ ! -e "$file" ] || { echo "$file"; return; }
    done
}
[ "${BENCH_CUBLAS:-}" ] || BENCH_CUBLAS=$(find_blas)
export BENCH_CUBLAS
left=$((end - $(date +%s)))
[ $left -gt 0 ] || { echo "$0: building took all of BUDGET" >&2; exit 1; }
watcher=
if command -v nvidia-smi > /dev/null; then
    nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu --format=csv -lms 2000 \
        > "$folder/clocks.csv" 2> /dev/null &
    watcher=$!
fi
timeout -k 5 $left "$build/bench/cuda" --torch "$python" "$@" --json "$folder/bench.json"
code=$?
[ -z "$watcher" ] || kill "$watcher" 2> /dev/null
exit $code
