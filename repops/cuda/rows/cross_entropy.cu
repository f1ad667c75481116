/* Fused softmax cross-entropy, SPEC.md section 7.2: one block of threads per row. The first pass
 * reads the row from memory and keeps it in shared memory, and what does not fit there in
 * registers, if these have room. Otherwise the sum of exponentials and the gradient read the rest
 * again, from the L2 cache.
 *
 * Without care instructions would limit it before memory does: so addresses differ by constants,
 * and only the last elements of a row are tested for its end. */
#include "repops/cuda/rows/rows.cuh"

enum {
    PARTS = (int)RO_CROSS_ENTROPY_COLS_MAX / (int)RO_REDUCE_BLOCK,
    FEW = 128, /* threads for rows of one or two blocks of R */
    MANY = 512,
    WIDE = 256,                   /* threads for rows that are also kept in registers: */
    WIDE_BLOCKS = 3,              /* blocks of R for each warp */
    WIDE_AT_ONCE = 4,             /* used instead of AT_ONCE in that case */
    SLOTS = RO_REDUCE_BLOCK / 32, /* elements of a thread in a block of R */
    READ_AHEAD = 16,              /* elements that a thread loads at once from memory */
    AT_ONCE = 8,                  /* the same from a cache */
};

/* Shared memory before the cached elements. */
struct row_scratch {
    float part[PARTS];
    int32_t key[MANY / 32];
    float l;
};

/* Calls f<N>(i) for a span: N elements i, i + THREADS, ... are this thread's. N is EACH as long as
 * all threads have so many left, then half of that, down to 1. */
template <int THREADS, int EACH, class F> RO_DEVICE void chunks(int from, int end, F f) {
    const int t = threadIdx.x;
    if constexpr (EACH > 1) {
#pragma unroll 1
        for (; end - from >= EACH * THREADS; from += EACH * THREADS)
            f.template operator()<EACH>(from + t);
        chunks<THREADS, EACH / 2>(from, end, f);
    } else {
#pragma unroll 1
        for (int i = from + t; i < end; i += THREADS)
            f.template operator()<1>(i);
    }
}

/* Returns the largest of the thread's keys in a span and `key`. KEEP: also stores the span in
 * `cache`. */
template <int THREADS, bool KEEP>
RO_DEVICE int32_t largest_of(const float *x, int from, int end, float *cache, int32_t key) {
    chunks<THREADS, READ_AHEAD>(from, end, [&]<int N>(int i) {
        float v[N];
#pragma unroll
        for (int u = 0; u < N; u++)
            v[u] = KEEP ? __ldcs(x + i + u * THREADS) : x[i + u * THREADS];
#pragma unroll
        for (int u = 0; u < N; u++) {
            key = ro_larger(key, ro_key(v[u]));
            if (KEEP)
                cache[i + u * THREADS] = v[u];
        }
    });
    return key;
}

/* Copies the first `cached` elements to `cache`. Returns the largest key of this thread's. */
template <int THREADS>
RO_DEVICE int32_t keep_and_max(const float *x, int cols, int cached, float *cache) {
    const int32_t key = largest_of<THREADS, true>(x, 0, cached, cache, RO_KEY_LEAST);
    return largest_of<THREADS, false>(x, cached, cols, cache, key);
}

/* Gives every thread the maximum. */
template <int THREADS> RO_DEVICE float row_max(int32_t key, row_scratch *s) {
    const int t = threadIdx.x;
    key = ro_largest<32>(key);
    if (t % 32 == 0)
        s->key[t / 32] = key;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++)
        key = ro_larger(key, s->key[w]);
    return ro_of_key(key);
}

/* Returns exp(x) for x <= 0, and any number for a NaN. */
RO_DEVICE float exp_below(float x) {
    return ro_exp_down(ro_cut_below(x, -106.0f));
}

/* Returns R of exp(x - m) over one block of the row, computed by a warp. Exponentials of cached
 * elements replace these. */
template <bool CACHED, int AT_A_TIME>
RO_DEVICE float sum_block(const float *x, int from, int end, float m, float *cache) {
    const float *p = CACHED ? cache : x;
    const int t = threadIdx.x % 32;
    float lane[4] = {};
    const auto take = [&](int k, int i, float v) {
        const float e = exp_below(v - m);
        if (CACHED)
            cache[i] = e;
        lane[k] = lane[k] + e;
    };
#pragma unroll 1
    for (; end - from >= 32 * AT_A_TIME; from += 32 * AT_A_TIME) {
        float v[AT_A_TIME];
#pragma unroll
        for (int u = 0; u < AT_A_TIME; u++)
            v[u] = p[from + t + 32 * u];
#pragma unroll
        for (int u = 0; u < AT_A_TIME; u++)
            take(u % 4, from + t + 32 * u, v[u]);
    }
#pragma unroll 1
    for (; from < end; from += RO_LANES)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (from + t + 32 * k < end)
                take(k, from + t + 32 * k, p[from + t + 32 * k]);
    return ro_fold<1>(lane);
}

