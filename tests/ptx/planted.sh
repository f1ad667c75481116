#!/bin/sh
# The emulator tells right code from wrong: correct kernels pass in all orders, and kernels with one planted fault are caught, with the
# fault's name. With nvcc the same is tested for the library's own code.
. tests/ptx/setup
make_ptx "$build/ptx/planted"
right=tests/ptx/planted/right.ptx program=$build/ptx/planted seeds="1 2 3 4 5 6 7 8"
for kernel in fours sums mirror mirror_warp mirror_shuffle copies; do
    for seed in $seeds; do
        PTX_SEED=$seed "$build/ptx/planted" $right $kernel > "$temp/out" 2>&1 || { cat "$temp/out"; fail "$kernel, which is right, with seed $seed"; }
    done
done

. tests/ptx/caught
caught "operands of an inline store swapped" "out\[1\] is 2.5" fours '/st.global.v4/s/%f2, %f3/%f3, %f2/'
caught "a vector that is not aligned" "misaligned: 16 bytes" fours '/ld.global.v4/s/\[%rd4\]/[%rd4+4]/'
caught "a read beyond an allocation" "out of bounds: 16 bytes at" fours '/ld.global.v4/s/\[%rd4\]/[%rd4+1024]/'
caught "a read before an allocation" "are not in global memory" fours '/ld.global.v4/s/\[%rd4\]/[%rd4+-16]/'
caught "a vector that ends beyond an allocation" "out of bounds: 8 bytes" fours '/ld.global.v4/s/\[%rd4\]/[%rd4+1024]/;s/ld.global.v4.f32.*/ld.global.u64 %rd9, [%rd4+1024];/'
caught "a read of what was freed" "out of bounds: 16 bytes at" fours '' freed
caught "a write to a parameter" "out of bounds" fours '/st.global.v4/s/\[%rd5\]/[fours_in]/'
caught "an addition without .rn" '`add.f32` is refused: it does not say .rn' sums 's/add.rn.f32/add.f32/'
caught "subnormals flushed" '`add.rn.ftz.f32` is refused: it flushes subnormals' sums 's/add.rn.f32/add.rn.ftz.f32/'
caught "an approximation" 'is refused: it approximates' sums 's/add.rn.f32 ([^,]*), ([^,]*),.*/ex2.approx.f32 \1, \2;/;s/add.rn.f32.*/ex2.approx.f32 %f2, %f1;/'
caught "an unknown mnemonic" '`add.rz.f32` is not in the list' sums 's/add.rn.f32/add.rz.f32/'
caught "a loop that goes once too often" "out of bounds: 4 bytes" sums '/setp.lt.u32/s/256/320/'
caught "a barrier dropped" "a race in shared memory" mirror '/bar.sync/d'
caught "a barrier of one warp" "a divergent barrier" mirror 's/bar.sync.*/setp.lt.u32 %p1, %r1, 32; @%p1 bra $L1; bar.sync 0; bra $L2; $L1: bar.sync 0; $L2: /'
caught "a barrier that some threads miss" "a barrier for 64 threads, of which 32 came" mirror 's/bar.sync.*/setp.lt.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0;/'
caught "a barrier under a guard" "a barrier under a guard" mirror 's/bar.sync.*/setp.lt.u32 %p1, %r1, 99; @%p1 bar.sync 0;/'
caught "a write beyond shared memory" "of 1024 bytes of shared memory" mirror '/st.shared.v4/s/\[%r6\]/[%r6+1024]/'
caught "less shared memory than is used" "of 1008 bytes of shared memory" mirror '' shared=1008
caught "a vector in shared memory not aligned" "misaligned: 16 bytes" mirror '/ld.shared.v4/s/\[%r7\]/[%r7+4]/'
caught "a warp's barrier dropped" "a race in shared memory" mirror_warp '/bar.warp.sync/d'
caught "a warp's barrier for some lanes" "names lanes" mirror_warp 's/bar.warp.sync.*/bar.warp.sync 65535;/'
caught "a shuffle with lanes that ended" "that have ended" mirror_shuffle '/setp.eq.s32/{s/^.*$/setp.eq.s32 %p1, %r6, 0; @%p1 ret;/}'
caught "a shuffle that names too few" "names lanes 0xffff" mirror_shuffle '/mov.u32 	%r8/s/-1/65535/'
caught "a shuffle from elsewhere" "out\[" mirror_shuffle '/shfl.sync/s/%r7, %r7/%r6, %r7/'
caught "a wait that is off by one" "has not arrived" copies 's/wait_group 0/wait_group 1/'
caught "a wait dropped" "has not arrived" copies '/wait_group 0/d'
caught "a copy that is not committed" "has not arrived" copies '/%r8\], \[%rd7/{n;d}'
caught "a copy that is not aligned" "misaligned: 8 bytes" copies '/cp.async.ca/s/\[%rd5\]/[%rd5+4]/'
caught "a barrier after a wait dropped" "a race in shared memory" copies '/wait_group 1/{n;d}'
caught "too many threads" "96 threads to a block, of at most 64" fours '' threads=96
caught "a register that is not declared" "no register %q1" sums 's/add.rn.f32 	%f2/add.rn.f32 %q1/'
caught "a directive that is not known" "a directive that is not understood" sums 's/\.reg \.f32.*/&.local .align 4 .b8 x[4];/'
caught "a label that is not there" "no label" sums 's/bra 	\$L__sums_1/bra $L__none/'

