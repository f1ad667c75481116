/* Random applications of what generates tokens: operators 214 to 224. */
#ifndef TESTS_OP_CASES_SAMPLING_H
#define TESTS_OP_CASES_SAMPLING_H

#include "op_cases_axes.h"

static inline ro_shape roll_one(void) {
    return shape_of(RO_I32, 1, 1, 0, 0, 0);
}

/* Places from -2 to 2 beyond the end. */
static inline void roll_put_rows(op_case *c, dice *d) {
    c->in[0] = c->in[1] = roll_shape(d, 4);
    const int64_t axis = roll(d, c->in[0].ndim);
    c->call.attr[RO_PUT_ROWS_AXIS] = axis;
    c->ids = c->in[0].dim[axis];
    c->in[1].dim[axis] = roll(d, 2) ? 1 : 1 + roll(d, c->ids + 3);
    c->in[2] = roll_one();
}

static inline void roll_placed(op_case *c, dice *d) {
    const int64_t b = 1 + roll(d, 2), h = 1 + roll(d, 2), s = roll_dim(d, 300);
    const int64_t t = 1 + roll(d, s), blocks = (s + 127) / 128;
    c->call.attr[RO_PLACED_WINDOW] = roll(d, 2) ? roll_dim(d, 300) : 0;
    c->ids = s;
    c->in[0] = shape_of(RO_F32, 4, b, h, t, s);
    c->in[c->call.input_count - 1] = roll_one();
    if (c->call.op == RO_OP_ATTN_EXP_AT)
        c->in[1] = shape_of(RO_F32, 4, b, h, t, blocks);
    if (c->call.op == RO_OP_ATTN_AV_AT)
        c->in[1] = shape_of(RO_F32, 4, b, h, s, roll_dim(d, 70));
}

/* Weights of any 32 bits, or of few values, so that many are equal. */
static inline void roll_weights(op_case *c, dice *d) {
    static const int64_t ids[] = {0, 0, UINT32_MAX - 3, 1, 3, 3000};
    const int64_t rows = roll_dim(d, 30), cols = roll_dim(d, 2200);
    const ro_shape pairs = shape_of(RO_I32, 2, rows, 2, 0, 0);
    c->in[0] = shape_of(RO_I32, 2, rows, cols, 0, 0);
    c->in[1] = pairs;
    c->ids = ids[roll(d, 6)];
    switch (c->call.op) {
    case RO_OP_TOP_K:
        c->call.attr[RO_TOP_K_K] = roll(d, 2) ? roll_dim(d, 60) : 1 + roll(d, cols + 2);
        break;
    case RO_OP_TOP_P:
        c->call.attr[RO_TOP_P_P] = roll(d, 4) ? 1 + roll(d, 1 << 24) : roll(d, 2) ? 1 << 24 : 1;
        break;
    case RO_OP_KEEP_TOP: c->ids = cols; break;
    case RO_OP_RANDOM_WORDS:
        c->in[0] = pairs;
        c->in[1] = roll_one();
        c->call.attr[RO_RANDOM_WORDS_SEED] = (int64_t)case_word(d->seed, 1, 0);
        c->call.attr[RO_RANDOM_WORDS_STREAM] = roll(d, 1 << 30) * 3;
        break;
    default: break;
    }
}

static inline int rolls_sampling(int op) {
    return op >= RO_OP_IADD && op <= RO_OP_DRAW;
}

static inline void roll_sampling(op_case *c, dice *d) {
    switch (c->call.op) {
    case RO_OP_PUT_ROWS: roll_put_rows(c, d); break;
    case RO_OP_ATTN_MAX_AT:
    case RO_OP_ATTN_EXP_AT:
    case RO_OP_ATTN_AV_AT: roll_placed(c, d); break;
    case RO_OP_IADD:
        roll_elementwise(c, d);
        c->in[0].dtype = c->in[1].dtype = RO_I32;
        break;
    case RO_OP_WEIGHT:
        c->in[0] = shape2(roll_dim(d, 60), roll_dim(d, 2200));
        c->in[1] = shape1(c->in[0].dim[0]);
        break;
    default: roll_weights(c, d); break;
    }
}

#endif
