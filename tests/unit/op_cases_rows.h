/* Random calls of row and column operators: reductions, norms, softmax, losses. */
#ifndef TESTS_OP_CASES_ROWS_H
#define TESTS_OP_CASES_ROWS_H

#include "op_dice.h"
#include "repops/op_image.h"
#include "repops/op_reduce.h"
#include "repops/op_softmax.h"

/* Gives inputs the kind of shape that they have in the valid call: a matrix, or one number for each
 * column, row or result. */
static inline void give_rows(op_case *c, int64_t rows, int64_t cols) {
    const int64_t all = ro_shape_numel(&c->in[0]), width = c->in[0].dim[c->in[0].ndim - 1];
    for (int i = 0; i < c->call.input_count; i++) {
        const int64_t n = ro_shape_numel(&c->in[i]);
        const int dtype = c->in[i].dtype;
        c->in[i] = n == all           ? shape2(rows, cols)
                   : n == width       ? shape1(cols)
                   : n == all / width ? shape1(rows)
                                      : c->call.output;
        c->in[i].dtype = dtype;
    }
}

static inline void roll_rows(op_case *c, dice *d) {
    give_rows(c, roll_dim(d, 200), roll_dim(d, 1100));
}

static inline void roll_labels(op_case *c, dice *d) {
    roll_rows(c, d);
    const int64_t cols = c->ids = c->in[0].dim[1];
    if (ro_op_describe(c->call.op)->attr_count > RO_LABELS_IGNORE)
        c->call.attr[RO_LABELS_IGNORE] = roll(d, 4) ? roll(d, cols + 4) - 2 : -100;
}

static inline void roll_reduce(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 100), cols = roll_dim(d, 2200);
    const int64_t block = roll(d, 3) == 0 ? roll_dim(d, 1024) : roll(d, 2) ? 1024 : 128;
    c->call.attr[RO_ROWS_COLS] = cols;
    c->call.attr[RO_ROWS_BLOCK] = block;
    c->call.output = shape1(rows * ((cols + block - 1) / block));
    give_rows(c, rows, cols);
}

/* The broadcast operand is a tensor, a row, several rows, a part of a row, or one element. */
static inline void roll_reduce_dot(op_case *c, dice *d) {
    roll_reduce(c, d);
    const int64_t rows = c->in[0].dim[0], cols = c->in[0].dim[1];
    c->in[1] = roll(d, 2) ? c->in[0] : roll(d, 2) ? shape1(cols) : shape1(1);
    if (rows % 2 == 0 && roll(d, 4) == 0) {
        c->in[0] = shape_of(RO_F32, 3, rows / 2, 2, cols, 0);
        c->in[1] = roll(d, 2) ? shape2(2, cols) : shape1(2 * cols);
    } else if (cols % 3 == 0 && roll(d, 2)) {
        c->in[0] = shape_of(RO_F32, 3, rows, cols / 3, 3, 0);
        c->in[1] = shape1(3);
    }
}

static inline void roll_columns(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 1100), cols = roll_dim(d, 600);
    c->call.attr[RO_COLUMNS_COLS] = cols;
    c->call.output = shape2((rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP, cols);
    give_rows(c, rows, cols);
}

static inline void roll_merge(op_case *c, dice *d) {
    roll_columns(c, d);
    const int64_t per = 1 + roll(d, roll(d, 2) ? 100 : INT64_C(1) << 28);
    c->call.attr[RO_MERGE_PER] = per;
    c->call.attr[RO_MERGE_ROWS] = c->in[0].dim[0] * per - roll(d, per);
}

#endif
