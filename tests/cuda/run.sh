#!/bin/sh
# Compares bits on a GPU: the golden table, random cases beside the CPU, training, work under load, compute-sanitizer. When a part ends, its
# line is printed and bench/results/<device>/test.json is rewritten; its whole output is in test.log beside that file. The table is printed
# once more at the end. Needs nvcc and a C compiler.
# Usage: tests/cuda/run.sh BUILD_DIR [--quick | --small] [--only PATTERN]; --quick: a tenth of the cases, no sanitizer; --small: tiny sizes
# on the shim (tests/simt), without a GPU; --only: the parts whose names match the shell pattern. Building and all parts together have
# BUDGET seconds (3600, more than a machine of four cores needs). What is left limits each part. A part that the budget or a slow sanitizer
# cuts short is skipped, not failed, and named at the end with its command. BUILT=1: see tests/cuda/setup.
end=$(($(date +%s) + ${BUDGET:-3600}))
only= before=
for argument in "$@"; do
    [ "$before" != --only ] || only=$argument
    before=$argument
done
. tests/cuda/setup
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
passed=0 failed=0 skipped=0
[ -z "$small" ] || end=$((end + 100000))
log=$folder/test.log
printf '%s\n%s\n' "$device" "$facts" | tee "$log"

write_json() {
    printf '{"device": %s, "facts": %s, "passed": %d, "failed": %d, "skipped": %d, "parts": [%s]}\n' "$(json_text "$device")" \
        "$(json_text "$facts")" $passed $failed $skipped "$(cat "$temp/json")" > "$folder/test.json"
}

# Prints a failed part's output without lines that are all right: its beginning, which matters most if the device failed, and its end.
show() {
    grep -avE '( ok *| same +0 differ.*)$' "$temp/out" > "$temp/show"
    if grep -aq '^=========' "$temp/show"; then
        grep -a '^=========' "$temp/show" | head -n 16
        echo "..."
        tail -n 4 "$temp/show"
    elif [ "$(wc -l < "$temp/show")" -le 30 ]; then
        cat "$temp/show"
    else
        head -n 10 "$temp/show"
        echo "..."
        tail -n 20 "$temp/show"
    fi | cut -c 1-200
}

# The CPU does the same work; the seconds below are for sixteen cores.
slower=$((16 / $(nproc)))
[ $slower -ge 1 ] || slower=1
left_out=
: > "$temp/table"

# part NAME SECONDS COMMAND...: runs a part. Its last line is the result; the log has all of its output.
part() {
    name=$1 limit=$(($2 * slower)) start=$(date +%s) cut=$slow
    shift 2
    # shellcheck disable=SC2254
    case $name in
    ${only:-*}) ;;
    *) return ;;
    esac
    left=$((end - start))
    [ $left -ge "$limit" ] || limit=$left cut=1
    if [ "$limit" -gt 2 ]; then
        timeout -k 5 "$limit" "$@" > "$temp/out" 2>&1
        code=$?
    else
        echo "no time was left" > "$temp/out"
        code=77 left_out="$left_out
    make test-cuda ARGS=\"--only '$name'\""
    fi
    { echo "==== $name: $code"; head -c 1000000 "$temp/out"; } >> "$log"
    says=$(tail -n 1 "$temp/out" | plain | cut -c 1-200)
    seconds=$(($(date +%s) - start))
    late=
    case $code in
    124 | 137) [ "$seconds" -lt "$limit" ] || late=1 ;; # before the limit, somebody else killed it
    esac
    case $code in
    0) word=passed passed=$((passed + 1)) ;;
    77) word=skipped skipped=$((skipped + 1)) ;;
    *)
        if [ "$late" ] && [ "$cut" ]; then
            word=skipped skipped=$((skipped + 1)) says="$limit s were not enough"
            left_out="$left_out
    make test-cuda ARGS=\"--only '$name'\""
        else
            word=FAILED failed=$((failed + 1))
            show
            cat "$temp/out" >> "$temp/failed.$(basename "$1")"
            [ -z "$late" ] || says="took longer than $limit s"
        fi
        ;;
    esac
    printf '%-18s %-8s %4d s  %s\n' "$name" $word $seconds "$says" | tee -a "$temp/table" >&2
    printf '%s{"name": "%s", "result": "%s", "seconds": %d, "says": %s}' "$comma" "$name" $word $seconds "$(json_text "$says")" >> "$temp/json"
    comma=', '
    write_json
}
comma= slow=

