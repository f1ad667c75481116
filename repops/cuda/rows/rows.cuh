/* Helpers for kernels on rows: loads and stores of four neighbours, maps over rows, and the lanes
 * of R (SPEC.md section 3.2) in a warp. */
#ifndef REPOPS_CUDA_ROWS_CUH
#define REPOPS_CUDA_ROWS_CUH

#include "repops/cuda/cuda.cuh"

/* ---- N neighbours in memory: 4, which are aligned, or 1 ---- */

template <int N> struct ro_pack { float at[N]; };

template <int N> RO_DEVICE ro_pack<N> ro_load(const float *p) {
    ro_pack<N> v;
    if constexpr (N == 4) {
        const float4 w = *reinterpret_cast<const float4 *>(p);
        v.at[0] = w.x, v.at[1] = w.y, v.at[2] = w.z, v.at[3] = w.w;
    } else {
        v.at[0] = *p;
    }
    return v;
}

template <int N> RO_DEVICE void ro_store(float *p, const ro_pack<N> &v) {
    if constexpr (N == 4)
        *reinterpret_cast<float4 *>(p) = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
    else
        *p = v.at[0];
}

/* Returns whether rows of `cols` elements in all these arrays can be read four at a time. */
template <class... P> static bool ro_packable(int64_t cols, const P *...p) {
    return cols % 4 == 0 && ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...);
}

/* ---- maps ---- */

enum { ROW_THREADS = 256 };

/* A thread reads everything before its first store, so that the output may be an input. */
template <int N, class F>
__global__ void __launch_bounds__(ROW_THREADS)
    map_rows_kernel(float *out, int64_t packs, ro_divider width, F f) {
    constexpr int EACH = N == 4 ? 2 : 4;
    const int64_t first = (int64_t)blockIdx.x * (ROW_THREADS * EACH) + threadIdx.x;
    ro_pack<N> value[EACH];
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        const int64_t i = first + u * ROW_THREADS, row = width.quotient(i);
        if (i < packs)
            value[u] = f.template of<N>(row, (i - row * width.divisor) * N, i * N);
    }
#pragma unroll
    for (int u = 0; u < EACH; u++)
        if (first + u * ROW_THREADS < packs)
            ro_store<N>(out + (first + u * ROW_THREADS) * N, value[u]);
}

