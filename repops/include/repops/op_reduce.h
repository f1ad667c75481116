/* Operators of section `reduce` and their attributes, whose formulas are in SPEC.md.
 * `make operators` writes this file from repops/src/operators.def. */
#ifndef REPOPS_OP_REDUCE_H
#define REPOPS_OP_REDUCE_H

/* clang-format off */

/* Each operator with its inputs, as SPEC.md names them, and what it computes. The numbers are part
 * of the canonical encoding of graphs: never reuse one. */
enum {
    RO_OP_REDUCE_SUM = 40,         /* (x): sums of blocks of a row */
    RO_OP_REDUCE_MAX = 41,         /* (x): maxima of blocks of a row */
    RO_OP_REDUCE_DOT = 42,         /* (a, b): sums of a * b; b repeats */
    RO_OP_REDUCE_SQDEV = 43,       /* (x, mean): sums of (x - mean)^2 */
    RO_OP_REDUCE_EXPSUM = 44,      /* (x, m): sums of exp(x - m) */
    RO_OP_REDUCE_LN_GX = 45,       /* (dy, gamma, x, mean, rstd): sums for ln_dx */
    RO_OP_SUM_ROWS = 48,           /* (x): sums of 64 rows */
    RO_OP_LN_DGAMMA = 49,          /* (dy, x, mean, rstd): gradient of gamma */
    RO_OP_SUM_AXIS = 117,          /* (x): sums of 64 along an axis */
    RO_OP_MAX_AXIS = 118,          /* (x): maxima of 64 along an axis */
    RO_OP_ARGMAX = 119,            /* (x): index of the first maximum along an axis */
    RO_OP_MAX_GRAD = 120,          /* (at i32, dy): gradient of max_axis; at is from argmax */
    RO_OP_EXPAND = 121,            /* (x any): repeated along an axis of length 1 */
};

/* Places of attributes in ro_call.attr. One marked `float` holds the bits of a float (ro_attr_f32).
 * The last names stand for attributes that several operators share. */
enum {
    RO_REDUCE_SUM_COLS = 0,
    RO_REDUCE_SUM_BLOCK = 1,
    RO_REDUCE_MAX_COLS = 0,
    RO_REDUCE_MAX_BLOCK = 1,
    RO_REDUCE_DOT_COLS = 0,
    RO_REDUCE_DOT_BLOCK = 1,
    RO_REDUCE_SQDEV_COLS = 0,
    RO_REDUCE_SQDEV_BLOCK = 1,
    RO_REDUCE_EXPSUM_COLS = 0,
    RO_REDUCE_EXPSUM_BLOCK = 1,
    RO_REDUCE_LN_GX_COLS = 0,
    RO_REDUCE_LN_GX_BLOCK = 1,
    RO_SUM_ROWS_COLS = 0,
    RO_LN_DGAMMA_COLS = 0,
    RO_SUM_AXIS_AXIS = 0,
    RO_MAX_AXIS_AXIS = 0,
    RO_ARGMAX_AXIS = 0,
    RO_MAX_GRAD_AXIS = 0,
    RO_MAX_GRAD_COUNT = 1,
    RO_EXPAND_AXIS = 0,
    RO_EXPAND_COUNT = 1,
    RO_ROWS_COLS = RO_REDUCE_SUM_COLS,
    RO_ROWS_BLOCK = RO_REDUCE_SUM_BLOCK,
    RO_COLUMNS_COLS = RO_SUM_ROWS_COLS,
};

/* clang-format on */

#endif
