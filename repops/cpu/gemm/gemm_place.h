/* Operands that are used where they are: when that is as good as packing them, and what tiles ask
 * for then. */
#ifndef REPOPS_CPU_GEMM_PLACE_H
#define REPOPS_CPU_GEMM_PLACE_H

#include "repops/cpu/gemm/gemm_tile.h"

/* Elements of b that more than PLACE_ROWS rows read from where it is; elements of a that the
 * first-level cache keeps beside a panel of b, and columns for which they are not packed. */
enum { PLACE_B = 1 << 15, NEAR_A = 1 << 13, NEAR_COLS = 128 };

/* Elements of a, of all products that are run with this one, from which on tiles in place ask for
 * the next rows: a second-level cache holds fewer (on AVX2's processors, of less than 2 MiB). Rows
 * of those are found without it, and each request takes the place of other instructions. */
#if defined(RO_ISA_avx512)
enum { FAR_A = 1 << 18 };
#elif defined(RO_ISA_avx2)
enum { FAR_A = 1 << 19 };
#else
enum { FAR_A = 0 };
#endif

/* Panels of a share the rows evenly; panels of b are NR wide, so that loads are whole vectors. */
RO_INLINE int64_t panel_rows(int64_t rows, int64_t most) {
    return rows <= most ? rows : ceil_div(rows, ceil_div(rows, most));
}

RO_INLINE int b_in_place(const gemm *g) {
    return g->mask == RO_MASK_NONE && g->b_col == 1 &&
           (g->m <= 2 * MR || (g->m <= PLACE_ROWS && g->b_row % PAGE != 0) ||
            g->k * g->b_row <= PLACE_B);
}

/* Rows of the strips that m rows are cut into. */
RO_INLINE int64_t strip_rows(const gemm *g, int64_t m, int a_place, int b_place) {
    return panel_rows(m, a_place && b_place ? place_rows(g->n) : MR);
}

/* Few columns, or few rows, or all of b in the cache beside a panel of a: that is used few times,
 * or read in a moment. Rows that are a multiple of a page apart would displace each other there. */
RO_INLINE int a_in_place(const gemm *g, int b_place) {
    const int beside = g->a_col == 1 && g->k <= g->chunk && b_place;
    const int few = beside || g->n <= 2 * NR || (g->n <= NEAR_COLS && g->m * g->k <= NEAR_A) ||
                    (g->n <= 4 * NR && (g->a_col == 1 || g->m * g->k <= 2 * NEAR_A));
    if (g->mask != RO_MASK_NONE)
        return g->a_row == 1 && g->n <= 2 * NR;
    return (few || g->m <= MR) && (g->a_row == 1 || g->m <= 8 || g->a_row % PAGE != 0);
}

/* Whether a tile of so many rows asks for the columns that come next, not for steps to come: those
 * are too far apart for few steps ahead, or displace each other in the first-level cache. Several
 * strips that are a line wide do without it (look_ahead_b). */
enum { WIDE = (int)NR > 16 };
RO_INLINE int asks_next(const gemm *g, int64_t rows) {
    return g->b_row % PAGE == 0 || (rows > (WIDE ? 5 : 4) && (WIDE || g->m <= MR));
}

/* Field by field: an initializer would clear all by a string instruction, which takes 5 ns. */
RO_INLINE void clear_tile(const gemm *g, tile *t) {
    t->out_row = g->c_row, t->alpha = g->alpha, t->beta = g->beta;
    t->ahead = t->start = NULL, t->runs = NULL, t->ahead_step = t->ahead_turn = t->run_count = 0,
    t->next = 0;
}

RO_INLINE int a_is_far(const gemm *g) {
    return max_i64(g->a_all, g->m * g->k) >= FAR_A;
}

/* Tiles bring the next rows of a nearer where they lie: a line each step, of each row in turn. */
RO_INLINE void look_ahead_a(const gemm *g, const float *next, tile *t) {
    const int rows = g->a_col == 1;
    t->ahead = next;
    t->ahead_step = rows ? g->a_row : g->a_col;
    t->ahead_turn = rows ? 16 - 16 * g->a_row : 0;
}

#endif