/* Sums the blocks of a row whose elements start at x, and stores their sums in `part`. The cached
 * elements are whole blocks, or all. */
template <int THREADS, int AT_A_TIME>
RO_DEVICE void sum_blocks(const float *x, int cols, int cached, float m, float *cache,
                          float *part) {
    const int warp = threadIdx.x / 32;
    const int parts = (cols + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK;
    for (int b = warp; b < parts; b += THREADS / 32) {
        const int from = b * RO_REDUCE_BLOCK, left = cols - from;
        const int end = from + (left < RO_REDUCE_BLOCK ? left : RO_REDUCE_BLOCK);
        const float sum = from < cached ? sum_block<true, AT_A_TIME>(x, from, end, m, cache)
                                        : sum_block<false, AT_A_TIME>(x, from, end, m, cache);
        if (threadIdx.x % 32 == 0)
            part[b] = sum;
    }
}

/* Sums the results of all blocks of a row, and stores them in s->l. */
RO_DEVICE void sum_parts(int parts, float m, row_scratch *s) {
    if (threadIdx.x >= 32)
        return;
    float lane[4] = {};
    for (int i = threadIdx.x; i < parts; i += RO_LANES)
#pragma unroll
        for (int k = 0; k < 4; k++)
            if (i + 32 * k < parts)
                lane[k] = lane[k] + s->part[i + 32 * k];
    const float sum = ro_fold<1>(lane);
    /* If m is infinite or a NaN, some x - m is a NaN, which exp_below does not propagate. */
    const bool finite = ro_abs(m) < ro_from_bits(RO_INFINITY_BITS);
    if (threadIdx.x == 0)
        s->l = !finite ? ro_from_bits(RO_QNAN_BITS) : parts == 1 ? s->part[0] : sum;
}

/* The first elements of a row, in registers: BLOCKS blocks of R per warp, in turn. */
template <int THREADS, int BLOCKS> struct held_blocks {
    static constexpr int WARPS = THREADS / 32;
    static constexpr int COUNT = WARPS * BLOCKS * (int)RO_REDUCE_BLOCK;
    float v[BLOCKS > 0 ? BLOCKS : 1][SLOTS];

    /* Returns which block of the row is block b of this warp. */
    static RO_DEVICE int block(int b) {
        return b * WARPS + threadIdx.x / 32;
    }

    /* Calls f(value, index in the row) for each element. */
    template <class F> RO_DEVICE void each(F f) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
#pragma unroll
            for (int u = 0; u < SLOTS; u++)
                f(v[b][u], block(b) * RO_REDUCE_BLOCK + threadIdx.x % 32 + 32 * u);
    }

    /* Reads the elements. Returns the largest of their keys and `key`. */
    RO_DEVICE int32_t read(const float *x, int32_t key) {
        each([=](float &value, int i) { value = __ldcs(x + i); });
        each([&](float &value, int) { key = ro_larger(key, ro_key(value)); });
        return key;
    }

    /* Replaces elements by exponentials, and sums each block. */
    RO_DEVICE void sum(float m, float *part) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            float lane[4] = {};
#pragma unroll
            for (int u = 0; u < SLOTS; u++) {
                v[b][u] = exp_below(v[b][u] - m);
                lane[u % 4] = lane[u % 4] + v[b][u];
            }
            const float sum = ro_fold<1>(lane);
            if (threadIdx.x % 32 == 0)
                part[block(b)] = sum;
        }
    }

    template <class F> RO_DEVICE void write(float *dx, F f) {
        each([=](float &value, int i) { __stcs(dx + i, f(value)); });
    }

    /* Returns the thread that has element i of the row. */
    static RO_DEVICE int owner(int i) {
        return i < COUNT ? i / RO_REDUCE_BLOCK % WARPS * 32 + i % 32 : (i - COUNT) % THREADS;
    }
};

/* Sets dx = f(x) in a span. dx is not read again here, so the L2 cache is left to x. */
template <int THREADS, class F>
RO_DEVICE void write_span(const float *x, float *dx, int from, int end, F f) {
    chunks<THREADS, AT_ONCE>(from, end, [&]<int N>(int i) {
        float v[N];
#pragma unroll
        for (int u = 0; u < N; u++)
            v[u] = x[i + u * THREADS];
#pragma unroll
        for (int u = 0; u < N; u++)
            __stcs(dx + i + u * THREADS, f(v[u]));
    });
}

