/* matmul_fixed, SPEC.md section 3.5, and linear layers of such products. */
#include "repops/cuda/gemm/fixed_run.cuh"
#include "repops/cuda/gemm/linear.cuh"
#include "repops/cuda/gemm/wgmma_run.cuh"
#include "repops/src/matmul.h"

ro_status ro_fixed_multiply(ro_cuda *d, const fixed_problem &p, const fixed_memory &w,
                            const gemm_out &out) {
    return p.bits == RO_FIXED_24   ? fixed_multiply<3>(d, p, w.a, w.b, out)
           : p.bits == RO_FIXED_16 ? fixed_multiply<2>(d, p, w.a, w.b, out)
                                   : fixed_multiply<1>(d, p, w.a, w.b, out);
}

static bool in_fours(const fixed_lines &x) {
    return x.step == 1 && ((uintptr_t)x.data % 16 | (uint64_t)(x.line | x.next | x.steps) % 4) == 0;
}

template <class Out>
static ro_status product(ro_cuda *d, const ro_matmul &v, const float *x, const float *y,
                         const Out &out, const char *what) {
    const fixed_problem p = {v.m, v.n, v.k, v.batch, v.bits, what};
    fixed_lines a = {x, v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k, v.m, v.k, false};
    fixed_lines b = {y, v.trans_b ? v.k : 1, v.trans_b ? 1 : v.n, v.k * v.n, v.n, v.k, false};
    a.fours = in_fours(a), b.fours = in_fours(b);
    return d->has_wgmma ? ro_wgmma_run(d, p, a, b, out) : fixed_run(d, p, a, b, out);
}

static ro_status matmul_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    const gemm_out to = {static_cast<float *>(out), v.n, 1, v.m * v.n, v.alpha, 0.0f, false};
    return product(d, v, static_cast<const float *>(in[0]), static_cast<const float *>(in[1]), to,
                   "matmul_fixed");
}
RO_CUDA_KERNEL(matmul_fixed, matmul_fixed)

ro_status ro_fixed_linear(ro_cuda *d, const ro_linear_job *job) {
    const ro_linear_layer *l = &job->layer;
    ro_matmul v = {};
    v.batch = 1, v.m = l->rows, v.n = l->out, v.k = l->in;
    v.trans_b = l->transposed, v.bits = l->fixed_bits;
    return product(d, v, job->x, job->w, linear_out::of(job), "linear");
}
