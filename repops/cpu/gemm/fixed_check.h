/* Checks of the sums of a block's chunks (repops/guard.h), for engines whose packed numbers can be
 * added up (fixed_engine.adding). */
#ifndef REPOPS_CPU_FIXED_CHECK_H
#define REPOPS_CPU_FIXED_CHECK_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/guard.h"
#include "repops/src/packed.h"

/* The state of a check: one thread's block, in the current chunk. */
typedef struct {
    const fixed_engine *engine; /* NULL: sums are not checked */
    const ro_guard *guard;
    int bits;
    uint32_t (*line)[RO_DOT_CHUNK]; /* sums of a's rows, for each part and step */
    uint32_t *column, *row;         /* totals of the sums that the engine computed */
    uint32_t *packed;            /* sum of each group of b and of its powers, when it was packed */
    uint32_t *expected, *again;  /* what columns must add up to; rows, computed again */
    float *scratch;              /* totals of a repeated computation, which are not used */
    uint32_t scale;              /* sum of the powers and marks of a's current rows */
    int64_t scales, scale_row;   /* groups where that sum has changed; first row of the first */
    bool known;                  /* a's sums from when it was packed are known: */
    uint32_t a_packed, a_powers; /* those of all rows; sum of the powers as they are now */
} fixed_check;

/* Places the arrays for a block of `rows` rows and `cols` columns, or only measures them if
 * `memory` is NULL. Does nothing if c->engine is NULL. */
void RO_NAME(ro_fixed_check_place)(fixed_check *c, int64_t rows, int64_t cols, char *memory,
                                   int64_t *at);

/* Begins the check of a chunk. */
void RO_NAME(ro_fixed_check_start)(fixed_check *c, int64_t rows, int64_t cols);
/* Notes that group `group` of b was packed; `sum` is that of its words and powers then. */
void RO_NAME(ro_fixed_check_group)(fixed_check *c, int64_t group, void *packed, uint32_t sum);
/* To call when rows of a are packed, and when their tiles are computed. `sum` is the rows' sum from
 * when they were packed as a whole; NULL: they were packed just now. */
void RO_NAME(ro_fixed_check_lines)(fixed_check *c, const fixed_tiles *t, const uint32_t *sum);
void RO_NAME(ro_fixed_check_tiles)(fixed_check *c, const fixed_tiles *t, int64_t row);
/* Computes tiles from row `row` of the block on, with both calls above. */
void RO_NAME(ro_fixed_check_run)(fixed_check *c, fixed_tiles *t, const uint32_t *sum, int64_t row);
/* Returns the sum of a packed group's words and powers; 0 if the engine has no `adding`. */
uint32_t RO_NAME(ro_fixed_packed_sum)(const fixed_engine *e, ro_packed_operand side,
                                      const fixed_lines *l, int bits, const void *packed,
                                      const double *power);

/* Ends the check of a chunk, after all its rows. Returns 1 if it passes; otherwise *out says what
 * is wrong, except for rows of wrong sums. */
int RO_NAME(ro_fixed_check_end)(fixed_check *c, const fixed_tiles *t, ro_guard_finding *out);
/* Compares rows of a repeated computation (c->again) with the first one, from row `row` of the
 * block on. */
void RO_NAME(ro_fixed_check_rows)(const fixed_check *c, int64_t rows, int64_t row,
                                  ro_guard_finding *out);

#endif
