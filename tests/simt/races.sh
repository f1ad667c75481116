#!/bin/sh
# Every operator, fused function, ro_sgemm and commitment hash under ThreadSanitizer: conflicting accesses have a barrier between them.
# A thread costs half a millisecond whatever it does, because gcc's sanitizer clears its state: so cases have few blocks.
# Usage: races.sh BUILD_DIR [MOST]; cases of up to MOST elements.
. tests/simt/setup
most=${2:-20000}
export REPOPS_CUDA_LIBRARY="$simt/tsan/librepops_cuda.so.1" TSAN_OPTIONS=halt_on_error=0
"$simt/tsan/cases" --list | xargs -n 8 -P "$(nproc)" sh -c '
    temp=$1 cases=$2 most=$3
    shift 3
    "$cases" --seeds 1 --most "$most" "$@" > "$temp/$1" 2>&1' _ "$temp" "$simt/tsan/cases" "$most" || fail "a case"
"$simt/tsan/sgemm" --seeds 40 --most 20000 > "$temp/sgemm" 2>&1 || fail "sgemm"
"$simt/tsan/tree" > "$temp/tree" 2>&1 || fail "tree"
"$simt/tsan/fused" --seeds 2 > "$temp/fused" 2>&1 || fail "a fused function"
# The only free operator whose threads share memory; others have an element for each thread or warp.
"$simt/tsan/free" --seeds 1 --most 600 matmul > "$temp/free" 2>&1 || fail "a free operator"
for log in "$temp"/*; do
    ! grep -q 'WARNING: ThreadSanitizer' "$log" || { grep -A 12 'WARNING: Thread' "$log" | head -n 60; fail "races: $(basename "$log")"; }
    grep -qE 'cases have the|bits, 0 differ|: 0 of [0-9]* roots differ|^adamw .* 0 differ|^free operators: .*, 0 not' "$log" || { tail "$log"; fail "$(basename "$log") did not end"; }
done
same=$(cat "$temp"/* | sed -n "s/.*: \([0-9]*\) cases have the CPU's.*/\1/p" | awk '{ n += $1 } END { print n + 0 }')
[ $bad -eq 0 ] && echo "no races; $same cases have the CPU's bits"
exit $bad