/* Computes the gradient as if there were no label, and then the label's element again, in the
 * thread that wrote it: so no other element is compared with the label. x begins after the elements
 * held in registers. */
template <int THREADS, class H>
RO_DEVICE void write_gradient(const float *x, float *dx, int cols, int cached, H &held,
                              const float *cache, float m, float l, float dloss, int id,
                              float target) {
    const float r = 1.0f / l;
    const auto of_exp = [=](float e) { return ro_canon(e * r * dloss); };
    held.write(dx, of_exp);
    float *after = dx + H::COUNT;
    write_span<THREADS>(cache, after, 0, cached, of_exp);
    write_span<THREADS>(x, after, cached, cols - H::COUNT,
                        [=](float v) { return ro_canon(exp_below(v - m) * r * dloss); });
    if (id >= 0 && id < cols && (int)threadIdx.x == H::owner(id))
        __stcs(dx + id, ro_canon((exp_below(target) * r - 1.0f) * dloss));
}

/* Writes the results of an ignored row, which do not depend on its x. */
template <int THREADS> RO_DEVICE void clear_row(const ro_cross_entropy_job &j, int64_t row) {
    if (threadIdx.x == 0)
        j.loss[row] = 0.0f;
    for (int i = threadIdx.x; j.dx && i < (int)j.cols; i += THREADS)
        __stcs(j.dx + row * j.cols + i, 0.0f);
}

/* Each warp keeps BLOCKS blocks of R in registers; all warps keep the next `cached` elements in
 * shared memory. */
template <int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS > 0 ? 2 : 2 * MANY / THREADS)
    cross_entropy_kernel(ro_cross_entropy_job j, int cached) {
    RO_SMEM(row_scratch, s);
    float *cache = reinterpret_cast<float *>(s + 1);
    held_blocks<THREADS, BLOCKS> held;
    const int64_t row = blockIdx.x;
    const int cols = (int)j.cols, id = j.ids[row], rest = cols - held.COUNT;
    const float *x = j.x + row * j.cols, *after = x + held.COUNT;
    const bool ignored = id == j.ignore, valid = id >= 0 && id < cols;
    if (ignored && !j.m && !j.l) {
        clear_row<THREADS>(j, row);
        return;
    }
    const int32_t key = held.read(x, keep_and_max<THREADS>(after, rest, cached, cache));
    const float m = row_max<THREADS>(key, s);
    /* read before the row is overwritten in place */
    const float target = valid ? x[id] - m : 0.0f;
    held.sum(m, s->part);
    sum_blocks<THREADS, BLOCKS ? (int)WIDE_AT_ONCE : (int)AT_ONCE>(
        after, rest, cached, m, cache, s->part + held.COUNT / RO_REDUCE_BLOCK);
    __syncthreads();
    sum_parts((cols + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK, m, s);
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
        clear_row<THREADS>(j, row);
    else if (j.dx)
        write_gradient<THREADS>(after, j.dx + row * j.cols, cols, cached, held, cache, m, l,
                                j.dloss[row], id, target);
}

template <int THREADS, int BLOCKS>
static ro_status run_rows(ro_cuda *d, const ro_cross_entropy_job *job, int64_t cached) {
    const size_t smem = sizeof(row_scratch) + (size_t)cached * sizeof(float);
    const ro_status status =
        ro_cuda_allow(d, cross_entropy_kernel<THREADS, BLOCKS>, "cross_entropy");
    if (status != RO_OK)
        return status;
    RO_LAUNCH((cross_entropy_kernel<THREADS, BLOCKS>), ro_grid(job->rows), dim3(THREADS), smem,
              d->stream, *job, (int)cached);
    return ro_cuda_launched(d, "cross_entropy");
}

/* Two blocks run on each multiprocessor, so that one reads while the other computes. */
ro_status ro_cuda_cross_entropy(ro_cuda *d, const ro_cross_entropy_job *job) {
    const int64_t half = (d->shared_memory + 1024) / 2 - 1024 - (int64_t)sizeof(row_scratch);
    const int64_t room = half / (int64_t)sizeof(float) / RO_REDUCE_BLOCK * RO_REDUCE_BLOCK;
    const int64_t cached = job->cols < room ? job->cols : room;
    const int64_t behind = job->cols - held_blocks<WIDE, WIDE_BLOCKS>::COUNT;
    if (job->rows == 0)
        return RO_OK;
    if (job->cols > room && behind >= 0 && behind * (int64_t)sizeof(float) <= half)
        return run_rows<WIDE, WIDE_BLOCKS>(d, job, behind);
    return job->cols <= 2 * RO_REDUCE_BLOCK ? run_rows<FEW, 0>(d, job, cached)
                                            : run_rows<MANY, 0>(d, job, cached);
}
