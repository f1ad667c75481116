/* Checks of the sums of a block's chunks (repops/guard.h), for what computes blocks by an engine
 * that can add up. */
#ifndef REPOPS_CPU_FIXED_CHECK_H
#define REPOPS_CPU_FIXED_CHECK_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/guard.h"
#include "repops/src/packed.h"

/* The state of a check: one thread's block, in one chunk. */
typedef struct {
    const fixed_engine *engine; /* NULL: nothing is checked */
    const ro_guard *guard;
    int bits;
    uint32_t (*line)[RO_DOT_CHUNK]; /* sums of a's rows, at each step of each part */
    uint32_t *column, *row;         /* totals of the sums that were computed */
    uint32_t *packed;            /* sum of each group of b, with its powers, when it was packed */
    uint32_t *expected, *again;  /* what columns must add up to; rows, when a fault is looked for */
    float *scratch;              /* totals that nobody reads */
    uint32_t scale;              /* of the powers and marks of a's rows; */
    int64_t scales, scale_row;   /* how many strips have others now, and the first one */
    bool known;                  /* sums of a's words and powers when they were packed: */
    uint32_t a_packed, a_powers; /* of all rows; of the powers as they are now */
} fixed_check;

/* Sizes and places what blocks of so many rows and columns need; nothing where `c` has no engine.
 */
void RO_NAME(ro_fixed_check_place)(fixed_check *c, int64_t rows, int64_t cols, char *memory,
                                   int64_t *at);

/* Begins the check of a chunk. */
void RO_NAME(ro_fixed_check_start)(fixed_check *c, int64_t rows, int64_t cols);
/* After group `group` of b was packed; `sum`: of its words and powers. */
void RO_NAME(ro_fixed_check_group)(fixed_check *c, int64_t group, void *packed, uint32_t sum);
/* After rows of a were packed, and after their tiles. `sum`: as of a group of b; NULL: they were
 * packed just now. */
void RO_NAME(ro_fixed_check_lines)(fixed_check *c, const fixed_tiles *t, const uint32_t *sum);
void RO_NAME(ro_fixed_check_tiles)(fixed_check *c, const fixed_tiles *t, int64_t row);
/* Computes tiles from row `row` of the block on, and both checks of their rows. */
void RO_NAME(ro_fixed_check_run)(fixed_check *c, fixed_tiles *t, const uint32_t *sum, int64_t row);
/* Returns the sum of a packed group's words and powers; 0 where the engine cannot add them up. */
uint32_t RO_NAME(ro_fixed_packed_sum)(const fixed_engine *e, ro_packed_operand side,
                                      const fixed_lines *l, int bits, const void *packed,
                                      const double *power);

/* Ends the check of a chunk, after all its rows. Returns 1 if all fits; else *out says what does
 * not, but for the row. */
int RO_NAME(ro_fixed_check_end)(fixed_check *c, const fixed_tiles *t, ro_guard_finding *out);
/* Compares the rows of tiles that were computed again (c->again, c->scratch) with those that were
 * computed first, from row `row` of the block on. */
void RO_NAME(ro_fixed_check_rows)(const fixed_check *c, int64_t rows, int64_t row,
                                  ro_guard_finding *out);

#endif
