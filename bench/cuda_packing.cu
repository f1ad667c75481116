#include "bench/cuda_packing.h"
#include "repops/cuda/gemm/fixed_run.cuh"

template <int digits> static bool run(const fixed_problem &p, const packing_operand *o, void *at) {
    const fixed_lines x = {
        o->data,  o->along ? o->steps : 1,      o->along ? 1 : o->lines, 0, o->lines,
        o->steps, o->along && o->steps % 4 == 0};
    fixed_packed to = fixed_packed_of(p, o->lines);
    to.data = static_cast<uint4 *>(at);
    const int64_t warps = to.groups * to.chunks;
    fixed_pack_kernel<digits, fixed_lines>
        <<<ro_grid(ceil_div(warps, FIXED_PACK_THREADS / 32)), FIXED_PACK_THREADS>>>(x, to, warps);
    return cudaGetLastError() == cudaSuccess;
}

int packing_run(int bits, const packing_operand *x, void *packed) {
    const fixed_problem p = {0, 0, x->steps, 1, bits, "packing"};
    return bits == RO_FIXED_24 ? run<3>(p, x, packed) : run<2>(p, x, packed);
}

int packing_wait(void) {
    return cudaDeviceSynchronize() == cudaSuccess;
}
