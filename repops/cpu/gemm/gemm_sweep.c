/* Products of one row of a with a b stored along n. In a tile of columns, every step would read a
 * line of b far from the one before; with rows a multiple of a page apart, coming steps would also
 * evict each other from L1. So a few steps run for all columns, whose sums stay in L1, before the
 * next few: b is read nearly in the order of addresses, and the hardware prefetches it. */
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_tile.h"

enum {
    STEPS = 8,            /* k steps that run together */
    VECTORS = 8,          /* vectors of a tile */
    WIDTH = VECTORS * VW, /* columns of a tile */
    MOST = 4096,          /* columns whose sums and totals are kept in the workspace */
};

/* sums = fma(a, b, sums) for STEPS steps of a whole tile, from +0 if `first`. */
RO_INLINE void sweep_tile(const gemm *g, const float *a, const float *b, int first, float *sums) {
    vf acc[VECTORS];
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        acc[v] = first ? vf_set1(0.0f) : vf_load(sums + v * VW);
    RO_UNROLL
    for (int p = 0; p < STEPS; p++, a += g->a_col, b += g->b_row) {
        const vf x = vf_set1(*a);
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            acc[v] = vf_fma(x, vf_load(b + v * VW), acc[v]);
    }
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        vf_store(sums + v * VW, acc[v]);
}

/* Does what sweep_tile does, for columns [from, to) and any number of steps. */
static void sweep_rest(const gemm *g, int64_t steps, const float *a, const float *b, int first,
                       int64_t from, int64_t to, float *sums) {
    for (int64_t j = from; j < to; j += VW) {
        const vf_mask mask = vf_first(to - j);
        vf acc = first ? vf_set1(0.0f) : vf_load_mask(sums + j, mask);
        for (int64_t p = 0; p < steps; p++)
            acc = vf_fma(vf_set1(a[p * g->a_col]), vf_load_mask(b + p * g->b_row + j, mask), acc);
        vf_store_n(sums + j, acc, to - j);
    }
}

/* Runs STEPS steps of n columns; `start` columns come before the first whole tile. */
static void sweep_columns(const gemm *g, const float *a, const float *b, int first, int64_t start,
                          int64_t n, float *sums) {
    sweep_rest(g, STEPS, a, b, first, 0, start, sums);
    int64_t j = start;
    for (; j + WIDTH <= n; j += WIDTH)
        sweep_tile(g, a, b + j, first, sums + j);
    sweep_rest(g, STEPS, a, b, first, j, n, sums);
}

/* Adds a chunk: tot = tot + sums, from +0 on. After the last chunk, stores the result in c. */
static void end_chunk(const gemm *g, int first, int last, int64_t n, const float *sums, float *tot,
                      float *c) {
    const vf alpha = vf_set1(g->alpha), beta = vf_set1(g->beta);
    for (int64_t j = 0; j < n; j += VW) {
        vf x = vf_add(first ? vf_set1(0.0f) : vf_load(tot + j), vf_load(sums + j));
        if (!last) {
            vf_store(tot + j, x);
            continue;
        }
        x = vf_mul(x, alpha);
        if (g->beta != 0)
            x = vf_fma(beta, vf_load_n(c + j, n - j), x);
        vf_store_n(c + j, vf_canon(x), n - j);
    }
}

/* Returns how many columns to peel off so that whole tiles start at a multiple of their size and
 * never cross a page. */
static int64_t start_of(const float *b, int64_t n) {
    const int64_t over = (int64_t)((uintptr_t)b / sizeof(float) % WIDTH);
    return min_i64(over ? WIDTH - over : 0, n);
}

static int64_t kept(const gemm *g) {
    return ceil_div(min_i64(MOST, g->n), VW) * VW;
}

static void sweep_block(const gemm *g, const float *b, int64_t n, float *c, float *tot) {
    const int64_t start = start_of(b, n);
    float *sums =
        tot + kept(g) + (VW - start % VW) % VW; /* aligned: a tile's sums are whole cache lines */
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        const int64_t end = min_i64(from + g->chunk, g->k);
        int64_t p = from;
        for (; p + STEPS <= end; p += STEPS)
            sweep_columns(g, g->a + p * g->a_col, b + p * g->b_row, p == from, start, n, sums);
        if (p < end)
            sweep_rest(g, end - p, g->a + p * g->a_col, b + p * g->b_row, p == from, 0, n, sums);
        end_chunk(g, from == 0, end == g->k, n, sums, tot, c);
    }
}

static int takes(const gemm *g) {
    const gemm row = as_row(g);
    return row.m == 1 && row.b_col == 1 && row.n >= 4 * WIDTH && row.k >= FAR_K &&
           row.mask == RO_MASK_NONE && !row.c_chunk;
}

static int64_t workspace_of(const gemm *g) {
    const gemm row = as_row(g);
    return 2 * kept(&row) + VW;
}

static void run(const gemm *g, float *workspace) {
    const gemm row = as_row(g);
    for (int64_t j = 0; j < row.n; j += MOST)
        sweep_block(&row, row.b + j, min_i64(MOST, row.n - j), row.c + j, workspace);
}

const gemm_kernel RO_NAME(ro_gemm_sweep) = {
    .name = "sweep", .takes = takes, .workspace = workspace_of, .run = run};
