/* Random applications of reductions along an axis, of softmax and of RMS norm. */
#ifndef TESTS_OP_CASES_REDUCE_H
#define TESTS_OP_CASES_REDUCE_H

#include "op_cases_axes.h"

static inline void roll_along(op_case *c, dice *d) {
    const int64_t inner = roll(d, 3) ? roll_dim(d, 600) : 1, axis = roll(d, 2);
    c->in[0] = shape_of(RO_F32, 3, 1 + roll(d, 5), roll_dim(d, 300), inner, 0);
    if (axis == 0)
        c->in[0] = shape_of(RO_F32, 2, roll_dim(d, 1100), roll_dim(d, 300), 0, 0);
    c->call.attr[RO_ALONG_AXIS] = roll(d, 4) ? axis : c->in[0].ndim - 1;
}

/* Rolls an input of length 1 along the axis; for max_grad, places in [-2, count + 2). */
static inline void roll_back(op_case *c, dice *d) {
    roll_along(c, d);
    int64_t *n = &c->in[0].dim[c->call.attr[RO_EXPAND_AXIS]];
    c->call.attr[RO_EXPAND_COUNT] = c->ids = *n;
    *n = 1;
    c->in[1] = c->in[0];
    if (c->call.op == RO_OP_MAX_GRAD)
        c->in[0].dtype = RO_I32;
    else
        c->in[0].dtype = roll_type(d);
}

static inline void roll_softmax(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 200), cols = roll_dim(d, 1100);
    c->in[0] = c->in[1] = shape2(rows, cols);
    c->in[2] = shape1(rows);
    if (c->call.op == RO_OP_SOFTMAX || c->call.op == RO_OP_LOG_SOFTMAX)
        c->in[1] = c->in[2];
}

static inline void roll_ignore(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 200), cols = roll_dim(d, 300);
    c->ids = cols;
    c->call.attr[RO_LABELS_IGNORE] = roll(d, 4) ? roll(d, cols + 4) - 2 : -100;
    c->in[0] = shape2(rows, cols);
    c->in[1] = c->in[2] = c->in[4] = shape1(rows);
    c->in[3] = shape_of(RO_I32, 1, rows, 0, 0, 0);
    if (c->call.op == RO_OP_KEPT)
        c->in[0] = c->in[3];
}

static inline void roll_rms(op_case *c, dice *d) {
    const int64_t rows = roll_dim(d, 300), cols = roll_dim(d, 1100), block = roll_dim(d, 1024);
    c->in[0] = c->in[2] = shape2(rows, cols);
    c->in[1] = shape1(cols);
    c->in[3] = c->in[4] = shape1(rows);
    switch (c->call.op) {
    case RO_OP_RMSNORM:
        c->in[1] = shape1(rows);
        c->in[2] = shape1(cols);
        break;
    case RO_OP_REDUCE_RMS_GX:
        c->call.attr[RO_ROWS_COLS] = cols;
        c->call.attr[RO_ROWS_BLOCK] = block;
        c->call.output = shape1(rows * ((cols + block - 1) / block));
        break;
    case RO_OP_RMS_DGAMMA:
        c->in[1] = c->in[0];
        c->in[2] = shape1(rows);
        c->call.attr[RO_COLUMNS_COLS] = cols;
        c->call.output = shape2((rows + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP, cols);
        break;
    default: break;
    }
}

static inline int rolls_reductions(int op) {
    return op >= RO_OP_SOFTMAX && op <= RO_OP_RMS_DGAMMA;
}

static inline void roll_reductions(op_case *c, dice *d) {
    const int op = c->call.op;
    if (op <= RO_OP_LOG_SOFTMAX_GRAD)
        roll_softmax(c, d);
    else if (op <= RO_OP_KEPT)
        roll_ignore(c, d);
    else if (op <= RO_OP_ARGMAX)
        roll_along(c, d);
    else if (op <= RO_OP_EXPAND)
        roll_back(c, d);
    else
        roll_rms(c, d);
}

#endif
