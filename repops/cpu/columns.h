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

/* Rows `stride` apart, four for each time that a sum is read and written. */
static __attribute__((unused)) void add_rows(const float *restrict x, int64_t stride, int64_t rows,
                                             int64_t count, float *restrict acc) {
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const float *restrict y = x + r * stride;
        for (int64_t c = 0; c < count; c++)
            acc[c] = (((acc[c] + y[c]) + y[stride + c]) + y[2 * stride + c]) + y[3 * stride + c];
    }
    for (; r < rows; r++)
        add_row(x + r * stride, count, acc);
}

#endif
