#!/bin/sh
# Every operator and function in 8 random schedules, on GPUs of several sizes, has the CPU's bits. Each launch has its own order
# of blocks, warps and lanes, and every compiled kernel is launched at least as often as there are schedules. The golden table
# runs, too.
# Usage: orders.sh BUILD_DIR [SCHEDULES]
. tests/simt/setup
schedules=${2:-8}

# Each schedule has other cases; a third run on one multiprocessor, a quarter each with the shared memory of sm_75 and sm_86, where
# plans differ.
cat > "$temp/schedule" << 'SCRIPT'
seed=$1 simt=$2 temp=$3
case $((seed % 3)) in 0) sms=1 ;; 1) sms=4 ;; *) sms=132 ;; esac
case $((seed % 4)) in 0) shared=64 ;; 1) shared=99 ;; *) shared=227 ;; esac
export SIMT_SEED=$seed SIMT_SMS=$sms SIMT_SHARED=$shared SIMT_LAUNCHES="$temp/launches.$seed"
"$simt/cases" --seeds 3 --first $((3 * seed)) --most 200000 || echo "FAILED: schedule $seed, $sms multiprocessors"
"$simt/sgemm" --seeds 10 --first $((10 * seed)) --most 200000 || echo "FAILED: sgemm, schedule $seed, $sms multiprocessors"
"$simt/tree" || echo "FAILED: tree, schedule $seed, $sms multiprocessors"
"$simt/fused" --first $((20 * seed)) || echo "FAILED: fused, schedule $seed, $sms multiprocessors"
"$simt/guard" --seeds 12 --first $((12 * seed)) nothing convs || echo "FAILED: checked products, schedule $seed"
"$simt/plain" --seeds 72 --first $((72 * seed)) || echo "FAILED: single elements, schedule $seed"
"$simt/free" --seeds 1 --first $seed --most 10000 || echo "FAILED: free operators, schedule $seed, $sms multiprocessors"
# Rare cases: tiles that are only fastest on one multiprocessor, separate sums with many, little shared memory, rows of many blocks,
# elements of one or two bytes. Steps of 48 cover every tile's seeds.
some() {
    SIMT_SMS=$1 SIMT_SHARED=$2 "$simt/fused" --first $((48 * seed)) --seeds "$3" $4 || echo "FAILED: $4, schedule $seed"
}
some 1 227 48 "matmul_tiles matmul_half_tiles linear_tiles conv_tiles"
some 132 227 8 conv_units
some 4 64 48 few_attention
some 4 227 48 linear
some 4 227 48 rms_norm
some 1 227 24 "layer_norm rms_norm"
some 4 227 24 "cross_entropy embedding_backward"
"$simt/cases" --seeds 100 --first $((100 * seed)) --most 20000 cast || echo "FAILED: cast, schedule $seed"
"$simt/cases" --seeds 48 --first $((48 * seed)) --most 20000 transpose || echo "FAILED: transpose, schedule $seed"
"$simt/cases" --seeds 24 --first $((24 * seed)) --most 20000 slice pad gather concat_axis split_heads join_heads \
    expand repeat_heads where put_rows read_batch ||
    echo "FAILED: movement, schedule $seed"
"$simt/cases" --seeds 8 --first $((8 * seed)) --most 20000 conv2d_fixed conv2d_fixed_dx conv2d_fixed_dw ||
    echo "FAILED: windows in place and in slabs, schedule $seed"
"$simt/cases" --seeds 12 --first $((12 * seed)) --most 20000 reduce_sum reduce_max reduce_dot reduce_sqdev reduce_expsum \
    reduce_ln_gx reduce_rms_gx attn_max attn_out attn_max_at attn_exp_at attn_av_at top_k top_p draw || echo "FAILED: rows, schedule $seed"
SCRIPT
seq "$schedules" | xargs -P "$(nproc)" -I{} sh -c 'sh "$3/schedule" "$1" "$2" "$3" > "$3/log.$1" 2>&1' _ {} "$simt" "$temp"
grep -hE 'FAILED|differs|simt:' "$temp"/log.* | head -n 40
! grep -q FAILED "$temp"/log.* || bad=1
cases=$(cat "$temp"/log.* | sed -n 's/.*: \([0-9]*\) cases have the CPU.*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
free=$(cat "$temp"/log.* | sed -n 's/^free operators: \([0-9]*\) cases.*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
[ "$(cat "$temp"/log.* | grep -c 'cases have the CPU')" -ge $((3 * schedules)) ] && [ "$free" -gt 0 ] || fail "a schedule did not end"

SIMT_SMS=1 "$build/bin/repops-conform" --device cuda:0 --operators > "$temp/log" 2>&1 || { tail -n 20 "$temp/log"; fail "golden hashes"; }
golden=$(tail -n 1 "$temp/log" | sed 's/.*: //')
case $(tail -n 1 "$temp/log") in
*", simulated on this CPU (sm_90, driver for CUDA 13.0), cuda, "*", 0 do not, 1 not offered") ;; # bounds of ro_ref_bounded
*) fail "the summary names another device, or counts what it does not have: $(tail -n 1 "$temp/log")" ;;
esac
# Counts launches in the schedules. A line has the type of a launch, which names the kernel.
cat "$temp"/launches.* | awk '{ n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n } END { for (k in sum) print sum[k], k }' > "$temp/sums"
seldom=$(awk -v least="$schedules" '$1 < least' "$temp/sums" | sort -n | sed 's/static .* \[with Body = /times: /')
# A failed schedule has few launches, and has been reported.
if [ $bad -eq 0 ] && [ -n "$seldom" ]; then
    echo "$seldom"
    fail "$(echo "$seldom" | grep -c .) kernels were launched fewer than $schedules times"
fi
[ -s "$temp/sums" ] || fail "no launch was counted"
least=$(sort -n "$temp/sums" | sed 's/ .*//;q')
[ $bad -eq 0 ] && echo "$cases cases in $schedules schedules have the CPU's bits, $free of free operators lie within their bounds, all $(wc -l < "$temp/sums") kernels ran in $least or more orders; $golden"
exit $bad
