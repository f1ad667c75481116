/* Random numbers, shapes and types for the calls of op_cases*.h. */
#ifndef TESTS_OP_DICE_H
#define TESTS_OP_DICE_H

#include "repops/tools/op_data.h"

typedef struct {
    uint64_t seed, at;
} dice;

static inline int64_t roll(dice *d, int64_t n) {
    return (int64_t)(case_word(d->seed, 0, (int64_t)d->at++) % (uint64_t)n);
}

/* Rolls a dimension of at most `most`, usually near the edge of a block. */
static inline int64_t roll_dim(dice *d, int64_t most) {
    static const int64_t edges[] = {1,   2,   3,   5,   6,   7,   8,    13,   14,   15,  16,
                                    17,  28,  29,  31,  32,  33,  63,   64,   65,   66,  127,
                                    128, 129, 255, 256, 257, 300, 1023, 1024, 1025, 1100};
    int64_t n = roll(d, 4) ? edges[roll(d, sizeof edges / sizeof edges[0])] : 1 + roll(d, most);
    return n > most ? 1 + n % most : n;
}

static inline ro_shape shape_of(int dtype, int ndim, int64_t a, int64_t b, int64_t c, int64_t d) {
    ro_shape s = {.dtype = dtype, .ndim = ndim};
    const int64_t dim[] = {a, b, c, d};
    for (int i = 0; i < ndim; i++)
        s.dim[i] = dim[i];
    return s;
}

static inline ro_shape shape1(int64_t n) {
    return shape_of(RO_F32, 1, n, 0, 0, 0);
}

static inline ro_shape shape2(int64_t rows, int64_t cols) {
    return shape_of(RO_F32, 2, rows, cols, 0, 0);
}

static inline int64_t roll_f32(dice *d, int allow_special) {
    const float usual[] = {1.0f, 0.125f, -0.75f, 0.9f, 0.95f, 1e-5f, 3.0f};
    return allow_special && roll(d, 8) == 0 ? (int64_t)case_special((uint64_t)roll(d, 1 << 16))
                                            : ro_attr_f32(usual[roll(d, 7)]);
}

static inline int roll_type(dice *d) {
    const int dtype[] = {RO_F32, RO_F32, RO_I32, RO_U8, RO_U16, RO_BF16, RO_F16, RO_I8};
    return dtype[roll(d, 8)];
}

static inline int roll_float(dice *d) {
    const int dtype[] = {RO_F32, RO_BF16, RO_F16};
    return dtype[roll(d, 3)];
}

static inline ro_shape ints(int64_t n) {
    return shape_of(RO_I32, 1, n, 0, 0, 0);
}

/* Rolls up to `most` dimensions near the edges of tiles, with at most 2^18 elements. */
static inline ro_shape roll_shape(dice *d, int most) {
    ro_shape s = {.dtype = roll_type(d), .ndim = 1 + (int)roll(d, most)};
    int64_t left = 1 << 18;
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = roll_dim(d, left < 300 ? left : 300);
        left /= s.dim[i];
    }
    return s;
}

/* Rolls attributes that mean the same in every operator: numbers, and the source of random
 * words. */
static inline void roll_attributes(op_case *c, dice *d) {
    const ro_op_info *info = ro_op_describe(c->call.op);
    for (int i = 0; i < info->attr_count; i++) {
        if (info->attr[i].kind == 'f')
            c->call.attr[i] = roll_f32(d, 1);
        else if (strcmp(info->attr[i].name, "seed") == 0)
            c->call.attr[i] = (int64_t)case_word(d->seed, 1, 0);
        else if (strcmp(info->attr[i].name, "stream") == 0)
            c->call.attr[i] = roll(d, 1 << 30) * 3;
    }
}

#endif
