/* Fused softmax cross-entropy, SPEC.md section 7.2: a block of threads for each row. The first pass
 * reads the row from memory and keeps what fits of it in shared memory; the sum of exponentials
 * and the gradient find that there and the rest in the second-level cache. */
#include "repops/cuda/rows.cuh"

enum {
    PARTS = (int)RO_CROSS_ENTROPY_COLS_MAX / (int)RO_REDUCE_BLOCK,
    WARPS_MOST = 16,
    READ_AHEAD = 8,
};

/* In shared memory, before the cached elements. */
struct row_scratch {
    float part[PARTS];
    int32_t key[WARPS_MOST];
    float m, l;
};

/* Copies the row's first `cached` elements to `cache`; gives every thread the maximum. */
RO_DEVICE float keep_and_max(const float *x, int cols, int cached, float *cache, row_scratch *s) {
    const int t = threadIdx.x, threads = blockDim.x;
    int32_t key = RO_KEY_LEAST;
    for (int from = t; from < cols; from += threads * READ_AHEAD) {
        float v[READ_AHEAD];
#pragma unroll
        for (int u = 0; u < READ_AHEAD; u++)
            if (from + u * threads < cols)
                v[u] = x[from + u * threads];
#pragma unroll
        for (int u = 0; u < READ_AHEAD; u++)
            if (from + u * threads < cols) {
                key = ro_larger(key, ro_key(v[u]));
                if (from + u * threads < cached)
                    cache[from + u * threads] = v[u];
            }
    }
    key = ro_largest<32>(key);
    if (t % 32 == 0)
        s->key[t / 32] = key;
    __syncthreads();
    for (int w = 0; w < threads / 32; w++)
        key = ro_larger(key, s->key[w]);
    return ro_of_key(key);
}

/* R of exp(x - m) over one block of the row, by a warp; the cached exponentials stay in the cache.
 */
RO_DEVICE float sum_block(const float *x, int from, int end, int cached, float m, float *cache) {
    float lane[4] = {};
#pragma unroll 2
    for (int i = from + threadIdx.x % 32; i < end; i += RO_LANES) {
        float v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < end)
                v[k] = i + 32 * k < cached ? cache[i + 32 * k] : x[i + 32 * k];
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < end) {
                const float e = ro_exp(v[k] - m);
                if (i + 32 * k < cached)
                    cache[i + 32 * k] = e;
                lane[k] = lane[k] + e;
            }
    }
    return ro_fold<1>(lane);
}

RO_DEVICE void sum_blocks(const float *x, int cols, int cached, float m, float *cache,
                          row_scratch *s) {
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int parts = (cols + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK;
    for (int b = warp; b < parts; b += warps) {
        const int from = b * RO_REDUCE_BLOCK, left = cols - from;
        const int end = from + (left < RO_REDUCE_BLOCK ? left : RO_REDUCE_BLOCK);
        const float sum = sum_block(x, from, end, cached, m, cache);
        if (threadIdx.x % 32 == 0)
            s->part[b] = sum;
    }
    __syncthreads();
    if (warp > 0)
        return;
    float lane[4] = {};
    for (int i = threadIdx.x; i < parts; i += RO_LANES)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < parts)
                lane[k] = lane[k] + s->part[i + 32 * k];
    const float sum = ro_fold<1>(lane);
    if (threadIdx.x == 0)
        s->l = parts == 1 ? s->part[0] : sum;
}

RO_DEVICE void write_gradient(const float *x, float *dx, int cols, int cached, float m, float r,
                              float dloss, int id, const float *cache) {
    const int t = threadIdx.x, threads = blockDim.x;
    for (int from = t; from < cols; from += threads * READ_AHEAD / 2) {
        float v[READ_AHEAD / 2];
#pragma unroll
        for (int u = 0; u < READ_AHEAD / 2; u++) {
            const int i = from + u * threads;
            if (i < cols)
                v[u] = i < cached ? cache[i] : x[i];
        }
#pragma unroll
        for (int u = 0; u < READ_AHEAD / 2; u++) {
            const int i = from + u * threads;
            if (i < cols) {
                const float p = (i < cached ? v[u] : ro_exp(v[u] - m)) * r;
                dx[i] = ro_canon((i == id ? p - 1.0f : p) * dloss);
            }
        }
    }
}

/* What an ignored row has, whatever its x is. */
RO_DEVICE void clear_row(const ro_cross_entropy_job &j, int64_t row) {
    if (threadIdx.x == 0)
        j.loss[row] = 0.0f;
    for (int i = threadIdx.x; j.dx && i < (int)j.cols; i += blockDim.x)
        j.dx[row * j.cols + i] = 0.0f;
}

__global__ void __launch_bounds__(WARPS_MOST * 32, 2)
    cross_entropy_kernel(ro_cross_entropy_job j, int cached) {
    RO_SMEM(row_scratch, s);
    float *cache = reinterpret_cast<float *>(s + 1);
    const int64_t row = blockIdx.x;
    const int cols = (int)j.cols, id = j.ids[row];
    const float *x = j.x + row * j.cols;
    const bool ignored = id == j.ignore, valid = id >= 0 && id < cols;
    if (ignored && !j.m && !j.l) {
        clear_row(j, row);
        return;
    }
    const float m = keep_and_max(x, cols, cached, cache, s);
    /* Before the row is overwritten in place. */
    const float target = threadIdx.x == 0 && valid ? x[id] - m : 0.0f;
    sum_blocks(x, cols, cached, m, cache, s);
    __syncthreads();
    const float l = cols > 0 ? s->l : 0.0f;
    if (threadIdx.x == 0) {
        if (j.m)
            j.m[row] = m;
        if (j.l)
            j.l[row] = l;
        j.loss[row] = valid ? ro_canon(ro_log(l) - target) : ro_from_bits(RO_QNAN_BITS);
    }
    if (ignored)
        clear_row(j, row);
    else if (j.dx)
        write_gradient(x, j.dx + row * j.cols, cols, cached, m, 1.0f / l, j.dloss[row], id, cache);
}

/* Two blocks for each multiprocessor, so that one reads while the other computes. */
ro_status ro_cuda_cross_entropy(ro_cuda *d, const ro_cross_entropy_job *job) {
    const int64_t half = (d->shared_memory + 1024) / 2 - 1024 - (int64_t)sizeof(row_scratch);
    const int64_t room = half / (int64_t)sizeof(float),
                  cached = job->cols < room ? job->cols : room;
    const size_t smem = sizeof(row_scratch) + (size_t)cached * sizeof(float);
    if (job->rows == 0)
        return RO_OK;
    const ro_status status = ro_cuda_allow(d, cross_entropy_kernel, "cross_entropy");
    if (status != RO_OK)
        return status;
    RO_LAUNCH(cross_entropy_kernel, ro_grid(job->rows),
              dim3(job->cols <= 2 * RO_REDUCE_BLOCK ? 128 : WARPS_MOST * 32), smem, d->stream, *job,
              (int)cached);
    return ro_cuda_launched(d, "cross_entropy");
}
