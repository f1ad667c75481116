/* Random valid applications of operators 10 to 15 and 200 to 204; part of op_cases.h. */
#ifndef TESTS_OP_CASES_AXES_H
#define TESTS_OP_CASES_AXES_H

#include "op_cases.h"

/* Up to `most` dimensions, near the edges of tiles, of at most 2^18 elements. */
static inline ro_shape roll_shape(dice *d, int most) {
    ro_shape s = {.dtype = roll_type(d), .ndim = 1 + (int)roll(d, most)};
    int64_t left = 1 << 18;
    for (int i = 0; i < s.ndim; i++) {
        s.dim[i] = roll_dim(d, left < 300 ? left : 300);
        left /= s.dim[i];
    }
    return s;
}

static inline void roll_transpose(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    for (int i = 0; i < c->in[0].ndim; i++) {
        const int64_t j = roll(d, i + 1);
        c->call.attr[i] = c->call.attr[j];
        c->call.attr[j] = i;
    }
}

static inline void roll_slice(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int64_t axis = roll(d, c->in[0].ndim), n = c->in[0].dim[axis], start = roll(d, n);
    const int64_t step = roll(d, 2) ? 1 : 1 + roll(d, n);
    const int64_t attr[] = {axis, start, 1 + roll(d, (n - 1 - start) / step + 1), step};
    memcpy(c->call.attr, attr, sizeof attr);
}

static inline void roll_pad(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int bits = 8 * (int)ro_dtype_size(c->in[0].dtype);
    const int64_t word = roll(d, 2) ? (int64_t)case_special(case_word(d->seed, 2, 0)) : 0;
    const int64_t attr[] = {roll(d, c->in[0].ndim), roll(d, 4), roll(d, 70),
                            roll(d, 2) ? 1 : 1 + roll(d, 4), word & ((INT64_C(1) << bits) - 1)};
    memcpy(c->call.attr, attr, sizeof attr);
}

static inline void roll_gather(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS - 1); /* the ids have up to two */
    const int64_t axis = roll(d, c->in[0].ndim);
    c->ids = c->in[0].dim[axis];
    c->in[1] = shape_of(RO_I32, 1 + (int)roll(d, 2), roll_dim(d, 40), 1 + roll(d, 3), 0, 0);
    if (c->in[1].ndim == 1)
        c->in[1].dim[1] = 0;
    c->call.attr[RO_GATHER_AXIS] = axis;
}

/* dy has the shape that a gather from the output gives. */
static inline void roll_gather_grad(op_case *c, dice *d) {
    roll_gather(c, d);
    c->in[0].dtype = RO_F32;
    if (roll(d, 3) == 0)
        c->in[1] = shape_of(RO_I32, 1, roll_dim(d, 1100), 0, 0, 0);
    if (roll(d, 6) == 0) { /* one id, past 64^2 of its positions */
        c->in[0] = shape_of(RO_F32, 3, 1 + roll(d, 2), 1, 1 + roll(d, 9), 0);
        c->in[1] = shape_of(RO_I32, 1, 21000 + roll(d, 9000), 0, 0, 0);
        c->call.attr[RO_GATHER_GRAD_AXIS] = c->ids = 1;
    }
    ro_call gather = {RO_OP_GATHER, 2, {c->call.attr[RO_GATHER_GRAD_AXIS]}, c->in, {0}};
    const ro_shape out = c->in[0];
    if (ro_infer(&gather, NULL, 0) == RO_OK)
        c->in[0] = gather.output;
    c->call.output = out;
}

static inline void roll_concat_axis(op_case *c, dice *d) {
    const ro_shape first = roll_shape(d, RO_MAX_DIMS);
    const int64_t axis = roll(d, first.ndim);
    c->call.attr[RO_CONCAT_AXIS_AXIS] = axis;
    c->call.input_count = 1 + (int)roll(d, 5);
    for (int i = 0; i < c->call.input_count; i++) {
        c->in[i] = first;
        if (i > 0)
            c->in[i].dim[axis] = 1 + roll(d, 2 * first.dim[axis]);
    }
}

static inline void roll_reshape(op_case *c, dice *d) {
    c->in[0] = roll_shape(d, RO_MAX_DIMS);
    const int64_t n = ro_shape_numel(&c->in[0]);
    c->call.output = shape_of(c->in[0].dtype, 2, n, 1, 0, 0);
    for (int64_t by = 2; by < 20; by++)
        if (n % by == 0 && roll(d, 2))
            c->call.output = shape_of(c->in[0].dtype, 3, by, 1, n / by, 0);
}