# Runs each operator that differed again in a process of its own: after one that breaks the device, all others fail or are not tried.
alone() {
    for program in cases fused; do
        [ -e "$temp/failed.$program" ] || continue
        if tail -n 1 "$temp/failed.$program" | grep -aq ' differ'; then
            awk '$3 == "same" && $4 > 0 { print $1 }' "$temp/failed.$program"
        else
            "$build/cuda/$program" --list
        fi | sed "s/^/$program /"
    done > "$temp/differ"
    [ -s "$temp/differ" ] || return
    until=$(($(date +%s) + 90)) tried=0 again=
    [ $until -lt $((end - 10)) ] || until=$((end - 10))
    while read -r program what; do
        [ "$(date +%s)" -lt $until ] || break
        tried=$((tried + 1))
        CUDA_LAUNCH_BLOCKING=1 timeout -k 5 20 "$build/cuda/$program" --seeds 4 "$what" < /dev/null > "$temp/out" 2>&1
        code=$?
        [ $code -ne 0 ] || continue
        again="$again $what"
        { echo "==== alone, $what: $code"; head -c 10000 "$temp/out"; } >> "$log"
        [ "$(echo "$again" | wc -w)" -gt 8 ] || { echo "alone, $what: exit code $code"; head -n 3 "$temp/out" | cut -c 1-200; }
    done < "$temp/differ"
    echo "$tried of $(wc -l < "$temp/differ") operators and functions were run again, each alone; these fail:${again:- none}" | cut -c 1-400 |
        tee -a "$log" "$temp/table"
}

if [ $small ]; then
    part "golden table" 600 "$build/bin/repops-conform" --device cuda:0 --operators
    part "random cases" 300 "$build/cuda/cases" --seeds 2 --most 50000
    part "kept elements" 300 "$build/cuda/fixed"
    part "checked products" 120 "$build/cuda/guard" --seeds 12
    part "single elements" 120 "$build/cuda/plain" --seeds 36
    part "sgemm" 120 "$build/cuda/sgemm" --seeds 20 --most 200000
    part "fused functions" 300 "$build/cuda/fused" --seeds 5
    part "card sizes" 100 "$build/cuda/fused" --seeds 2 card_linear
    part "free operators" 60 "$build/cuda/free" --seeds 2 --most 20000
    part "commitments" 60 "$build/cuda/tree"
    part "memory" 60 "$build/cuda/memory"
    part "gpt2" 300 "$build/cuda/training" gpt2-small 3 2 16
    part "resnet" 300 "$build/cuda/training" resnet-small 2 2 1
    part "gpt2, fixed24" 300 "$build/cuda/training" gpt2-small,fixed24 2 1 16
    part "resnet, fixed16" 300 "$build/cuda/training" resnet-small,fixed16 1 1 1
    part "gpt2, bf16" 300 "$build/cuda/training" gpt2-small,bf16 2 1 16
elif [ $quick ]; then
    part "golden table" 60 "$build/bin/repops-conform" --device cuda:0 --operators
    part "random cases" 60 "$build/cuda/cases" --seeds 2
    part "kept elements" 20 "$build/cuda/fixed"
    part "checked products" 20 "$build/cuda/guard" --seeds 24
    part "single elements" 20 "$build/cuda/plain" --seeds 72
    part "sgemm" 20 "$build/cuda/sgemm" --seeds 50
    part "fused functions" 30 "$build/cuda/fused" --seeds 10
    part "card sizes" 30 "$build/cuda/fused" --seeds 18 card_matmul card_linear card_conv card_fixed fixed_rings
    part "free operators" 30 "$build/cuda/free" --seeds 4 --most 1000000
    part "commitments" 20 "$build/cuda/tree"
    part "memory" 20 "$build/cuda/memory"
    part "gpt2" 100 "$build/cuda/training" gpt2-124m 3 2 64
    part "resnet" 60 "$build/cuda/training" resnet50 3 16 1
    part "gpt2, fixed24" 60 "$build/cuda/training" gpt2-124m,fixed24 1 2 64
    part "jobs" 120 tests/cuda/jobs.sh "$root"
