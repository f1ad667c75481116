#!/bin/sh
# Tests the emulator of warp-group products, bulk copies and mbarriers: correct kernels pass in all orders, and kernels with one planted
# fault are caught, with the fault's name.
. tests/ptx/setup
make_ptx "$build/ptx/planted_products"
right=tests/ptx/planted/products.ptx program=$build/ptx/planted_products seeds="1 2 3 4 5 6 7 8"
for kernel in stages fragments; do
    for seed in $(seq 40); do
        PTX_SEED=$seed "$program" $right $kernel > "$temp/out" 2>&1 || { cat "$temp/out"; fail "$kernel, which is right, with seed $seed"; }
    done
done
. tests/ptx/caught
early="has not arrived|was not waited for|nobody wrote"

# products and their registers
caught "no fence" "a product before any wgmma.fence" stages '/wgmma.fence/d'
caught "a fence before a is loaded" "used since the last wgmma.fence" fragments '/wgmma.fence/d;s/^(	ld.shared.v4.u32 	.%r50.*)/	wgmma.fence.sync.aligned;\n\1/'
caught "a wait dropped" "a product that was not waited for" stages '/wait_group/d'
caught "a wait that is off by one" "a product that was not waited for|a race in shared memory: copies" stages 's/(wait_group.sync.aligned 	)0/\11/'
caught "a product that is not committed" "a product that was not waited for" stages '/commit_group/d'
caught "a sum used before the wait" "uses a sum of a product that was not waited for" stages 's/^(	wgmma.wait_group.*)/	add.s32 	%r44, %r41, 0;\n\1/'
caught "a sum cleared before the wait" "uses a sum of a product that was not waited for" stages 's/^(	wgmma.wait_group.*)/	mov.u32 	%r43, 0;\n\1/'
caught "a factor overwritten before the wait" "writes a register that a product which was not waited for reads" fragments 's/^(	wgmma.wait_group.sync.aligned 	1.*)/\1\n	mov.u32 	%r57, 0;/'
caught "sums of a place that has none" "out\[" stages 's/(%rd6, %rd7, )%p5/\1%p6/;s/mov.u32 	%r41, 0/mov.u32 	%r41, 1/'
caught "a product that one warp leaves out" "not all warps of a group" stages 's/^(	wgmma.fence.*)/	setp.eq.s32 	%p9, %r18, 3;\n	@%p9 bra 	$L__skip;\n\1/;s/^(	wgmma.wait_group.*)/\1\n$L__skip:/'
caught "warps that multiply different steps" "another product than that" stages 's/^(	add.s64 	%rd8.*)/\1\n	setp.eq.s32 	%p9, %r18, 2;\n	@%p9 mov.u64 	%rd8, %rd6;/'
caught "lanes of two minds" "another descriptor than that of the warp's other lanes" stages 's/^(	shr.u32 	%r16, %r11, 4;)/\1\n	@%p7 xor.b32 	%r16, %r16, 32;/'

# descriptors
caught "no swizzling" "out\[" stages 's/0x8000002000010000/0x0000002000010000/'
caught "swizzling of 32 bytes" "not in the first row of an atom" stages 's/0x8000002000010000/0xc000002000010000/'
caught "swizzling of 128 bytes" "a stride that is no whole number of atoms" stages 's/0x8000002000010000/0x4000002000010000/'
caught "half a stride" "a stride that is no whole number of atoms" stages 's/0x8000002000010000/0x8000001000010000/'
caught "twice the stride" "out\[|nobody wrote|$early|out of bounds" stages 's/0x8000002000010000/0x8000004000010000/'
caught "an atom that begins elsewhere" "not in the first row of an atom" stages 's/^(	or.b64 	%rd6.*)/\1\n	add.s64 	%rd6, %rd6, 16;/'
caught "steps beyond the rows" "steps that go on beyond" stages 's/(add.s64 	%rd8, %rd6, )2/\13/'
caught "the other operand's place" "out\[|nobody wrote|$early" stages 's/(add.s64 	%rd7, %rd6, )256/\1224/'
caught "a base offset" "a base offset" stages 's/0x8000002000010000/0x8002002000010000/'

