/* Random calls of operators that draw tokens. */
#ifndef TESTS_OP_CASES_SAMPLING_H
#define TESTS_OP_CASES_SAMPLING_H

#include "op_dice.h"
#include "repops/op_sampling.h"

/* Rolls weights of any 32 bits, or with few distinct values, so that many are equal. */
static inline void roll_weights(op_case *c, dice *d) {
    static const int64_t ids[] = {0, 0, UINT32_MAX - 3, 1, 3, 3000};
    const int64_t rows = roll_dim(d, 30), cols = roll_dim(d, 2200);
    c->in[0] = shape_of(RO_I32, 2, rows, cols, 0, 0);
    c->in[1] = shape_of(RO_I32, 2, rows, 2, 0, 0);
    c->ids = ids[roll(d, 6)];
}

static inline void roll_keep_top(op_case *c, dice *d) {
    roll_weights(c, d);
    c->ids = c->in[0].dim[1];
}

static inline void roll_top_k(op_case *c, dice *d) {
    roll_weights(c, d);
    c->call.attr[RO_TOP_K_K] = roll(d, 2) ? roll_dim(d, 60) : 1 + roll(d, c->in[0].dim[1] + 2);
}

static inline void roll_top_p(op_case *c, dice *d) {
    roll_weights(c, d);
    c->call.attr[RO_TOP_P_P] = roll(d, 4) ? 1 + roll(d, 1 << 24) : roll(d, 2) ? 1 << 24 : 1;
}

static inline void roll_random_words(op_case *c, dice *d) {
    c->in[0].dim[0] = roll_dim(d, 30);
    roll_attributes(c, d);
}

#endif
