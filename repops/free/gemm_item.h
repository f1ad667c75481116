/* An item of a blocked product (gemm.c): a block of rows and columns of one product. */
#ifndef REPOPS_FREE_GEMM_ITEM_H
#define REPOPS_FREE_GEMM_ITEM_H

#include "repops/free/gemm.h"

/* Rows of a that are packed at a time. */
enum { BLOCK_ROWS = 112 / FREE_MR * FREE_MR };

typedef struct {
    const ro_free_job *job;
    const free_gemm *g;
    free_order order;
    int64_t rows, cols, down, across; /* size of an item; items per product, down and across */
    char *workspace;
    int64_t a_size, b_size, slot_size, norm_size, size; /* per thread, in `real`; `size` in bytes */
} product;

/* One item. */
typedef struct {
    const product *p;
    ro_emitter *emitter;
    int64_t product, row, col, m, n, height;
    real *a, *b, *sums, *stack;
    double *row_square, *col_square; /* NULL: no bounds are wanted */
} item;

/* Rows whose results are emitted next. */
typedef struct {
    int64_t row;
    int direct; /* tiles are emitted one by one, as they are finished */
    int64_t first[BLOCK_ROWS];
    double of_sum[BLOCK_ROWS];
} ends;

/* Returns the sums of tile (i, j) in slot 0. */
static inline real *sums_of(const item *t, int64_t i, int64_t j) {
    const int64_t across = ceil_div(t->n, FREE_NR);
    return t->sums + (i / t->height * across + j / FREE_NR) * FREE_TILE;
}

/* Finds where the results of `rows` rows from `row` on go. */
void RO_FREE_NAME(ro_free_find_ends)(const item *t, int64_t row, int64_t rows, ends *to);
/* Returns the results of a tile, from (row, col) on. */
free_results RO_FREE_NAME(ro_free_results_of)(const item *t, const ends *e, int64_t row,
                                              int64_t rows, int64_t col);
/* Emits the rows that were not emitted tile by tile, and, once more, those with close calls to
 * replay. */
void RO_FREE_NAME(ro_free_emit_rows)(const item *t, const ends *e, int64_t rows);

#endif
