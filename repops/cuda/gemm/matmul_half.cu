/* matmul with a b of 16-bit elements, which are widened while they are copied to shared memory:
 * SPEC.md section 3.1. */
#include "repops/cuda/gemm/gemm_plan.cuh"
#include "repops/src/matmul.h"

struct half_job {
    const ro_call *call;
    ro_matmul v;
    const float *a;
    const uint16_t *b;
    float *out;
};

template <bool a_along_k, bool b_along_k> static ro_status run_kind(ro_cuda *d, const half_job &j) {
    typedef strided<a_along_k> A;
    typedef strided<b_along_k, uint16_t> B;
    const ro_matmul &v = j.v;
    const int64_t a_line = a_along_k ? v.k : v.m, b_line = b_along_k ? v.k : v.n;
    const int64_t a_next = v.m * v.k, b_next = v.k * v.n, next = v.m * v.n;
    const gemm_problem p = {v.m, v.n, v.k, v.batch, v.chunk, v.mask, nullptr, v.window};
    const A a = {j.a, a_line, a_next, v.m, !a_along_k && gemm_in_fours(j.a, a_line, a_next, v.m)};
    /* Four elements are 8 bytes. */
    const bool fours = ((uintptr_t)j.b % 8 | (uint64_t)(b_line | b_next | v.n) % 4) == 0;
    const B b = {j.b, b_line, b_next, v.n, !b_along_k && fours, j.call->input[1].dtype == RO_F16};
    const gemm_out out = {j.out, v.n, 1, next, v.alpha, 0.0f, gemm_in_fours(j.out, v.n, next, v.n)};
    if (v.mask != RO_MASK_NONE)
        return gemm_run<A, B, gemm_out, true, false>(d, p, a, b, out, "matmul");
    return gemm_run<A, B, gemm_out, false, true>(d, p, a, b, out, "matmul");
}

ro_status ro_cuda_matmul_half(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const half_job j = {call, ro_matmul_of(call), static_cast<const float *>(in[0]),
                        static_cast<const uint16_t *>(in[1]), static_cast<float *>(out)};
    if (j.v.trans_a)
        return j.v.trans_b ? run_kind<false, true>(d, j) : run_kind<false, false>(d, j);
    return j.v.trans_b ? run_kind<true, true>(d, j) : run_kind<true, false>(d, j);
}
