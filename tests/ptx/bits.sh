#!/bin/sh
# Runs the kernels that nvcc compiled on this CPU: the golden table, random cases, fused functions, products, trees and free kernels have
# the CPU's bits, for compute_75 and compute_80 (fixed products also for compute_90a), on GPUs of several sizes, in random orders; every
# kernel runs.
# Usage: bits.sh BUILD_DIR [TIMES]; TIMES as many random cases.
. tests/ptx/setup
need_nvcc
times=${2:-1}
# ARCHITECTURE SHARED_KIB MULTIPROCESSORS COMMAND...
cat > "$temp/list" << LIST
80 163 4 bin/repops-conform --device cuda:0 --operators
75 64 4 bin/repops-conform --device cuda:0 --operators
80 163 132 cuda/cases --seeds $((4 * times)) --most 200000
75 64 4 cuda/cases --seeds $((2 * times)) --first 1000 --most 200000
80 163 4 cuda/fused --seeds $((24 * times))
75 64 132 cuda/fused --seeds $((12 * times)) --first 1000
80 227 1 cuda/fused --seeds $((48 * times)) --first 2000 matmul_tiles matmul_half_tiles linear_tiles conv_tiles
80 227 132 cuda/fused --seeds $((8 * times)) --first 2000 conv_units
80 163 1 cuda/fused --seeds $((24 * times)) --first 2000 layer_norm rms_norm
75 64 1 cuda/fused --seeds $((24 * times)) --first 3000 layer_norm
80 163 4 cuda/fused --seeds $((24 * times)) --first 3000 cross_entropy embedding_backward
75 64 4 cuda/fused --seeds $((48 * times)) --first 2000 few_attention
80 99 132 cuda/fused --seeds $((12 * times)) --first 3000 attention
80 163 4 cuda/cases --seeds $((16 * times)) --first 3000 --most 20000 transpose slice pad gather concat_axis split_heads join_heads put_rows
80 163 4 cuda/cases --seeds $((160 * times)) --first 5000 --most 5000 cast read_batch
80 163 4 cuda/cases --seeds $((12 * times)) --first 3000 --most 20000 reduce_sum reduce_max reduce_dot reduce_sqdev reduce_ln_gx reduce_rms_gx matmul attn_exp_at top_k top_p draw
80 99 132 cuda/cases --seeds $((2 * times)) --first 2000 --most 200000
80 99 1 cuda/sgemm --seeds $((30 * times)) --most 200000
75 64 4 cuda/sgemm --seeds $((10 * times)) --first 1000 --most 200000
80 163 4 cuda/free --seeds $times --most 10000
75 64 4 cuda/free --seeds $times --first 1000 --most 10000
80 163 4 cuda/guard --seeds $((12 * times)) nothing places
80 163 4 cuda/guard --seeds $((9 * times)) convs conv_places
75 64 132 cuda/guard --seeds $((9 * times)) conv_places
75 64 4 cuda/plain --seeds $((72 * times))
80 163 4 cuda/guard --seeds 3 bits for_ever
80 163 4 cuda/tree
75 64 1 cuda/tree
80 163 4 cuda/memory
90 227 4 cuda/fixed
90 227 2 cuda/cases --seeds $((40 * times)) --first 7000 --most 300000 matmul_fixed
90 227 132 cuda/fused --seeds $((32 * times)) --first 4000 linear
90 227 1 cuda/fused --seeds $((9 * times)) fixed_rings
90 227 4 cuda/guard --seeds $((12 * times)) nothing places
90 227 1 cuda/guard --seeds $((12 * times)) bits for_ever
LIST
cat > "$temp/one" << 'SCRIPT'
number=$1 build=$2 temp=$3
read -r arch shared sms command << LINE
$(sed -n "${number}p" "$temp/list")
LINE
export PTX_ARCH=$arch PTX_SHARED=$shared PTX_SMS=$sms PTX_SEED=${PTX_SEED:-$number}
PTX_MODULES=$(cat "$temp/modules.$arch") PTX_REPORT=$temp/report.$arch.$number
export PTX_MODULES PTX_REPORT
# shellcheck disable=SC2086
$build/$command > "$temp/log.$number" 2>&1 ||
    echo "FAILED: PTX_SEED=$PTX_SEED PTX_ARCH=$arch PTX_SHARED=$shared PTX_SMS=$sms $command" >> "$temp/log.$number"
SCRIPT
modules 75 > "$temp/modules.75"
modules 80 > "$temp/modules.80"
modules 90 > "$temp/modules.90"
count=$(wc -l < "$temp/list")
seq "$count" | xargs -P "$(nproc)" -I{} sh "$temp/one" {} "$build" "$temp"
for number in $(seq "$count"); do
    grep -q FAILED "$temp/log.$number" || continue
    grep -E 'ptx:|differs' "$temp/log.$number" | head -n 5
    fail "$(sed -n 's/^FAILED: //p' "$temp/log.$number" | head -n 1)"
done
# Lines: launches, file, kernel. A kernel in two files counts as one.
cat "$temp"/report.* | awk '{ n[$3] += $1 } END { for (k in n) print n[k], k }' > "$temp/sums"
kernels=$(wc -l < "$temp/sums")
[ "$kernels" -ge 300 ] || fail "only $kernels kernels are known"
sed -n 's/^0 //p' "$temp/sums" | sort > "$temp/never"
[ ! -s "$temp/never" ] || { cut -c 1-200 "$temp/never" | head -n 20; fail "$(wc -l < "$temp/never") kernels never ran"; }
cases=$(cat "$temp"/log.* | sed -n "s/.*: \([0-9]*\) cases have the CPU.*/\1/p;s/.*: \([0-9]*\) calls have the CPU.*/\1/p" | awk '{ n += $1 } END { print n + 0 }')
[ "$cases" -ge 400 ] || fail "only $cases cases ran"
golden=$(cat "$temp"/log.* | grep -c 'conform, 0 do not')
[ "$golden" -eq 2 ] || fail "the golden table did not end"
[ $bad -eq 0 ] && echo "the golden table as compute_75 and compute_80, and $cases random cases have the CPU's bits; all $kernels kernels ran, with no race, no copy read early, no access out of bounds"
exit $bad