# barriers
caught "no fence after making barriers" "after whose making there was no fence" stages '/^	fence/d'
caught "a block's barrier dropped" "no barrier was made|has not met it" stages '/bar.sync/d'
caught "an arrival dropped" "never ends: 1 arrivals and 0 bytes are missing" stages '/^	@%p7 mbarrier.arrive/d'
caught "an arrival by one warp less" "never ends: 1 arrivals and 0 bytes are missing" stages 's/mov.u32 	%r5, 4/mov.u32 	%r5, 5/'
caught "an arrival before the products" "a product that was not waited for|a race" stages '/^	@%p7 mbarrier.arrive/d;s/^(	wgmma.wait_group.*)/	@%p7 mbarrier.arrive.shared::cta.b64 	_, [%r10+16];\n\1/'
caught "arrivals of all lanes" "nobody has waited|an arrival too many" stages 's/@%p7 (mbarrier.arrive)/\1/'
caught "a wait for the ring dropped" "a race|was not waited for|an arrival too many|has not arrived" stages '/\[%r10\+16\], %r9/d;/bra 	.L__stages_empty/d'
caught "a wait for copies dropped" "$early" stages '/\[%r10\], %r8/d;/bra 	.L__stages_full/d'
caught "the phase before" "$early|a wrong parity" stages 's/\[%r10\], %r8;/[%r10], %r9;/;s/mov.u32 	%r40, 0/mov.u32 	%r9, 1/;s/^(	wgmma.fence.*)/	xor.b32 	%r9, %r8, 1;\n\1/'
caught "the first phase always" "a wrong parity" stages 's/\[%r10\], %r8;/[%r10], %r60;/;s/^(	mov.u32 	)%r40, 0;/\1%r60, 0;\n&/'
caught "a ring that begins with a phase" "never ends" stages 's/xor.b32 	%r9, %r8, 1/mov.u32 	%r9, %r8/'
caught "a barrier made twice" "a barrier where there is one" stages 's/(mbarrier.init.* 	)\[%r3\+8\]/\1[%r3+4]/'
caught "a parity that is none" "waits for parity 2" stages 's/\[%r10\], %r8;/[%r10], 2;/'

# copies
caught "bytes that are not expected" "$early|fewer were expected" stages 's/arrive.expect_tx(.*), %r12;/arrive\1;/'
caught "fewer bytes than come" "$early|fewer were expected" stages 's/mov.u32 	%r12, 4608/mov.u32 	%r12, 4096/'
caught "more bytes than come" "never ends: 0 arrivals and 16 bytes are missing" stages 's/mov.u32 	%r12, 4608/mov.u32 	%r12, 4624/'
caught "a copy that is not aligned" "misaligned: a bulk copy" stages 's/mov.u32 	%r14, 512/mov.u32 	%r14, 508/'
caught "a copy from beyond an allocation" "out of bounds: 4096 bytes" stages 's/setp.lt.s32 	%p4, %r6, 4/setp.lt.s32 	%p4, %r6, 5/'
caught "a copy beyond shared memory" "of 9248 bytes of shared memory" stages 's/mov.u32 	%r13, 4096/mov.u32 	%r13, 12288/'
caught "a copy over barriers" "copies over the barrier" stages 's/add.s32 	%r3, %r2, 9216/add.s32 	%r3, %r2, 9200/'
caught "a store where copies go" "which is not understood" stages 's/^(	wgmma.fence.*)/	st.shared.u32 	[%r11], %r1;\n\1/'

# registers that warps exchange (setmaxnreg)
caught "a number of registers that there is not" "not a multiple of 8" stages 's/^(	and.b32 	%r17, %r1, 31;)/	setmaxnreg.inc.sync.aligned.u32 	250;\n\1/'
caught "more registers that are fewer" "are not more than" stages 's/^(	and.b32 	%r17, %r1, 31;)/	setmaxnreg.inc.sync.aligned.u32 	40;\n\1/'

