/* Chooses a product's tile and how its k is shared, and launches the kernels. SPEC.md section 3.1
 * fixes the chunks and their order; a plan decides only who computes them and when, so it never
 * changes the bits. */
#ifndef REPOPS_CUDA_GEMM_PLAN_CUH
#define REPOPS_CUDA_GEMM_PLAN_CUH

#include "repops/cuda/gemm/gemm.cuh"
#include "repops/cuda/gemm/gemm_load.cuh"

/* Two blocks fill the shared memory of an H100 (228 KiB), and give each scheduler four warps. With
 * 16 x 8 sums per thread, and two warps, cuBLAS's lead was 6 % larger. */
typedef gemm_tile<128, 128, 8, 8, 4, 16, 2, true, 2> gemm_large;
/* For outputs that larger tiles would spread unevenly over the card: 8192 x 768 at 0.79 of the peak
 * instead of 0.63, by a simulation. Three blocks fill the shared memory of an H100. */
typedef gemm_tile<128, 64, 8, 8, 8, 16, 2, true, 3> gemm_medium;
/* For small outputs, and for cards with less shared memory: totals are in registers, which is all
 * that fits on sm_75. */
typedef gemm_tile<64, 64, 8, 4, 8, 16, 2, false, 4> gemm_small;
/* For few rows: memory decides their speed, so most of their stages are in flight. */
typedef gemm_tile<16, 128, 4, 4, 4, 32, 3, false, 3> gemm_flat16;
typedef gemm_tile<8, 128, 4, 4, 2, 32, 3, false, 4> gemm_flat8;

enum gemm_tile_name { GEMM_LARGE, GEMM_MEDIUM, GEMM_SMALL, GEMM_FLAT16, GEMM_FLAT8, GEMM_TILES };

struct gemm_plan {
    gemm_tile_name tile;
    int64_t chunks, lead; /* lead < chunks: further units take one chunk, and store sums apart */
};

/* Stands for no window: excludes nothing, and can be added to a tile's positions without
 * overflow. */
enum { GEMM_NO_WINDOW = 1 << 30 };

struct gemm_problem {
    int64_t m, n, k, batch, chunk;
    ro_mask mask;
    const unsigned *skip; /* see gemm_shape */
    int64_t window;       /* of the mask; 0: none */
};

/* Shared memory of a block for each tile, in bytes; it depends on the operands, too. */
struct gemm_memory {
    int bytes[GEMM_TILES];
};

template <class A, class B> constexpr gemm_memory gemm_memory_of() {
    return {{gemm_bytes<gemm_large, A, B>(), gemm_bytes<gemm_medium, A, B>(),
             gemm_bytes<gemm_small, A, B>(), gemm_bytes<gemm_flat16, A, B>(),
             gemm_bytes<gemm_flat8, A, B>()}};
}

/* Returns the plan that a model of the card finds fastest among the tiles that fit. Flat tiles are
 * considered only if `flat`. */
gemm_plan ro_gemm_plan(const ro_cuda *d, const gemm_problem *p, const gemm_memory &memory,
                       bool flat);

/* Most floats of memory for sums stored separately. Units beyond them wait for the next pass. */
enum { GEMM_MOST_SUMS = 1 << 26 };

/* ---- launches ---- */

template <class Tile, class A, class B, class Out, bool masked>
ro_status gemm_launch(ro_cuda *d, gemm_shape s, int64_t chunk, const A &a, const B &b,
                      const Out &out, const char *what) {
    const auto kernel = gemm_kernel<Tile, A, B, Out, masked>;
    const size_t bytes = gemm_bytes<Tile, A, B>();
    const int64_t tiles_m = ceil_div(s.m, Tile::M), tiles_n = ceil_div(s.n, Tile::N);
    const int64_t blocks = tiles_m * tiles_n * s.batch * s.units;
    s.tiles_m = (int)tiles_m, s.tiles_n = (int)tiles_n, s.chunk = (int)chunk / Tile::K;
    s.whole = (int)(s.k / Tile::K); /* bounded by the next test */
    if (blocks > INT32_MAX || s.k / Tile::K > INT32_MAX / 2)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of more than 2^31 blocks", what);
    const ro_status status = ro_cuda_allow(d, kernel, what);
    if (status != RO_OK)
        return status;
    RO_LAUNCH((gemm_kernel<Tile, A, B, Out, masked>), ro_grid(blocks), dim3(Tile::THREADS), bytes,
              d->stream, s, a, b, out);
    return ro_cuda_launched(d, what);
}

