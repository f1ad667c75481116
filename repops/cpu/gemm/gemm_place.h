/* Decides when operands are used in place, without packing, and what tiles prefetch then. */
#ifndef REPOPS_CPU_GEMM_PLACE_H
#define REPOPS_CPU_GEMM_PLACE_H

#include "repops/cpu/gemm/gemm_tile.h"

enum {
    PLACE_B = 1 << 15, /* elements of b up to which any number of rows reads it in place */
    NEAR_A = 1 << 13,  /* elements of a that L1 keeps beside a panel of b */
    NEAR_COLS = 128,   /* most columns for which an a of at most NEAR_A elements is not packed */
};

/* Tiles in place prefetch the next rows of a from this many elements of a on, counted over all
 * products of the call. A smaller a stays in the L2 cache, where its rows are found without
 * prefetch, and each prefetch would take the slot of another instruction. */
#if defined(RO_ISA_avx512)
enum { FAR_A = 1 << 18 };
#elif defined(RO_ISA_avx2)
enum { FAR_A = 1 << 19 };
#else
enum { FAR_A = 0 };
#endif

RO_INLINE int b_in_place(const gemm *g) {
    return g->mask == RO_MASK_NONE && g->b_col == 1 &&
           (g->m <= 2 * MR || (g->m <= PLACE_ROWS && g->b_row % PAGE != 0) ||
            g->k * g->b_row <= PLACE_B);
}

/* Returns how many rows each strip has when m rows are cut into strips. */
RO_INLINE int64_t strip_rows(const gemm *g, int64_t m, int a_place, int b_place) {
    return panel_rows(m, a_place && b_place ? place_rows(g->n) : MR);
}

/* Returns whether a is read in place. With few columns, few rows, or a b that stays in the cache
 * beside a panel of a, packing takes longer than it saves. Rows a multiple of a page apart are
 * packed, since they would evict each other from the cache. */
RO_INLINE int a_in_place(const gemm *g, int b_place) {
    const int beside = g->a_col == 1 && g->k <= g->chunk && b_place;
    const int few = beside || g->n <= 2 * NR || (g->n <= NEAR_COLS && g->m * g->k <= NEAR_A) ||
                    (g->n <= 4 * NR && (g->a_col == 1 || g->m * g->k <= 2 * NEAR_A));
    if (g->mask != RO_MASK_NONE)
        return g->a_row == 1 && g->n <= 2 * NR;
    return (few || g->m <= MR) && (g->a_row == 1 || g->m <= 8 || g->a_row % PAGE != 0);
}

/* Returns whether a tile prefetches the next columns of b instead of b's coming steps. Coming steps
 * a multiple of a page apart evict each other from L1, and tall tiles look too few steps ahead.
 * Where tiles are one cache line wide and several strips share b, look_ahead_b serves instead. */
enum { WIDE = (int)NR > 16 };
RO_INLINE int asks_next(const gemm *g, int64_t rows) {
    return g->b_row % PAGE == 0 || (rows > (WIDE ? 5 : 4) && (WIDE || g->m <= MR));
}

/* Sets field by field, because an initializer clears the whole struct with a string instruction,
 * which takes 5 ns. */
RO_INLINE void clear_tile(const gemm *g, tile *t) {
    t->out_row = g->c_row, t->alpha = g->alpha, t->beta = g->beta;
    t->ahead = t->start = t->far = NULL, t->runs = NULL,
    t->ahead_step = t->ahead_turn = t->run_count = 0, t->next = 0;
    t->bias = NULL, t->relu = ends_in_tiles(g);
}

/* Column `col` of c is the tile's first one. */
RO_INLINE void place_bias(const gemm *g, int64_t col, tile *t) {
    t->bias = g->y && g->bias ? g->bias + col : NULL;
}

RO_INLINE int a_is_far(const gemm *g) {
    return max_i64(g->a_all, g->m * g->k) >= FAR_A;
}

/* Makes the tile prefetch the next rows of a in place: one cache line per step, each row in
 * turn. */
RO_INLINE void look_ahead_a(const gemm *g, const float *next, tile *t) {
    const int rows = g->a_col == 1;
    t->ahead = next;
    t->ahead_step = rows ? g->a_row : g->a_col;
    t->ahead_turn = rows ? 16 - 16 * g->a_row : 0;
}

#endif