# Random orders alone reveal a missing barrier, without race detection.
for kernel in mirror mirror_warp; do
    sed -E '/bar.(warp.)?sync/d' $right > "$temp/planted.ptx"
    wrong=0
    for seed in $(seq 40); do
        PTX_RACES=0 PTX_SEED=$seed "$build/ptx/planted" "$temp/planted.ptx" $kernel > "$temp/out" 2>&1 || wrong=$((wrong + 1))
    done
    [ $wrong -gt 0 ] || fail "$kernel: no order shows the barrier that is missing"
done
[ $bad -eq 0 ] || exit 1

if ! sh repops/cuda/find_nvcc > /dev/null 2>&1; then
    echo "$faults planted faults are caught; no nvcc: none in the library's own code"
    exit 0
fi
need_nvcc
export PTX_ARCH=80
# caught_in FILE TEXT SED COMMAND...: with that change in one file's code the library must fail, and print TEXT.
caught_in() {
    file=$1 text=$2 change=$3
    shift 3
    faults=$((faults + 1))
    from=$(modules 80 | tr : '\n' | grep "/$file.compute_80.ptx$")
    sed -E "$change" "$from" > "$temp/$file.compute_80.ptx"
    ! cmp -s "$from" "$temp/$file.compute_80.ptx" || fail "$file: nothing was planted"
    PTX_MODULES=$(modules 80 | sed "s|$from|$temp/$file.compute_80.ptx|") "$@" > "$temp/out" 2>&1 && { fail "$file: $change: not caught"; return; }
    grep -qF "$text" "$temp/out" || { tail -n 5 "$temp/out"; fail "$file: $change: not said to be \"$text\""; }
}
cases() { "$build/cuda/cases" --seeds 2 --most 40000 "$@"; }
cases matmul > "$temp/out" 2>&1 && fail "code ran that PTX_MODULES does not name"
caught_in matmul "has not arrived" 's/cp.async.wait_group [01];/cp.async.wait_group 2;/' cases matmul
caught_in matmul "a race in shared memory" '/bar.sync/d' cases matmul
caught_in matmul "differ" 's/fma.rn.f32 (.*), (%f[0-9]+), (%f[0-9]+), (%f[0-9]+);/sub.rn.f32 \1, \2, \4;/' cases matmul
caught_in linear "differ" '/st.global.v4.f32/s/\{(%f[0-9]+), (%f[0-9]+)/{\2, \1/' "$build/cuda/fused" --seeds 12 linear
caught_in fixed "were computed twice and do not fit" \
    '/entry.*fixed_checked/,/^}/s/(mma.sync[^{]*\{[^}]*\}, )\{(%r[0-9]+), (%r[0-9]+),/\1{\3, \2,/' "$build/cuda/guard" --seeds 3 nothing
caught_in fixed_guard "a flip is not found" '/atom.global.max/d' "$build/cuda/guard" --seeds 3 places
caught_in attend_merge "a race in shared memory" '/bar.sync/d' "$build/cuda/fused" --seeds 12
[ $bad -eq 0 ] && echo "$faults planted faults are caught by their names, some of them in the library's own code"
exit $bad
