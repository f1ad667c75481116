/* The part of a convolution's product (conv_gather.h) that one item computes. */
#ifndef REPOPS_CPU_CONV_GATHER_PART_H
#define REPOPS_CPU_CONV_GATHER_PART_H

#include "repops/cpu/image/conv_gather.h"

/* How tiles find a. */
typedef enum {
    IN_PLACE,   /* in the image: a tile's rows are pixels of one line, with one stride */
    COPIED,     /* copied with one stride, and +0 for pixels outside */
    TRANSPOSED, /* packed: a tile's rows are pixels of several lines */
} layout;

/* Some rows and columns of the product, for pieces [first, last) at a time. */
typedef struct {
    const gather *g;
    const gather_block *b;
    const piece *pieces;
    tile_run *runs; /* the pieces' runs, unless transposed; a run may have several copied pieces */
    int64_t count, run_count, group, col, n;
    int64_t first, last, k; /* k: steps of these pieces */
    layout layout;
    int64_t line;        /* rows that tiles divide evenly: those of a line, or all of the part */
    int64_t height;      /* most rows of a tile */
    int64_t before;      /* rows of the first line that are before the part */
    int lines;           /* copied rows, but those whose windows are all inside are read in place */
    int quiet;           /* rows are read in place, and nothing is prefetched */
    int64_t reach[2][2]; /* first and last pixel of windows, relative to their positions */
    float *a;            /* copied or transposed rows */
    int64_t a_row;       /* stride of copied rows */
    float *c;            /* totals, rows c_row apart; NULL: stored in the output */
    int64_t c_row;
} gather_part;

/* Returns where a panel of b is packed, with all k steps. */
static inline float *packed_b(const gather *g, int64_t group, int64_t j) {
    return g->packed + (group * ceil_div(g->n, NR) + j / NR) * g->k * NR;
}

/* Returns the floats of a copied row, padded so that rows do not share cache sets. */
static inline int64_t row_size(int64_t k) {
    const int64_t size = round_up(k, 16) + 16;
    return size % 512 ? size : size + 16;
}

/* Returns the number of rows of the tile at `row`. */
static inline int64_t tile_rows_at(const gather_part *s, int64_t row) {
    const int64_t at = (s->before + row) % s->line;
    return min_i64(min_i64(s->height, s->line - at), s->b->m - row);
}

/* Returns where the rows of the tile at `row` are kept. row0 is the first row that is kept. */
static inline float *kept_rows(const gather_part *s, int64_t row0, int64_t row) {
    return s->a + (row - row0) * (s->layout == COPIED ? s->a_row : s->k);
}

/* Gathers rows [row0, row0 + m). */
void RO_NAME(ro_conv_gather_rows)(const gather_part *s, int64_t row0, int64_t m);
/* Gathers and multiplies the part. `scratch` has room for its totals. */
void RO_NAME(ro_conv_run_part)(gather_part *s, float *scratch);

#endif
