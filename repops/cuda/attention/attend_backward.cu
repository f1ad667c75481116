/* Fused attention, backward: delta, and the two kernels of attend_backward.cuh. */
#include "repops/cuda/attention/attend_backward.cuh"

/* Computes R(dout * out), a warp per query. Rows have at most RO_ATTENTION_HEAD_MAX elements, one
 * block. */
__global__ void __launch_bounds__(ROW_THREADS)
    attend_delta_kernel(float *delta, const float *dout, const float *out, attend_rows out_rows,
                        ro_divider tokens, int64_t rows, int size) {
    const int64_t row = (int64_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    float lane[4] = {};
    if (row >= rows)
        return;
    const int64_t first = out_rows.line(0, tokens, row);
    for (int i = threadIdx.x % 32; i < size; i += RO_LANES)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < size)
                lane[k] = ro_fma(dout[first + i + 32 * k], out[first + i + 32 * k], lane[k]);
    const float sum = ro_fold<1>(lane);
    if (threadIdx.x % 32 == 0)
        delta[row] = sum;
}

/* ---- results without queries or keys ---- */

enum { FILL_THREADS = 256 };

__global__ void __launch_bounds__(FILL_THREADS)
    attend_fill_kernel(float *x, attend_rows rows, ro_divider tokens, ro_divider size,
                       int64_t count, float value) {
    const int64_t e = (int64_t)blockIdx.x * FILL_THREADS + threadIdx.x, row = size.quotient(e);
    if (e < count)
        x[rows.line(0, tokens, row) + e - row * size.divisor] = value;
}

ro_status ro_cuda_attend_fill(ro_cuda *d, const ro_attention *a, float *x, int64_t heads,
                              int64_t tokens, int64_t row, float value) {
    const int64_t count = a->batch * heads * tokens * a->head_size;
    if (count == 0)
        return RO_OK;
    RO_LAUNCH(attend_fill_kernel, ro_grid(ceil_div(count, FILL_THREADS)), dim3(FILL_THREADS), 0,
              d->stream, x, rows_of(a, heads, tokens, row), ro_divider(tokens),
              ro_divider(a->head_size), count, value);
    return ro_cuda_launched(d, "attention");
}

/* dq and dk are products with K = 0; summed over a group's heads, a zero is +0. */
static ro_status empty_backward(ro_cuda *d, const ro_attention_grad_job *job) {
    const ro_attention *a = job->a;
    const float zero = ro_canon(0.0f * a->scale),
                sum = a->kv_heads == a->heads ? zero : 0.0f + zero;
    ro_status status = ro_cuda_attend_fill(d, a, job->dq, a->heads, a->queries, a->q_row, zero);
    if (status == RO_OK)
        status = ro_cuda_attend_fill(d, a, job->dk, a->kv_heads, a->keys, a->k_row, sum);
    return status == RO_OK
               ? ro_cuda_attend_fill(d, a, job->dv, a->kv_heads, a->keys, a->v_row, 0.0f)
               : status;
}

/* ---- launches ---- */

ro_status ro_cuda_attend_heads(ro_cuda *d, const ro_attention *a) {
    return a->batch <= INT32_MAX / a->heads
               ? RO_OK
               : ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: attention of more than 2^31 heads");
}

static ro_status run_backward(ro_cuda *d, const backward_job &j, const float *out, float *delta,
                              int64_t rows) {
    RO_LAUNCH(attend_delta_kernel, ro_grid(ceil_div(rows, ROW_WARPS)), dim3(ROW_THREADS), 0,
              d->stream, delta, j.dout, out, j.out_rows, j.tokens, rows, (int)j.size);
    ro_status status = ro_cuda_launched(d, "attention");
    if (status == RO_OK)
        status = ro_cuda_attend_keys(d, j);
    return status == RO_OK ? ro_cuda_attend_queries(d, j) : status;
}

ro_status ro_cuda_attention_backward(ro_cuda *d, const ro_attention_grad_job *job) {
    const ro_attention *a = job->a;
    const int64_t rows = a->batch * a->heads * a->queries;
    void *delta;
    ro_status status = ro_cuda_attend_heads(d, a);
    if (status != RO_OK)
        return status;
    if (a->batch == 0 || a->queries == 0 || a->keys == 0)
        return empty_backward(d, job);
    status = ro_cuda_alloc(d, (size_t)rows * sizeof(float), &delta);
    if (status != RO_OK)
        return status;
    const backward_job j = {
        job->q,
        job->k,
        job->v,
        job->m,
        job->l,
        job->dout,
        static_cast<float *>(delta),
        job->dq,
        job->dk,
        job->dv,
        {a->batch * a->kv_heads, 0},
        dropout_of(a),
        bias_of(a),
        rows_of(a, a->heads, a->queries, a->q_row),
        rows_of(a, a->kv_heads, a->keys, a->k_row),
        rows_of(a, a->kv_heads, a->keys, a->v_row),
        rows_of(a, a->heads, a->queries, a->out_row),
        ro_divider(a->queries),
        a->queries,
        a->keys,
        a->head_size,
        a->heads / a->kv_heads,
        a->scale,
        a->causal != 0,
        in_fours(a, job->q, job->k, job->v, job->dout, job->dq, job->dk, job->dv),
        window_of(a)};
    status = run_backward(d, j, job->out, static_cast<float *>(delta), rows);
    ro_cuda_free(d, delta);
    return status;
}
