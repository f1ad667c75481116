/* Sums of rows with several blocks: R over the results of R, SPEC.md section 3.2. */
#ifndef REPOPS_CPU_LEVELS_H
#define REPOPS_CPU_LEVELS_H

#include "repops/cpu/rows/columns.h"
#include "repops/cpu/elements/functions.h"
#include "repops/cpu/rows/lanes.h"
#include "repops/include/repops/fused.h"

enum { PARTS = RO_CROSS_ENTROPY_COLS_MAX / RO_REDUCE_BLOCK };

/* Returns R over the results of blocks, level by level; overwrites `part`. */
RO_INLINE float sum_of_parts(float *part, int64_t count) {
    while (count > 1) {
        const int64_t blocks = ceil_div(count, RO_REDUCE_BLOCK);
        for (int64_t b = 0; b < blocks; b++)
            part[b] = lane_sum(part + b * RO_REDUCE_BLOCK,
                               min_i64(RO_REDUCE_BLOCK, count - b * RO_REDUCE_BLOCK));
        count = blocks;
    }
    return part[0];
}

/* Returns all levels of R over a row. */
RO_INLINE float sum_of_row(const terms *row, int64_t cols, add_terms *add, add_term *add_one) {
    float part[PARTS];
    int64_t parts = 0;
    terms t = *row;
    part[0] = 0; /* for compilers, which do not see that there is at least one part */
    for (int64_t left = cols; left > 0; left -= RO_REDUCE_BLOCK, parts++) {
        part[parts] = lane_reduce(&t, min_i64(RO_REDUCE_BLOCK, left), add, add_one);
        t.a += RO_REDUCE_BLOCK, t.b += t.b ? RO_REDUCE_BLOCK : 0, t.c += t.c ? RO_REDUCE_BLOCK : 0;
    }
    return sum_of_parts(part, parts);
}

/* Returns R of exp(x - m). Stores the exponentials in `e`, and prefetches the row `next` meanwhile,
 * each if it is not NULL. */
RO_INLINE float sum_of_exponentials(const float *x, float m, int64_t cols, float *e,
                                    const float *next) {
    float part[PARTS], buffer[RO_REDUCE_BLOCK];
    int64_t parts = 0;
    part[0] = 0; /* for compilers, which do not see that there is at least one part */
    for (int64_t from = 0; from < cols; from += RO_REDUCE_BLOCK, parts++) {
        const int64_t count = min_i64(RO_REDUCE_BLOCK, cols - from);
        float *to = e ? e + from : buffer;
        for (int64_t c = 0; c < count; c += COLUMN_RUN) {
            const int64_t run = min_i64(COLUMN_RUN, count - c);
            fetch_rows(next + from + c, 0, next != NULL, run);
            map(exp_minus, (constants){.a = m}, x + from + c, run, to + c);
        }
        part[parts] = lane_sum(to, count);
    }
    return sum_of_parts(part, parts);
}

#endif
