/* Small products of one chunk: nothing is packed but a b stored along k, and little is decided. */
#include "repops/cpu/gemm/gemm_dots.h"
#include "repops/cpu/gemm/gemm_kernel.h"
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/gemm/gemm_place.h"

enum {
    NEAR_B = 1 << 14,  /* most elements of a b that is transposed first */
    SHORT_A = 1 << 12, /* most elements of an a whose rows are not prefetched */
};

static int small_takes(const gemm *g) {
    return g->k > 0 && g->k <= g->chunk && !g->c_chunk && !g->window &&
           (g->n > DOTS_ROWS || g->m < VW) && b_in_place(g) && a_in_place(g, 1);
}

/* Returns how many of the last columns get tiles of their own. Such narrow tiles have room for more
 * rows (QUAD_ROWS), whose sums hide each other's latency. */
#if defined(RO_ISA_avx512)
static int64_t columns_apart(const gemm *g) {
    const int64_t left = g->n % VW;
    return g->n > VW && left <= QUAD_COLS && g->a_col == 1 && g->m > MR ? left : 0;
}

static void run_apart(const gemm *g, int64_t cols, tile *t) {
    const int64_t height = panel_rows(g->m, QUAD_ROWS), j = g->n - cols;
    t->b = g->b + j, t->cols = cols;
    place_bias(g, j, t);
    for (int64_t i = 0; i < g->m; i += height) {
        t->a = g->a + i * g->a_row;
        t->c = t->out = g->c + i * g->c_row + j;
        RO_NAME(ro_tile_half)((int)min_i64(height, g->m - i), t);
    }
}
#else
static int64_t columns_apart(const gemm *g) {
    (void)g;
    return 0;
}

static void run_apart(const gemm *g, int64_t cols, tile *t) {
    (void)g, (void)cols, (void)t;
}
#endif

/* Ends rows of whole columns while they are in the first-level cache. */
static void end_rows(const gemm *g, int64_t i, int64_t rows, int64_t from, int64_t to) {
    if (g->y && to > from)
        RO_NAME(ro_gemm_activate)(g, i, rows, from, to - from);
}

/* Runs the loops so that the smaller of a and b is the operand that is read again and again. */
static void run_small(const gemm *g) {
    const int64_t apart = columns_apart(g), n = g->n - apart;
    const int64_t height = panel_rows(g->m, place_rows(g->n));
    const int64_t width = g->m > 4 * n ? n : place_cols(height, n);
    const int asks = g->m > PLACE_ROWS && g->m * g->k > SHORT_A && a_is_far(g);
    tile t;
    clear_tile(g, &t);
    t.k = g->k, t.a_row = g->a_row, t.a_step = g->a_col, t.b_step = g->b_row;
    t.c_row = g->c_row, t.flags = TILE_FIRST | TILE_LAST;
    for (int64_t from = 0; from < n; from += width) {
        const int64_t to = min_i64(from + width, n);
        for (int64_t i = 0; i < g->m; i += height) {
            t.a = g->a + i * g->a_row;
            if (asks)
                look_ahead_a(g, t.a + height * g->a_row, &t);
            for (int64_t j = from; j < to; j += t.cols) {
                t.cols = place_cols(height, to - j);
                t.b = g->b + j;
                place_bias(g, j, &t);
                t.c = t.out = g->c + i * g->c_row + j;
                RO_NAME(ro_tile_place)((int)min_i64(height, g->m - i), &t);
            }
            end_rows(g, i, min_i64(height, g->m - i), from, to);
        }
    }
    if (apart)
        run_apart(g, apart, &t);
    end_rows(g, 0, g->m, n, g->n);
}

static void small_run(const gemm *g, float *workspace) {
    (void)workspace;
    run_small(g);
}

const gemm_kernel RO_NAME(ro_gemm_small) = {
    .name = "small", .takes = small_takes, .run = small_run, .ends = 1};

/* ---- b stored along k: transposed first ---- */

/* Returns the stride of b's steps in floats once b is transposed. */
static int64_t turned_row(const gemm *g) {
    return ceil_div(g->n, VW) * VW;
}

static int64_t turned_workspace(const gemm *g) {
    return g->k * turned_row(g);
}

/* A single column is left to as_row, which makes it a row. */
static int turned_takes(const gemm *g) {
    return g->b_col != 1 && g->n > 1 && g->mask == RO_MASK_NONE && !g->c_chunk && g->k > 0 &&
           g->k <= g->chunk && turned_workspace(g) <= NEAR_B && a_in_place(g, 1);
}

static void turned_run(const gemm *g, float *workspace) {
    gemm t = *g;
    t.b = workspace, t.b_row = turned_row(g), t.b_col = 1;
    pack(&(panel){g->b, g->b_col, g->b_row, g->n, t.b_row, g->k}, workspace);
    run_small(&t);
}

const gemm_kernel RO_NAME(ro_gemm_turned) = {.name = "turned",
                                             .takes = turned_takes,
                                             .workspace = turned_workspace,
                                             .run = turned_run,
                                             .ends = 1};
