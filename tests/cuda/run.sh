#!/bin/sh
# Bits on a GPU: the golden table, random cases beside the CPU, training, work under load, compute-sanitizer. Ends with a table;
# writes bench/results/<device>/test.json. Needs nvcc and a C compiler.
# Usage: tests/cuda/run.sh BUILD_DIR [--small]; --small: tiny sizes on the shim (tests/simt), without a GPU.
. tests/cuda/setup
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
passed=0 failed=0 skipped=0

# part NAME SECONDS COMMAND...: its last line is the result.
part() {
    name=$1 limit=$2 start=$(date +%s)
    shift 2
    timeout "$limit" "$@" > "$temp/out" 2>&1
    code=$?
    says=$(tail -n 1 "$temp/out" | tr -d '"\\' | cut -c 1-150)
    case $code in
    0) word=passed passed=$((passed + 1)) ;;
    77) word=skipped skipped=$((skipped + 1)) ;;
    124) word=FAILED failed=$((failed + 1)) says="took longer than $limit s" ;;
    *) word=FAILED failed=$((failed + 1)); tail -n 20 "$temp/out" ;;
    esac
    seconds=$(($(date +%s) - start))
    echo "$name: $word" >&2
    printf '%-18s %-8s %4d s  %s\n' "$name" $word $seconds "$says" >> "$temp/table"
    printf '%s{"name": "%s", "result": "%s", "seconds": %d, "says": "%s"}' "$comma" "$name" $word $seconds "$says" >> "$temp/json"
    comma=', '
}
comma=

if [ $small ]; then
    part "golden table" 600 "$build/bin/repops-conform" --device cuda:0 --operators
    part "random cases" 300 "$build/cuda/cases" --seeds 2 --most 50000
    part "fused functions" 300 "$build/cuda/fused" --seeds 5
    part "commitments" 60 "$build/cuda/tree"
    part "gpt2" 300 "$build/cuda/training" gpt2-small 3 2 16
    part "resnet" 300 "$build/cuda/training" resnet-small 2 2 1
else
    part "golden table" 120 "$build/bin/repops-conform" --device cuda:0 --operators
    part "random cases" 120 "$build/cuda/cases" --seeds 10
    part "fused functions" 60 "$build/cuda/fused" --seeds 60
    part "commitments" 20 "$build/cuda/tree"
    part "gpt2" 160 "$build/cuda/training" gpt2-124m 20 2 64
    part "resnet" 100 "$build/cuda/training" resnet50 20 16 1
fi
# No address out of bounds, no race in shared memory.
cat > "$temp/sanitize" << 'SCRIPT'
command -v compute-sanitizer > /dev/null || { echo "no compute-sanitizer here"; exit 77; }
tool=$1
shift
compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 5 "$@"
SCRIPT
for tool in memcheck racecheck; do
    [ $small ] || part "$tool" 90 sh "$temp/sanitize" $tool "$build/cuda/cases" --seeds 1 --most 20000
    [ $small ] || part "$tool, fused" 60 sh "$temp/sanitize" $tool "$build/cuda/fused" --seeds 2
done

printf '{"device": "%s", "passed": %d, "failed": %d, "skipped": %d, "parts": [%s]}\n' "$device" $passed $failed $skipped \
    "$(cat "$temp/json")" > "$folder/test.json"
echo
echo "$device"
cat "$temp/table"
echo "$passed passed, $failed failed, $skipped skipped; $folder/test.json"
[ $failed -eq 0 ]