/* out[e] = f(row, column, e). f.of<N> returns N neighbours; N is 4 if `packed`. */
template <class F>
static ro_status map_rows(ro_cuda *d, const ro_call *call, void *out, int64_t count, int64_t cols,
                          bool packed, const F &f) {
    const int64_t n = packed && ro_packable(cols, static_cast<float *>(out)) ? 4 : 1;
    const int64_t packs = count / n;
    const ro_divider width(cols / n);
    float *to = static_cast<float *>(out);
    if (n == 4)
        RO_LAUNCH((map_rows_kernel<4, F>), ro_grid(ceil_div(packs, 2 * ROW_THREADS)),
                  dim3(ROW_THREADS), 0, d->stream, to, packs, width, f);
    else
        RO_LAUNCH((map_rows_kernel<1, F>), ro_grid(ceil_div(packs, 4 * ROW_THREADS)),
                  dim3(ROW_THREADS), 0, d->stream, to, packs, width, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

/* ---- lanes of R ---- */

/* Returns the sum of the 128 lanes to every thread of the warp; all of them must take part. With N
 * = 4 thread t has lanes 4t..4t+3, else t, t + 32, t + 64 and t + 96. */
template <int N> RO_DEVICE float ro_fold(const float lane[4]) {
    float sum;
    if constexpr (N == 4) {
        /* Threads 16 and 8 apart share the four sums, so that each adds only what it keeps. The
         * order is that of the folds by 64, 32, 16, 8, 4 and then 2, 1. */
        const bool high = threadIdx.x & 16, odd = threadIdx.x & 8;
        const float a = (high ? lane[2] : lane[0]) +
                        __shfl_xor_sync(RO_ALL_LANES, high ? lane[0] : lane[2], 16);
        const float b = (high ? lane[3] : lane[1]) +
                        __shfl_xor_sync(RO_ALL_LANES, high ? lane[1] : lane[3], 16);
        sum = (odd ? b : a) + __shfl_xor_sync(RO_ALL_LANES, odd ? a : b, 8);
#pragma unroll
        for (int w = 4; w > 0; w /= 2)
            sum = sum + __shfl_xor_sync(RO_ALL_LANES, sum, w);
        sum = sum + __shfl_xor_sync(RO_ALL_LANES, sum, 16);
        sum = sum + __shfl_xor_sync(RO_ALL_LANES, sum, 8);
    } else {
        sum = (lane[0] + lane[2]) + (lane[1] + lane[3]);
#pragma unroll
        for (int w = 16; w > 0; w /= 2)
            sum = sum + __shfl_xor_sync(RO_ALL_LANES, sum, w);
    }
    return ro_canon(sum);
}

/* ---- maxima (SPEC.md section 3.2), as integers in the order of floats: -0 below +0, NaN above all
 * ---- */

#define RO_KEY_LEAST ((int32_t)UINT32_C(0x807fffff)) /* the key of -inf */

RO_DEVICE int32_t ro_key(float x) {
    const int32_t bits = (int32_t)ro_to_bits(ro_canon(x));
    return bits ^ (int32_t)((uint32_t)(bits >> 31) & UINT32_C(0x7fffffff));
}

RO_DEVICE float ro_of_key(int32_t key) {
    return ro_from_bits((uint32_t)key ^ ((uint32_t)(key >> 31) & UINT32_C(0x7fffffff)));
}

RO_DEVICE int32_t ro_larger(int32_t a, int32_t b) {
    return a > b ? a : b;
}

/* Returns the largest key of `width` neighbouring threads of a warp. */
template <int width> RO_DEVICE int32_t ro_largest(int32_t key) {
#pragma unroll
    for (int w = width / 2; w > 0; w /= 2)
        key = ro_larger(key, __shfl_xor_sync(RO_ALL_LANES, key, w));
    return key;
}

/* ---- blocks of rows, one warp each ---- */

enum { ROW_WARPS = ROW_THREADS / 32 };

struct row_block {
    int64_t row, at; /* row of its first element, and offset in the row, */
    int64_t e;       /* and offset in the input */
    int count;
};

/* Rows of `cols` elements in blocks of `block`. If queries > 0, row r has only its first r mod
 * queries + 1 elements and, if window is not 0, only the last `window` of these. */
struct row_view {
    int64_t items, cols, block, queries, window = 0;
    ro_divider blocks, tokens;

    __host__ row_view(int64_t count, int64_t width, int64_t size, int64_t causal_queries)
        : items(count), cols(width), block(size), queries(causal_queries),
          blocks(ro_blocks_of(width, size)), tokens(causal_queries) {}

    RO_DEVICE row_block of(int64_t item) const {
        const int64_t row = blocks.quotient(item);
        int64_t at = (item - row * blocks.divisor) * block;
        int64_t end = queries > 0 ? tokens.remainder(row) + 1 : cols;
        if (window > 0) {
            const int64_t first = end - window, block_end = at + block;
            end = end < block_end ? end : block_end;
            at = at > first ? at : first;
        }
        const int64_t left = end - at;
        return {row, at, row * cols + at, (int)(left < 0 ? 0 : left < block ? left : block)};
    }
};

/* F has: `lane`, the state of a lane; open(block); read<N>(i), what N elements from index i of the
 * block contribute; add(state, that, k); close<N>(lanes), the result. EACH reads are in flight;
 * with FOURS, N may be 4, else it is 1. */
template <int N, class F, class V>
__global__ void __launch_bounds__(ROW_THREADS) reduce_rows_kernel(float *out, V view, F f) {
    const int64_t item = (int64_t)blockIdx.x * ROW_WARPS + threadIdx.x / 32;
    const int t = threadIdx.x % 32;
    if (item >= view.items)
        return;
    const row_block b = view.of(item);
    typename F::lane lane[4] = {F::start(), F::start(), F::start(), F::start()};
    f.open(b);
    for (int from = N * t; from < b.count; from += RO_LANES * F::EACH) {
        typename F::template data<N> x[F::EACH * 4 / N] = {};
#pragma unroll
        for (int u = 0; u < F::EACH * 4 / N; u++) {
            const int i = from + u * 32 * N;
            if (i < b.count)
                x[u] = f.template read<N>(i);
        }
#pragma unroll
        for (int u = 0; u < F::EACH * 4 / N; u++)
            if (from + u * 32 * N < b.count)
#pragma unroll
                for (int k = 0; k < N; k++) {
                    const int at = N == 4 ? k : u % 4;
                    lane[at] = f.add(lane[at], x[u], k);
                }
    }
    const float result = f.template close<N>(lane);
    if (t == 0)
        out[item] = result;
}

/* V: row_view, or a type with the same members. */
template <class F, class V>
static ro_status reduce_rows(ro_cuda *d, const ro_call *call, void *out, const V &view, bool packed,
                             const F &f) {
    const dim3 grid = ro_grid(ceil_div(view.items, ROW_WARPS)), block(ROW_THREADS);
    float *to = static_cast<float *>(out);
    const bool fours = F::FOURS && packed && (view.block % 4 == 0 || view.blocks.divisor == 1);
    if constexpr (F::FOURS)
        if (fours)
            RO_LAUNCH((reduce_rows_kernel<4, F, V>), grid, block, 0, d->stream, to, view, f);
    if (!fours)
        RO_LAUNCH((reduce_rows_kernel<1, F, V>), grid, block, 0, d->stream, to, view, f);
    return ro_cuda_launched(d, ro_op_describe(call->op)->name);
}

struct max_terms {
    const float *x;
    typedef int32_t lane;
    static constexpr bool FOURS = true;
    static constexpr int EACH = 4;
    template <int N> struct data { ro_pack<N> x; };
    static RO_DEVICE lane start() {
        return RO_KEY_LEAST;
    }
    RO_DEVICE void open(const row_block &b) {
        x += b.e;
    }
    template <int N> RO_DEVICE data<N> read(int i) const {
        return {ro_load<N>(x + i)};
    }
    template <int N> RO_DEVICE lane add(lane m, const data<N> &v, int k) const {
        return ro_larger(m, ro_key(v.x.at[k]));
    }
    template <int N> RO_DEVICE float close(const lane m[4]) const {
        return ro_of_key(ro_largest<32>(ro_larger(ro_larger(m[0], m[1]), ro_larger(m[2], m[3]))));
    }
};

#endif
