/* Drawing an index with integer weights, SPEC.md section 10.3. Sums of integers do not depend on
 * their order. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/philox.h"
#include "repops/src/sampling.h"
#include "repops/op_sampling.h"

static const int32_t *integers(const void *p) {
    return static_cast<const int32_t *>(p);
}

static int64_t length_of(const ro_call *call) {
    return call->input[0].dim[call->input[0].ndim - 1];
}

/* ---- element by element ---- */

static ro_status weight(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]), *m = static_cast<const float *>(in[1]);
    const ro_divider width(length_of(call));
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        return ro_weight_of(ro_exp(x[i] - m[width.quotient(i)]));
    });
}
RO_CUDA_KERNEL(weight, weight)

static ro_status keep_top(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const int32_t *q = integers(in[0]), *cut = integers(in[1]);
    const ro_divider width(length_of(call));
    return map<int32_t>(d, call, out, [=] __device__(int64_t i) {
        const int64_t row = width.quotient(i);
        const int32_t counted = (int32_t)ro_counted(q[i]);
        const ro_cut c = {cut[2 * row], cut[2 * row + 1]};
        return ro_is_kept(c, counted, i - row * width.divisor) ? counted : 0;
    });
}
RO_CUDA_KERNEL(keep_top, keep_top)

static ro_status random_words(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const uint32_t *key = static_cast<const uint32_t *>(in[0]);
    const uint32_t *position = static_cast<const uint32_t *>(in[1]);
    const uint64_t seed = (uint64_t)call->attr[RO_RANDOM_WORDS_SEED];
    const uint32_t stream = (uint32_t)call->attr[RO_RANDOM_WORDS_STREAM];
    return map<uint32_t>(d, call, out, [=] __device__(int64_t i) {
        const uint32_t *mine = key + i / 2 * 2;
        uint32_t word[4] = {mine[0], mine[1], *position, stream};
        ro_philox(seed, word);
        return i % 2 ? word[1] : word[0];
    });
}
RO_CUDA_KERNEL(random_words, random_words)

/* ---- one block per row; each thread adds to its own sums in shared memory ---- */

enum { DRAW_THREADS = 256, DIGIT = 4, BUCKETS = 1 << DIGIT, DIGITS = 32 / DIGIT };

/* The shared memory of a block: one sum per thread, or one per bucket and thread; totals over all
 * threads; and the state of the search. */
struct row_sums {
    uint64_t sum[BUCKETS * DRAW_THREADS];
    uint64_t total[BUCKETS];
    uint64_t above, goal;
    uint32_t t;
};

/* A thread's part of a row, where the order matters. */
struct row_part {
    int64_t first, last;
};

RO_DEVICE row_part part_of(int thread, int64_t count) {
    const int64_t each = (count + DRAW_THREADS - 1) / DRAW_THREADS;
    const int64_t first = thread * each, last = first + each;
    return {first < count ? first : count, last < count ? last : count};
}

