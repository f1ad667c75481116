#!/bin/sh
# Checks that take too long for tests/ptx: ten times as many random cases of compiled PTX, and products whose inner loop is
# unrolled by 16, 8 and 4, with the same bits.
# Usage: ptx.sh BUILD_DIR
build=$1
sh tests/ptx/bits.sh "$build" 10 || exit $?
. tests/ptx/setup
need_nvcc
# Replaces the library's code of products; its other objects stay.
for steps in 16 8 4; do
    for arch in 75 80; do
        files=$(modules $arch)
        for source in $(grep -l 'gemm_run\|gemm_launch' repops/cuda/*/*.cu); do
            name=$(echo "$source" | sed 's|^repops/cuda/||; s|\.cu$||').compute_$arch.ptx code=$build/unroll$steps/$name
            make_ptx "$code"
            grep -q '\.local' "$code" && fail "$code: fragments lie in memory"
            files=$(echo "$files" | sed "s|$build/obj/repops/cuda/$name|$code|")
        done
        export PTX_ARCH=$arch PTX_MODULES="$files"
        "$build/cuda/sgemm" --seeds 40 --most 200000 > "$temp/out" 2>&1 || { tail -n 5 "$temp/out"; fail "ro_sgemm, $steps steps, compute_$arch"; }
        "$build/cuda/fused" --seeds 24 linear matmul_tiles linear_tiles conv_tiles > "$temp/out" 2>&1 || { tail -n 5 "$temp/out"; fail "tiles, $steps steps, compute_$arch"; }
        "$build/cuda/cases" --seeds 4 --most 200000 matmul conv2d conv2d_dx conv2d_dw > "$temp/out" 2>&1 || { tail -n 5 "$temp/out"; fail "products, $steps steps, compute_$arch"; }
    done
done
[ $bad -eq 0 ] && echo "ten times as many cases have the CPU's bits, and products with 16, 8 and 4 steps unrolled"
exit $bad
