#!/bin/sh
# Builds and runs bench/cuda.c: a table, and bench/results/<device>/bench.json, both updated row by row, with the card's clocks beside them.
# Each part is a process of its own, so that the others still run if one breaks the device. Needs nvcc and a C compiler; cuBLAS (BENCH_CUBLAS:
# its file) and PyTorch (PYTHON: python3) are peers if they are installed.
# Usage: bench/cuda.sh BUILD_DIR [--small | --quick] [ARGUMENT...]; --small: tiny sizes on the shim (tests/simt), without a GPU; others:
# bench/cuda.c. Stops after BUDGET seconds (3600, more than a machine of four cores needs), which on a GPU include building, and names
# the parts that it had no time for with the command that runs them; BUILT=1: see tests/cuda/setup. Products come first, once for each of
# UNROLL ("16 8 4"): the number of steps of k for which their inner loop is unrolled (repops/cuda/gemm/gemm.cuh). The bits are the same;
# the library has the last one.
end=$(($(date +%s) + ${BUDGET:-3600}))
. tests/cuda/setup
if [ -z "${BUILT:-}" ]; then
    nvcc=$(sh repops/cuda/find_nvcc 2>&1) || { echo "$0: $nvcc" >&2; exit 1; }
    make --no-print-directory -j"$(nproc)" BUILD="$build" "$build/bench/cuda" > "$build/bench-cuda.log" 2>&1 ||
        { tail -n 20 "$build/bench-cuda.log"; exit 1; }
fi
printf '%s\n%s\n' "$device" "$facts" >&2
temp=$(mktemp -d)
watcher=
trap 'rm -rf "$temp"; [ -z "$watcher" ] || kill "$watcher" 2> /dev/null' EXIT
trap 'exit 143' INT TERM

python=${PYTHON:-python3}
# Prints the path of the toolkit's cuBLAS, or of PyTorch's.
find_blas() {
    nvcc=$(sh repops/cuda/find_nvcc 2> /dev/null)
    toolkit=$(dirname "$(readlink -f "$(command -v "${nvcc%% *}")")" 2> /dev/null)
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2> /dev/null)
    for file in "$toolkit"/../lib64/libcublas.so.1? "$toolkit"/../targets/*/lib/libcublas.so.1? /usr/local/cuda*/lib64/libcublas.so.1? \
        "$packages"/nvidia/*/lib/libcublas.so.1?; do
        [ ! -e "$file" ] || { echo "$file"; return; }
    done
}

# --only is handled here: it names the parts, each of which runs as a process.
parts=$("$build/bench/cuda" --list)
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    count=$((count - 1))
    if [ "$argument" = --only ] && [ "$count" -gt 0 ]; then
        wanted=",$1,"
        parts=$(for part in $parts; do case $wanted in *",$part,"*) echo "$part" ;; esac; done)
        shift
        count=$((count - 1))
    else
        set -- "$@" "$argument"
    fi
done
[ -z "$quick" ] || parts=$(echo "$parts" | grep -v '^compiled$') # takes long to prepare
[ "$parts" ] || { echo "$0: no such part (compiled: not with --quick); there are:" $("$build/bench/cuda" --list) >&2; exit 2; }

if [ -z "$small" ]; then
    [ "${BENCH_CUBLAS:-}" ] || BENCH_CUBLAS=$(find_blas)
    export BENCH_CUBLAS
    set -- --torch "$python" "$@"
    if command -v nvidia-smi > /dev/null; then
        nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu --format=csv -lms 2000 \
            > "$folder/clocks.csv" 2> /dev/null &
        watcher=$!
    fi
fi

# Joins the rows of all parts in one file; each row is a line in its part's file.
merge() {
    cat "$temp"/*.json 2> /dev/null | sed -n 's/^\({"work": .*}\),*$/\1/p' > "$temp/rows"
    { printf '{"device": %s, "facts": %s, "rows": [\n' "$(json_text "$device")" "$(json_text "$facts")"
      sed '$!s/$/,/' "$temp/rows"
      echo ']}'; } > "$folder/bench.json.next"
    mv "$folder/bench.json.next" "$folder/bench.json"
}
# lost NAME RESULT WHY: adds a row for a part that ended without one that says why.
lost() {
    printf '%-34s %11s  %s\n' "$1" "$2" "$3" | tee -a "$temp/table" >&2
    printf '{"work": "%s", "result": "%s", "ours_ms": null, "note": "%s"}\n' "$1" "$2" "$3" > "$temp/$number.lost.json"
}
# Times products whose inner loop is unrolled STEPS times, with a library of their own: a table, and $folder/unroll-STEPS.json.
unrolled() {
    steps=$1 other=$build/unroll$1
    if [ -z "${BUILT:-}" ]; then
        make --no-print-directory -j"$(nproc)" BUILD="$other" CUDA_ARCHS="${CUDA_ARCHS:-$arch}" GEMM_UNROLL="$steps" cuda > "$build/unroll.log" 2>&1 ||
            { tail -n 5 "$build/unroll.log"; return 1; }
    fi
    [ -e "$other/lib/librepops_cuda.so.1" ] || { echo "$other/lib/librepops_cuda.so.1 is not there: not timed"; return; }
    left=$((end - $(date +%s)))
    [ $left -gt 5 ] || { echo "products, $steps steps of k unrolled: no time was left"; return; }
    printf '\nproducts, %s steps of k unrolled\n' "$steps"
    shift
    REPOPS_CUDA_LIBRARY="$other/lib/librepops_cuda.so.1" timeout -k 5 $((left < 200 ? left : 200)) "$build/bench/cuda" "$@" --only products \
        --table "$temp/unroll" --json "$folder/unroll-$steps.json"
}
bad=0 number=0 left_out=
: > "$temp/table"
if [ -z "$small$quick" ] && echo "$parts" | grep -qx products; then
    for steps in ${UNROLL-16 8 4}; do unrolled "$steps" "$@" >&2 || bad=$((bad + 1)); done
fi
for part in $parts; do
    number=$((number + 1)) left=$((end - $(date +%s)))
    if [ $left -gt 5 ]; then
        limited=1 # by what is left of the budget, not by the part's own limit
        [ $left -lt 200 ] || left=200 limited=
        timeout -k 5 $left "$build/bench/cuda" "$@" --only "$part" --table "$temp/table" --json "$temp/$number.json"
        code=$?
        case $code$limited in
        0 | 01 | 1241 | 1371) ;;
        *) bad=$((bad + 1)) ;;
        esac
        case $code in
        0) ;;
        1) [ -e "$temp/$number.json" ] || lost "$part" FAILED "did not begin" ;;
        2) exit 2 ;; # the command line
        124 | 137) lost "$part" "cut off" "after $left s"; left_out="$left_out,$part" ;;
        *) lost "$part" FAILED "ended with exit code $code" ;;
        esac
    else
        lost "$part" skipped "no time was left"
        left_out="$left_out,$part"
    fi
    merge
done

printf '\n%s: %s\n%-34s %11s %11s %7s %6s\n' "$device" "$facts" work "ours, ms" "peer, ms" ratio wanted
cat "$temp/table"
[ -z "$left_out" ] || echo "There was no time for some: make bench-cuda ARGS=\"--only ${left_out#,}\", or BUDGET=7200 make bench-cuda"
echo "$folder/bench.json"
[ $bad -eq 0 ]
