/* Fused attention, backward: delta, and the two kernels of attend_backward.cuh. */
#include "repops/cuda/attend_backward.cuh"

/* R(dout * out), a warp for each query: rows are at most RO_ATTENTION_HEAD_MAX long, one block. */
__global__ void __launch_bounds__(ROW_THREADS)
    attend_delta_kernel(float *delta, const float *dout, const float *out, int64_t rows, int size) {
    const int64_t row = (int64_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    float lane[4] = {};
    if (row >= rows)
        return;
    for (int i = threadIdx.x % 32; i < size; i += RO_LANES)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < size)
                lane[k] =
                    ro_fma(dout[row * size + i + 32 * k], out[row * size + i + 32 * k], lane[k]);
    const float sum = ro_fold<1>(lane);
    if (threadIdx.x % 32 == 0)
        delta[row] = sum;
}

static ro_status fill(ro_cuda *d, float *x, int64_t count, float value) {
    return map<float>(
        d, x, count, [=] __device__(int64_t) { return value; }, "attention");
}

/* dq and dk are products with K = 0; summed over the heads of a group, a zero is +0. */
static ro_status empty_backward(ro_cuda *d, const ro_attention_grad_job *job) {
    const ro_attention *a = job->a;
    const float zero = ro_canon(0.0f * a->scale);
    const int64_t keys = a->batch * a->kv_heads * a->keys * a->head_size;
    ro_status status = fill(d, job->dq, a->batch * a->heads * a->queries * a->head_size, zero);
    if (status == RO_OK)
        status = fill(d, job->dk, keys, a->kv_heads == a->heads ? zero : 0.0f + zero);
    return status == RO_OK ? fill(d, job->dv, keys, 0.0f) : status;
}

static ro_status run(ro_cuda *d, const backward_job &j, const float *out, float *delta,
                     int64_t rows) {
    RO_LAUNCH(attend_delta_kernel, ro_grid(ceil_div(rows, ROW_WARPS)), dim3(ROW_THREADS), 0,
              d->stream, delta, j.dout, out, rows, (int)j.size);
    ro_status status = ro_cuda_launched(d, "attention");
    if (status == RO_OK)
        status = ro_cuda_attend_keys(d, j);
    return status == RO_OK ? ro_cuda_attend_queries(d, j) : status;
}

ro_status ro_cuda_attention_backward(ro_cuda *d, const ro_attention_grad_job *job) {
    const ro_attention *a = job->a;
    const int64_t rows = a->batch * a->heads * a->queries;
    void *delta;
    if (a->batch == 0 || a->queries == 0 || a->keys == 0)
        return empty_backward(d, job);
    ro_status status = ro_cuda_alloc(d, (size_t)rows * sizeof(float), &delta);
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
        ro_divider(a->queries),
        a->queries,
        a->keys,
        a->head_size,
        a->heads / a->kv_heads,
        a->scale,
        a->causal != 0,
        in_fours(a->head_size, job->q, job->k, job->v, job->dout, job->dq, job->dk, job->dv)};
    status = run(d, j, job->out, static_cast<float *>(delta), rows);
    ro_cuda_free(d, delta);
    return status;
}
