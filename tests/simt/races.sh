#!/bin/sh
# Every operator once under ThreadSanitizer: no two accesses of threads without a barrier between them.
. tests/simt/setup
races() {
    REPOPS_CUDA_LIBRARY="$simt/tsan/librepops_cuda.so.1" TSAN_OPTIONS=halt_on_error=0 "$@" > "$temp/log" 2>&1
    ! grep -q 'WARNING: ThreadSanitizer' "$temp/log" || { grep -A 12 'WARNING: Thread' "$temp/log" | head -n 60; fail "races: $*"; }
    grep -q "$end" "$temp/log" || { tail "$temp/log"; fail "$* did not end"; }
}
end='cases have the'
races "$simt/tsan/cases" --seeds 1 --most 40000
line=$(tail -n 1 "$temp/log")
[ $bad -eq 0 ] && echo "no races; ${line#*: }"
exit $bad