else
    part "golden table" 120 "$build/bin/repops-conform" --device cuda:0 --operators
    part "random cases" 120 "$build/cuda/cases" --seeds 10
    # Its kernel for rows that begin in the middle of the other input needs more seeds.
    part "random cases, dot" 20 "$build/cuda/cases" --seeds 60 reduce_dot
    part "kept elements" 20 "$build/cuda/fixed"
    part "checked products" 20 "$build/cuda/guard" --seeds 96
    part "single elements" 20 "$build/cuda/plain" --seeds 288
    part "sgemm" 40 "$build/cuda/sgemm" --seeds 400
    part "fused functions" 60 "$build/cuda/fused" --seeds 60
    part "card sizes" 40 "$build/cuda/fused" --seeds 36 card_matmul card_linear card_conv card_fixed fixed_rings
    part "free operators" 60 "$build/cuda/free" --seeds 24 --most 5000000
    part "commitments" 20 "$build/cuda/tree"
    part "memory" 20 "$build/cuda/memory"
    # Models of the benchmark and of users; few steps, as the CPU must compute them, too.
    part "gpt2, B=8 T=1024" 150 "$build/cuda/training" gpt2-124m 2 8 1024
    part "resnet, B=64" 60 "$build/cuda/training" resnet50 2 64 1
    part "gpt2" 160 "$build/cuda/training" gpt2-124m 20 2 64
    part "resnet" 100 "$build/cuda/training" resnet50 20 16 1
    part "gpt2, fixed24" 80 "$build/cuda/training" gpt2-124m,fixed24 3 2 64
    part "gpt2, fixed16" 80 "$build/cuda/training" gpt2-124m,fixed16 3 2 64
    part "resnet, fixed24" 60 "$build/cuda/training" resnet50,fixed24 3 16 1
    part "resnet, fixed16" 60 "$build/cuda/training" resnet50,fixed16 3 16 1
    part "gpt2, bf16" 60 "$build/cuda/training" gpt2-124m,bf16 3 2 64
    part "jobs" 120 tests/cuda/jobs.sh "$root"
fi
alone
# Checks that no address is out of bounds, shared memory has no races, and no thread misses a barrier.
sanitize() {
    name=$1 limit=$2
    shift 2
    part "$name" "$limit" tests/cuda/sanitize "$temp/said" "$@"
}
if [ -z "$small$quick" ]; then
    slow=1 # how much slower programs are under it depends on the device
    sanitize "sanitizer" 60 memcheck "$build/cuda/tree"
    [ "${word:-}" = skipped ] || for program in cases fused free; do
        for tool in racecheck memcheck synccheck; do
            case $program in
            cases) sanitize "$tool, cases" 90 $tool "$build/cuda/cases" --seeds 1 --most 20000 ;;
            fused) sanitize "$tool, fused" 90 $tool "$build/cuda/fused" --seeds 24 ;;
            free) sanitize "$tool, free" 60 $tool "$build/cuda/free" --seeds 1 --most 20000 ;;
            esac
        done
    done
fi

echo
printf "%s: %s\n" "$device" "$facts"
cat "$temp/table"
[ -z "$left_out" ] || echo "There was no time for what these run, or BUDGET=7200 make test-cuda:$left_out"
[ $((passed + failed + skipped)) -gt 0 ] || echo "No part is called $only."
echo "$passed passed, $failed failed, $skipped skipped; $folder/test.json; all that was said: $log"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
