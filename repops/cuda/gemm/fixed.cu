/* matmul_fixed, SPEC.md section 3.5. */
#include "repops/cuda/gemm/fixed_run.cuh"

ro_status ro_fixed_multiply(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                            const gemm_out &out) {
    return p.bits == RO_FIXED_24 ? fixed_multiply<3>(d, p, w, out)
                                 : fixed_multiply<2>(d, p, w, out);
}

static bool in_fours(const fixed_lines &x) {
    return x.step == 1 && ((uintptr_t)x.data % 16 | (uint64_t)(x.line | x.next | x.steps) % 4) == 0;
}

ro_status ro_fixed_product(ro_cuda *d, const ro_matmul *product, const float *x, const float *y,
                           float *out) {
    const ro_matmul &v = *product;
    const fixed_problem p = {v.m, v.n, v.k, v.batch, v.bits, "matmul_fixed"};
    fixed_lines a = {x, v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, v.m, v.k, false};
    fixed_lines b = {y, v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, v.n, v.k, false};
    a.fours = in_fours(a), b.fours = in_fours(b);
    return fixed_run(d, p, a, b, gemm_out{out, v.n, 1, v.m * v.n, v.alpha, 0.0f, false});
}

static ro_status matmul_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    return ro_fixed_product(d, &v, static_cast<const float *>(in[0]),
                            static_cast<const float *>(in[1]), static_cast<float *>(out));
}

void ro_cuda_add_fixed(ro_cuda_operator **table) {
    table[RO_OP_MATMUL_FIXED] = matmul_fixed;
}
