/* Adds rows to the sums of their columns, SPEC.md section 3.3. */
#ifndef REPOPS_CPU_COLUMNS_H
#define REPOPS_CPU_COLUMNS_H

#include "repops/cpu/isa.h"

/* Columns of a tile: long enough to keep memory pages open, while the sums of a tile stay in L1. */
enum { COLUMN_TILE = 1024 };

static __attribute__((unused)) void add_row(const float *restrict x, int64_t count,
                                            float *restrict acc) {
    for (int64_t c = 0; c < count; c++)
        acc[c] = acc[c] + x[c];
}

static __attribute__((unused)) void canon_row(float *x, int64_t count) {
    for (int64_t c = 0; c < count; c++)
        x[c] = ro_canon(x[c]);
}

/* Adds a gradient, as operator `add` does. */
static __attribute__((unused)) void add_gradient(const float *restrict g, int64_t count,
                                                 float *restrict to) {
    for (int64_t c = 0; c < count; c++)
        to[c] = ro_canon(to[c] + g[c]);
}

/* While rows are summed, the next ones are prefetched, one run of columns after the other: hardware
 * prefetchers stop at the end of a page, where these runs may end too. */
enum {
    COLUMN_RUN = 128, /* columns of a run */
    COLUMN_ROWS = 4,  /* rows that are summed together */
};

static __attribute__((unused)) void fetch_rows(const float *x, int64_t stride, int64_t rows,
                                               int64_t count) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < count; c += 16)
            __builtin_prefetch(x + r * stride + c, 0, 2);
}

/* Adds rows that are `stride` apart. Each sum is read and written once per COLUMN_ROWS rows. */
static __attribute__((unused)) void add_rows(const float *restrict x, int64_t stride, int64_t rows,
                                             int64_t count, float *restrict acc) {
    int64_t r = 0;
    for (; r + COLUMN_ROWS <= rows; r += COLUMN_ROWS)
        for (int64_t from = 0; from < count; from += COLUMN_RUN) {
            const int64_t to = min_i64(from + COLUMN_RUN, count);
            const float *restrict y = x + r * stride;
            const int64_t ahead = min_i64(COLUMN_ROWS, rows - r - COLUMN_ROWS);
            fetch_rows(y + COLUMN_ROWS * stride + from, stride, ahead, to - from);
            for (int64_t c = from; c < to; c++)
                acc[c] =
                    (((acc[c] + y[c]) + y[stride + c]) + y[2 * stride + c]) + y[3 * stride + c];
        }
    for (; r < rows; r++)
        add_row(x + r * stride, count, acc);
}

/* Adds up at most COLUMN_TILE columns of [groups, cols], the sums of groups of rows, level by level
 * in place. The first row then has the sums of all. */
static __attribute__((unused)) void sum_groups(float *x, int64_t groups, int64_t cols,
                                               int64_t count) {
    for (int64_t rows = groups; rows > 1; rows = ceil_div(rows, RO_COLUMN_GROUP))
        for (int64_t r = 0; r < rows; r += RO_COLUMN_GROUP) {
            float acc[COLUMN_TILE] = {0};
            add_rows(x + r * cols, cols, min_i64(RO_COLUMN_GROUP, rows - r), count, acc);
            canon_row(acc, count);
            memcpy(x + r / RO_COLUMN_GROUP * cols, acc, (size_t)count * sizeof *acc);
        }
}

#endif