/* Masked products have no large tiles, whose registers have no room for the mask's comparisons. */
template <class A, class B, class Out, bool masked, bool flat>
ro_status gemm_launch_tile(ro_cuda *d, gemm_tile_name tile, const gemm_shape &s, int64_t chunk,
                           const A &a, const B &b, const Out &out, const char *what) {
    if constexpr (!masked) {
        if (tile == GEMM_LARGE)
            return gemm_launch<gemm_large, A, B, Out, masked>(d, s, chunk, a, b, out, what);
    }
    if constexpr (flat) {
        if (tile == GEMM_FLAT16)
            return gemm_launch<gemm_flat16, A, B, Out, masked>(d, s, chunk, a, b, out, what);
        if (tile == GEMM_FLAT8)
            return gemm_launch<gemm_flat8, A, B, Out, masked>(d, s, chunk, a, b, out, what);
    }
    if (tile == GEMM_MEDIUM)
        return gemm_launch<gemm_medium, A, B, Out, masked>(d, s, chunk, a, b, out, what);
    return gemm_launch<gemm_small, A, B, Out, masked>(d, s, chunk, a, b, out, what);
}

/* ---- adding the sums of units ---- */

enum { GEMM_ADD_THREADS = 256 };

/* `before` has the totals of earlier passes, or is NULL in the first pass; `after` receives those
 * of this pass, or is NULL in the last. */
template <class Out>
__global__ void __launch_bounds__(GEMM_ADD_THREADS)
    gemm_add_kernel(const gemm_shape s, const Out out, ro_divider by_n, ro_divider by_m,
                    const float *before, float *after) {
    const int64_t size = (int64_t)s.batch * s.m * s.n;
    const int64_t e = (int64_t)blockIdx.x * GEMM_ADD_THREADS + threadIdx.x;
    if (e >= size || (s.skip && *s.skip))
        return;
    const int64_t line = by_n.quotient(e), batch = by_m.quotient(line);
    const int64_t n = e - line * s.n, m = line - batch * s.m;
    if (m >= out.rows(s, batch))
        return;
    float total = before ? before[e] : 0.0f;
#pragma unroll 8
    for (int u = 0; u < s.units; u++)
        total = total + s.sums[u * size + e];
    if (after) {
        after[e] = total;
        return;
    }
    if constexpr (Out::ENDS) {
        out.end_one(m, n, total);
    } else {
        float *c = out.line(batch, m) + n * out.col;
        *c = gemm_result(total, out.alpha, out.beta, c);
    }
}

template <class Out>
ro_status gemm_add(ro_cuda *d, const gemm_shape &s, const Out &out, const float *before,
                   float *after, const char *what) {
    const int64_t blocks = ceil_div(s.batch * s.m * s.n, GEMM_ADD_THREADS);
    RO_LAUNCH((gemm_add_kernel<Out>), ro_grid(blocks), dim3(GEMM_ADD_THREADS), 0, d->stream, s, out,
              ro_divider(s.n), ro_divider(s.m), before, after);
    return ro_cuda_launched(d, what);
}

/* Runs passes over k, each with as many units as memory allows. */
template <class A, class B, class Out, bool masked, bool flat>
ro_status gemm_run_units(ro_cuda *d, const gemm_plan &plan, gemm_shape s, int64_t chunk, const A &a,
                         const B &b, const Out &out, const char *what) {
    const int64_t size = (int64_t)s.batch * s.m * s.n, room = GEMM_MOST_SUMS / size - 1;
    const int64_t wanted = plan.chunks - plan.lead + 1, most = wanted < room ? wanted : room;
    void *memory;
    ro_status status = ro_cuda_alloc(d, (size_t)((most + 1) * size) * sizeof(float), &memory);
    if (status != RO_OK)
        return status;
    float *totals = static_cast<float *>(memory);
    s.sums = totals + size;
    s.lead = (int)plan.lead;
    while (status == RO_OK && s.first < plan.chunks) {
        const int64_t left = plan.chunks - s.first - s.lead + 1;
        s.units = (int)(left < most ? left : most);
        const int next = s.first + s.lead + s.units - 1;
        status = gemm_launch_tile<A, B, Out, masked, flat>(d, plan.tile, s, chunk, a, b, out, what);
        if (status == RO_OK)
            status = gemm_add(d, s, out, s.first ? totals : nullptr,
                              next < plan.chunks ? totals : nullptr, what);
        s.first = next, s.lead = 1;
    }
    ro_cuda_free(d, memory);
    return status;
}

/* ---- single elements: ro_ctx_plain ---- */

enum { GEMM_PLAIN_THREADS = 256 };

