/* ro_linear (repops/fused.h). Bias and activation are applied when an element is complete: in the
 * block that summed all of its k, or in the kernel that adds the sums of units. */
#include "repops/cuda/gemm/linear.cuh"

template <bool along_k> static ro_status run(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    const gemm_problem p = {l->rows, l->out, l->in, 1, RO_DOT_CHUNK, RO_MASK_NONE, nullptr, 0};
    const int64_t line = along_k ? l->in : l->out;
    const strided<true> x = {j->x, l->in, 0, l->rows, false};
    const strided<along_k> w = {j->w, line, 0, l->out,
                                !along_k && gemm_in_fours(j->w, line, 0, l->out)};
    return gemm_run<strided<true>, strided<along_k>, linear_out, false, true>(
        d, p, x, w, linear_out::of(j), "linear");
}

/* For few columns: ro_gemm_products transposes the product; a second pass ends the layer. */
static ro_status run_narrow(ro_cuda *d, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    gemm_products product = {};
    product.p = {l->rows, l->out, l->in, 1, RO_DOT_CHUNK, RO_MASK_NONE, nullptr, 0};
    product.a = {j->x, l->in, 1, 0};
    product.b = {j->w, l->transposed ? 1 : l->out, l->transposed ? l->in : 1, 0};
    product.out = {j->y, l->out, 1, 0, 1.0f, 0.0f, false};
    const ro_status status = ro_gemm_products(d, &product, "linear");
    return status == RO_OK ? ro_linear_end(d, j) : status;
}

ro_status ro_cuda_linear(ro_cuda *d, const ro_linear_job *job) {
    if (job->layer.fixed_bits)
        return ro_fixed_linear(d, job);
    if (gemm_few_columns(job->layer.rows, job->layer.out))
        return run_narrow(d, job);
    return job->layer.transposed ? run<true>(d, job) : run<false>(d, job);
}