static inline void roll_uniform(op_case *c, dice *d) {
    c->call.output = shape2(roll_dim(d, 300), roll_dim(d, 300));
    c->call.attr[RO_UNIFORM_SEED] = (int64_t)case_word(d->seed, 1, 0);
    c->call.attr[RO_UNIFORM_STREAM] = roll(d, 1 << 30) * 3;
    c->call.attr[RO_UNIFORM_LOW] = roll_f32(d, 1);
    c->call.attr[RO_UNIFORM_HIGH] = roll_f32(d, 1);
}

static inline void roll_permutation(op_case *c, dice *d) {
    c->call.output = shape_of(RO_I32, 1, roll_dim(d, 5000), 0, 0, 0);
    c->in[0] = shape_of(RO_I32, 1, 1, 0, 0, 0);
    c->call.attr[RO_PERMUTATION_SEED] = (int64_t)case_word(d->seed, 1, 0);
    c->call.attr[RO_PERMUTATION_STREAM] = roll(d, 1 << 30) * 3;
}

static inline void roll_rope(op_case *c, dice *d) {
    const int64_t lines = 1 + roll(d, 3), positions = roll_dim(d, 130), half = roll_dim(d, 66);
    c->in[0] = shape_of(RO_F32, 4, lines, 1 + roll(d, 4), positions, 2 * half);
    c->in[1] = roll(d, 2) ? shape_of(RO_I32, 1, positions, 0, 0, 0)
                          : shape_of(RO_I32, 2, lines, positions, 0, 0);
    c->in[2] = shape_of(RO_I32, 2, half, 2, 0, 0);
    c->call.attr[RO_ROPE_PAIRS] = roll(d, 2);
    c->call.attr[RO_ROPE_INVERSE] = roll(d, 2);
}

static inline void roll_rope_turns(op_case *c, dice *d) {
    const float base[] = {1.0f, 10000.0f, 500000.0f, 1.5f, 0x1.fffffep31f};
    const float factor[] = {1.0f, 8.0f, 32.0f, 3.7f, 0x1p31f};
    c->call.output = shape_of(RO_I32, 2, roll_dim(d, 300), 2, 0, 0);
    c->call.attr[RO_ROPE_TURNS_BASE] = ro_attr_f32(base[roll(d, 5)]);
    const int64_t kind = roll(d, 3);
    c->call.attr[RO_ROPE_TURNS_KIND] = kind;
    if (kind != RO_ROPE_PLAIN)
        c->call.attr[RO_ROPE_TURNS_FACTOR] = ro_attr_f32(factor[roll(d, 5)]);
    if (kind != RO_ROPE_LLAMA3)
        return;
    c->call.attr[RO_ROPE_TURNS_LOW] = ro_attr_f32(roll(d, 2) ? 1.0f : 0x1.5p-8f);
    c->call.attr[RO_ROPE_TURNS_HIGH] = ro_attr_f32(roll(d, 2) ? 4.0f : 16383.5f);
    c->call.attr[RO_ROPE_TURNS_ORIGINAL] = roll(d, 2) ? 8192 : 1 + roll(d, INT32_MAX);
}

static inline int rolls_axes(int op) {
    return (op >= RO_OP_TRANSPOSE && op <= RO_OP_CAST) || (op >= RO_OP_RESHAPE && op <= RO_OP_ROPE);
}

static inline void roll_axes(op_case *c, dice *d) {
    switch (c->call.op) {
    case RO_OP_TRANSPOSE: roll_transpose(c, d); break;
    case RO_OP_SLICE: roll_slice(c, d); break;
    case RO_OP_PAD: roll_pad(c, d); break;
    case RO_OP_GATHER: roll_gather(c, d); break;
    case RO_OP_GATHER_GRAD: roll_gather_grad(c, d); break;
    case RO_OP_CONCAT_AXIS: roll_concat_axis(c, d); break;
    case RO_OP_RESHAPE: roll_reshape(c, d); break;
    case RO_OP_UNIFORM: roll_uniform(c, d); break;
    case RO_OP_PERMUTATION: roll_permutation(c, d); break;
    case RO_OP_ROPE_TURNS: roll_rope_turns(c, d); break;
    case RO_OP_ROPE: roll_rope(c, d); break;
    default: /* cast */
        c->in[0] = roll_shape(d, 2);
        c->call.attr[RO_CAST_DTYPE] = 1 + roll(d, RO_F16);
        break;
    }
}

#endif