/* One thread per element. */
template <class A, class B, class Out>
__global__ void __launch_bounds__(GEMM_PLAIN_THREADS)
    gemm_plain_kernel(const __grid_constant__ gemm_shape s, const __grid_constant__ A a,
                      const __grid_constant__ B b, const __grid_constant__ Out out, ro_divider by_n,
                      ro_divider by_m) {
    const int64_t e = (int64_t)blockIdx.x * GEMM_PLAIN_THREADS + threadIdx.x;
    if (e >= (int64_t)s.batch * s.m * s.n)
        return;
    const int64_t line = by_n.quotient(e), batch = by_m.quotient(line);
    const int64_t n = e - line * s.n, m = line - batch * s.m;
    float total = 0.0f;
    for (int64_t k = 0; k < s.k;) {
        const int64_t end = s.k - k < s.chunk ? s.k : k + s.chunk;
        float sum = 0.0f;
        for (; k < end; k++)
            sum = ro_fma(a.at(batch, m, k), b.at(batch, n, k), sum);
        total = total + sum;
    }
    if constexpr (Out::ENDS) {
        out.end_one(m, n, total);
    } else {
        float *c = out.line(batch, m) + n * out.col;
        *c = gemm_result(total, out.alpha, out.beta, c);
    }
}

template <class A, class B, class Out>
ro_status gemm_run_plain(ro_cuda *d, const gemm_problem &p, const A &a, const B &b, const Out &out,
                         const char *what) {
    gemm_shape s = {};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = (int)p.batch, s.chunk = (int)p.chunk;
    RO_LAUNCH((gemm_plain_kernel<A, B, Out>),
              ro_grid(ceil_div(p.batch * p.m * p.n, GEMM_PLAIN_THREADS)), dim3(GEMM_PLAIN_THREADS),
              0, d->stream, s, a, b, out, ro_divider(p.n), ro_divider(p.m));
    return ro_cuda_launched(d, what);
}

/* Whether single elements of an operand can be read. */
template <class X> constexpr bool gemm_is_strided = false;
template <bool along_k, class E> constexpr bool gemm_is_strided<strided<along_k, E>> = true;

template <class A, class B, class Out, bool masked, bool flat>
ro_status gemm_run(ro_cuda *d, const gemm_problem &p, const A &a, const B &b, const Out &out,
                   const char *what) {
    const gemm_plan plan = ro_gemm_plan(d, &p, gemm_memory_of<A, B>(), flat);
    gemm_shape s = {};
    if (p.batch > INT32_MAX)
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s of more than 2^31 products", what);
    if constexpr (!masked && gemm_is_strided<A> && gemm_is_strided<B>)
        if (d->plain)
            return gemm_run_plain(d, p, a, b, out, what);
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = (int)p.batch, s.mask = p.mask, s.skip = p.skip;
    s.units = 1, s.lead = (int)plan.chunks;
    if (p.window >= GEMM_NO_WINDOW && p.window < (p.m > p.k ? p.m : p.k))
        return ro_cuda_fail(d, RO_ERR_UNSUPPORTED, "cuda: %s with a window of 2^30 or more", what);
    s.window = p.window && p.window < GEMM_NO_WINDOW ? (int)p.window : GEMM_NO_WINDOW;
    if (plan.lead < plan.chunks)
        return gemm_run_units<A, B, Out, masked, flat>(d, plan, s, p.chunk, a, b, out, what);
    return gemm_launch_tile<A, B, Out, masked, flat>(d, plan.tile, s, p.chunk, a, b, out, what);
}

/* ---- products of strided matrices, matmul.cu ---- */

/* Element (i, j) is data[i * row + j * col]; one of the strides is 1. */
struct gemm_matrix {
    const float *data;
    int64_t row, col, next;
};

struct gemm_products {
    gemm_problem p;
    gemm_matrix a, b;
    gemm_out out;
};

ro_status ro_gemm_products(ro_cuda *d, gemm_products *x, const char *what);

/* matmul whose b is bf16 or f16, matmul_half.cu. */
ro_status ro_cuda_matmul_half(ro_cuda *d, const ro_call *call, const void *const *in, void *out);

/* Returns whether columns are so few that ro_gemm_products transposes the product, to few rows. */
static inline bool gemm_few_columns(int64_t m, int64_t n) {
    return n <= gemm_flat16::M && n < m;
}

/* Returns whether all copies of four floats are aligned. */
static inline bool gemm_in_fours(const void *data, int64_t line, int64_t next, int64_t count) {
    return ((uintptr_t)data % 16 | (uint64_t)(line | next | count) % 4) == 0;
}

#endif