# Random orders alone reveal a missing wait, without race detection: sums are poison.
sed -E '/wait_group/d' $right > "$temp/planted.ptx"
wrong=0
for seed in $seeds; do
    PTX_RACES=0 PTX_SEED=$seed "$program" "$temp/planted.ptx" stages > "$temp/out" 2>&1 || wrong=$((wrong + 1))
done
[ $wrong -gt 0 ] || fail "no order shows the wait that is missing"
[ $bad -eq 0 ] || exit 1

if ! sh repops/cuda/find_nvcc > /dev/null 2>&1; then
    echo "$faults planted faults are caught; no nvcc: none in the library's own code"
    exit 0
fi
need_nvcc
export PTX_ARCH=90 PTX_SMS=1
of_library=$(modules 90 | tr : '\n' | grep '/wgmma.compute_90a.ptx$')
# caught_in NAME TEXT SED: with that change in its code for sm_90a the library must fail, and print TEXT.
caught_in() {
    faults=$((faults + 1))
    sed -E "$3" "$of_library" > "$temp/wgmma.compute_90a.ptx"
    ! cmp -s "$of_library" "$temp/wgmma.compute_90a.ptx" || fail "$1: nothing was planted"
    PTX_MODULES=$(modules 90 | sed "s|$of_library|$temp/wgmma.compute_90a.ptx|") $ran > "$temp/out" 2>&1 &&
        { fail "$1: not caught"; return; }
    grep -qE "$2" "$temp/out" || { tail -n 5 "$temp/out"; fail "$1: not said to be \"$2\""; }
}
ran="$build/cuda/fused --seeds 3 fixed_rings"
caught_in "no fence" "before any wgmma.fence" '/wgmma.fence/d'
caught_in "no wait for products" "a product that was not waited for" '/wgmma.wait_group/d'
caught_in "no commit" "a product that was not waited for" '/wgmma.commit_group/d'
caught_in "no warp's barrier after scales are read" "a race in shared memory: copies to" '/bar.warp.sync/d'
caught_in "no block's barrier" "no barrier was made|has not met it" '/bar.sync/d'
caught_in "no fence after barriers are made" "there was no fence" '/fence.mbarrier_init/d;/fence.proxy/d'
caught_in "no arrivals" "never ends" '/mbarrier.arrive.shared/d'
caught_in "another swizzling" "a stride that is no whole number of atoms|not in the first row" 's/-9223371899415756800/4611686155866406912/'
caught_in "totals that forget the chunks before" "differ" 's/^(	fma.rn.f32 	%f[0-9]+, %f[0-9]+, %f[0-9]+, )(%f[0-9]+);/\10f00000000;/'
caught_in "more registers than there are" "setmaxnreg: the block's warps want" 's/(setmaxnreg.inc.*)232/\1240/'
ran="$build/cuda/fused --seeds 9 fixed_rings"
caught_in "second digits that no panel is known to have" "[1-9][0-9]* differ" '/atom.global.max/d'
ran="$build/cuda/guard --seeds 3 nothing"
caught_in "sums of a checked chunk that begin with those of the one before" "were computed twice and do not fit" \
    '/entry.*fixed_checked/,/^}/s/setp.ne.s32 %adds, (%r[0-9]+), 0;/setp.eq.s32 %adds, \1, \1;/'
ran=$build/cuda/fixed # which has chunks whose sums times powers are no binary32 numbers
caught_in "one rounding where the result is too large" "[1-9][0-9]* lack kept" 's/0f64000000/0f7F800000/'
caught_in "one rounding where the result is too small" "[1-9][0-9]* lack kept" '/mul.rn.f32/{n;s/setp.leu.f32 (.*), 0f00000000/setp.lt.f32 \1, 0f80000001/}'
[ $bad -eq 0 ] && echo "$faults planted faults are caught by their names, some of them in the library's own code"
exit $bad
