#!/bin/sh
# The shim tells correct kernels from wrong ones: planted bugs appear in some order, and races under ThreadSanitizer.
. tests/simt/setup
"$simt/shim" || fail "a planted bug was not seen, or a right kernel went wrong"
for kernel in mirror mirror_warp copies; do
    "$simt/shim_tsan" $kernel > "$temp/log" 2>&1 || fail "a race in $kernel, which has none"
done
for kernel in no_barrier no_warp_barrier no_wait; do
    "$simt/shim_tsan" $kernel > "$temp/log" 2>&1 && fail "no race in $kernel, which has one"
done
[ $bad -eq 0 ] && echo "missing barriers, lane orders and unwaited copies are caught, by order and as races"
exit $bad
