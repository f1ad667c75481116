/* Rows added to the sums of their columns, SPEC.md section 3.3. */
#ifndef REPOPS_CPU_COLUMNS_H
#define REPOPS_CPU_COLUMNS_H

#include "repops/cpu/isa.h"

/* Columns of a tile: long runs keep the memory's pages open; their sums stay in the first-level
 * cache. */
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

/* Columns that are summed while the same ones of the next rows come nearer: hardware stops at the
 * end of a page, where these runs do. */
enum { COLUMN_RUN = 128, COLUMN_ROWS = 4 };

static __attribute__((unused)) void fetch_rows(const float *x, int64_t stride, int64_t rows,
                                               int64_t count) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < count; c += 16)
            __builtin_prefetch(x + r * stride + c, 0, 2);
}

/* Rows `stride` apart, four for each time that a sum is read and written. */
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

#endif
