/* matmul and ro_sgemm, SPEC.md section 3.1. */
#include "repops/cuda/gemm/gemm_plan.cuh"
#include "repops/src/matmul.h"

/* Returns an operand with stride `outer` of its outer index and stride `step` of k. */
template <bool along_k>
static strided<along_k> operand(const gemm_matrix *x, int64_t outer, int64_t step, int64_t count) {
    const int64_t line = along_k ? outer : step;
    return {x->data, line, x->next, count,
            !along_k && gemm_in_fours(x->data, line, x->next, count)};
}

template <bool a_along_k, bool b_along_k>
static ro_status run_kind(ro_cuda *d, const gemm_products *x, const char *what) {
    const auto a = operand<a_along_k>(&x->a, x->a.row, x->a.col, x->p.m);
    const auto b = operand<b_along_k>(&x->b, x->b.col, x->b.row, x->p.n);
    typedef strided<a_along_k> A;
    typedef strided<b_along_k> B;
    if (x->p.mask != RO_MASK_NONE)
        return gemm_run<A, B, gemm_out, true, false>(d, x->p, a, b, x->out, what);
    return gemm_run<A, B, gemm_out, false, true>(d, x->p, a, b, x->out, what);
}

static ro_status run_products(ro_cuda *d, const gemm_products *x, const char *what) {
    const bool a = x->a.col == 1, b = x->b.row == 1 && x->b.col != 1;
    if (a)
        return b ? run_kind<true, true>(d, x, what) : run_kind<true, false>(d, x, what);
    return b ? run_kind<false, true>(d, x, what) : run_kind<false, false>(d, x, what);
}

static void swap(int64_t *a, int64_t *b) {
    const int64_t t = *a;
    *a = *b, *b = t;
}

/* Transposes a product with few columns into one with few rows. */
static void transpose(gemm_products *x) {
    const gemm_matrix a = {x->b.data, x->b.col, x->b.row, x->b.next};
    x->b = {x->a.data, x->a.col, x->a.row, x->a.next};
    x->a = a;
    swap(&x->p.m, &x->p.n);
    swap(&x->out.row, &x->out.col);
}

ro_status ro_gemm_products(ro_cuda *d, gemm_products *x, const char *what) {
    if (x->p.mask == RO_MASK_NONE && gemm_few_columns(x->p.m, x->p.n))
        transpose(x);
    x->out.vectors = x->out.col == 1 && gemm_in_fours(x->out.c, x->out.row, x->out.next, x->p.n);
    return run_products(d, x, what);
}

static ro_status matmul(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_matmul v = ro_matmul_of(call);
    if (call->input[1].dtype != RO_F32)
        return ro_cuda_matmul_half(d, call, in, out);
    gemm_products x = {};
    x.p = {v.m, v.n, v.k, v.batch, v.chunk, v.mask, nullptr, v.window};
    x.a = {static_cast<const float *>(in[0]), v.trans_a ? 1 : v.k, v.trans_a ? v.m : 1, v.m * v.k};
    x.b = {static_cast<const float *>(in[1]), v.trans_b ? 1 : v.n, v.trans_b ? v.k : 1, v.k * v.n};
    x.out = {static_cast<float *>(out), v.n, 1, v.m * v.n, v.alpha, 0.0f, false};
    return ro_gemm_products(d, &x, "matmul");
}
RO_CUDA_KERNEL(matmul, matmul)

ro_status ro_cuda_sgemm(ro_cuda *d, const ro_products *p) {
    gemm_products x = {};
    x.p = {p->m, p->n, p->k, p->batch, RO_DOT_CHUNK, RO_MASK_NONE, nullptr, 0};
    x.a = {p->a, p->a_row, p->a_col, p->a_next};
    x.b = {p->b, p->b_row, p->b_col, p->b_next};
    x.out = {p->c, p->c_row, 1, p->c_next, p->alpha, p->beta, false};
    return ro_gemm_products(d, &x, "sgemm");
}