/* Sets total[b] to the sum of bucket b over all threads. */
RO_DEVICE void add_threads(row_sums *s) {
    __syncthreads();
    for (int half = DRAW_THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            for (int b = 0; b < BUCKETS; b++)
                s->sum[b * DRAW_THREADS + threadIdx.x] +=
                    s->sum[b * DRAW_THREADS + threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x < BUCKETS)
        s->total[threadIdx.x] = s->sum[threadIdx.x * DRAW_THREADS];
    __syncthreads();
}

template <bool top_p> RO_DEVICE uint64_t measure_of(uint32_t q) {
    return top_p ? q : 1;
}

/* Finds a digit of t: the highest bucket that, with all above it, reaches the goal. */
template <bool top_p>
RO_DEVICE void find_digit(row_sums *s, const int32_t *q, int64_t count, int shift, int64_t attr) {
    const uint32_t high = shift + DIGIT < 32 ? s->t >> (shift + DIGIT) : 0;
    for (int b = 0; b < BUCKETS; b++)
        s->sum[b * DRAW_THREADS + threadIdx.x] = 0;
    for (int64_t i = threadIdx.x; i < count; i += DRAW_THREADS) {
        const uint32_t x = ro_counted(q[i]);
        const uint32_t mine = shift + DIGIT < 32 ? x >> (shift + DIGIT) : 0;
        if (mine == high)
            s->sum[(x >> shift & (BUCKETS - 1)) * DRAW_THREADS + threadIdx.x] +=
                measure_of<top_p>(x);
    }
    add_threads(s);
    if (threadIdx.x == 0) {
        if (shift + DIGIT == 32) {
            uint64_t sum = 0;
            for (int b = 0; b < BUCKETS; b++)
                sum += s->total[b];
            s->goal = top_p ? ro_share_of(sum, (uint64_t)attr) : (uint64_t)attr;
        }
        int b = BUCKETS - 1;
        for (; b > 0 && s->above + s->total[b] < s->goal; b--)
            s->above += s->total[b];
        s->t |= (uint32_t)b << shift;
    }
    __syncthreads();
}

/* Returns the index after the last element equal to t that the goal includes. It is in the part
 * that reaches the goal; `above` is the measure before that part. */
template <bool top_p> RO_DEVICE int64_t find_end(row_sums *s, const int32_t *q, int64_t count) {
    const row_part p = part_of(threadIdx.x, count);
    uint64_t mine = 0;
    for (int64_t i = p.first; i < p.last; i++)
        mine += ro_counted(q[i]) == s->t ? measure_of<top_p>(s->t) : 0;
    s->sum[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0)
        return 0;
    int owner = 0;
    while (owner < DRAW_THREADS - 1 && s->above + s->sum[owner] < s->goal)
        s->above += s->sum[owner++];
    const row_part r = part_of(owner, count);
    int64_t end = 0;
    for (int64_t i = r.first; i < r.last && s->above < s->goal; i++)
        if (ro_counted(q[i]) == s->t) {
            s->above += measure_of<top_p>(s->t);
            end = i + 1;
        }
    return end;
}

template <bool top_p>
__global__ void __launch_bounds__(DRAW_THREADS)
    top_kernel(int32_t *out, const int32_t *weights, int64_t count, int64_t attr) {
    RO_SMEM(row_sums, s);
    const int32_t *q = weights + blockIdx.x * count;
    if (threadIdx.x == 0)
        s->above = s->goal = 0, s->t = 0;
    __syncthreads();
    for (int digit = DIGITS - 1; digit >= 0; digit--)
        find_digit<top_p>(s, q, count, digit * DIGIT, attr);
    const int64_t end = find_end<top_p>(s, q, count);
    if (threadIdx.x != 0)
        return;
    const bool all = top_p ? s->goal == 0 : attr >= count;
    out[2 * blockIdx.x] = all ? 0 : (int32_t)s->t;
    out[2 * blockIdx.x + 1] = (int32_t)(all ? count : end);
}

template <bool top_p>
static ro_status top(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const char *name = top_p ? "top_p" : "top_k";
    ro_status status = ro_cuda_allow(d, top_kernel<top_p>, name);
    if (status != RO_OK)
        return status;
    RO_LAUNCH(top_kernel<top_p>, ro_grid(ro_rows_of(&call->input[0])), dim3(DRAW_THREADS),
              sizeof(row_sums), d->stream, static_cast<int32_t *>(out), integers(in[0]),
              length_of(call), call->attr[0]);
    return ro_cuda_launched(d, name);
}
RO_CUDA_KERNEL(top_k, top<false>)
RO_CUDA_KERNEL(top_p, top<true>)

/* The first thread finds the part in which the sum exceeds r, and then the index. */
__global__ void __launch_bounds__(DRAW_THREADS)
    draw_kernel(int32_t *out, const int32_t *weights, const uint32_t *words, int64_t count) {
    RO_SMEM(uint64_t, sum);
    const int32_t *q = weights + blockIdx.x * count;
    const row_part p = part_of(threadIdx.x, count);
    uint64_t mine = 0;
    for (int64_t i = p.first; i < p.last; i++)
        mine += ro_counted(q[i]);
    sum[threadIdx.x] = mine;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    uint64_t total = 0;
    for (int t = 0; t < DRAW_THREADS; t++)
        total += sum[t];
    const uint64_t w = (uint64_t)words[2 * blockIdx.x + 1] << 32 | words[2 * blockIdx.x];
    uint64_t r = ro_mul_high(w, total);
    int owner = 0;
    while (owner < DRAW_THREADS - 1 && sum[owner] <= r)
        r -= sum[owner++];
    int64_t i = part_of(owner, count).first;
    while (total > 0 && ro_counted(q[i]) <= r)
        r -= ro_counted(q[i++]);
    out[blockIdx.x] = total > 0 ? (int32_t)i : 0;
}

static ro_status draw(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    RO_LAUNCH(draw_kernel, ro_grid(ro_rows_of(&call->input[0])), dim3(DRAW_THREADS),
              DRAW_THREADS * sizeof(uint64_t), d->stream, static_cast<int32_t *>(out),
              integers(in[0]), static_cast<const uint32_t *>(in[1]), length_of(call));
    return ro_cuda_launched(d, "draw");
}
RO_CUDA_KERNEL(draw, draw)
