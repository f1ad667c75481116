/* Random calls of attention and rotary operators. */
#ifndef TESTS_OP_CASES_ATTENTION_H
#define TESTS_OP_CASES_ATTENTION_H

#include "op_dice.h"
#include "repops/op_attention.h"

static inline void roll_attention(op_case *c, dice *d) {
    const int64_t b = 1 + roll(d, 2), h = 1 + roll(d, 2), t = roll_dim(d, 300);
    const int64_t causal = roll(d, 2), s = causal ? t : roll_dim(d, 300), blocks = (s + 127) / 128;
    c->call.attr[RO_MASKED_CAUSAL] = causal;
    c->call.attr[RO_MASKED_WINDOW] = causal && roll(d, 2) ? roll_dim(d, 300) : 0;
    c->in[0] = shape_of(RO_F32, 4, b, h, t, s);
    c->in[1] = c->in[2] = shape_of(RO_F32, 4, b, h, t, 1);
    switch (c->call.op) {
    case RO_OP_ATTN_EXP: c->in[1].dim[3] = blocks; break;
    case RO_OP_ATTN_AV: c->in[1] = shape_of(RO_F32, 4, b, h, s, roll_dim(d, 70)); break;
    case RO_OP_ATTN_DSCORE: c->in[1] = c->in[0]; break;
    default: break;
    }
}

static inline void roll_attn_l(op_case *c, dice *d) {
    c->in[0] =
        shape_of(RO_F32, 4, 1 + roll(d, 2), 1 + roll(d, 2), roll_dim(d, 300), roll_dim(d, 20));
    c->in[1] = c->in[0];
}

static inline void roll_attn_out(op_case *c, dice *d) {
    roll_attn_l(c, d);
    c->in[1].dim[c->in[1].ndim++] = roll_dim(d, 70);
    c->in[2] = c->in[0];
    c->in[2].dim[3] = 1;
}

static inline void roll_placed(op_case *c, dice *d) {
    const int64_t b = 1 + roll(d, 2), h = 1 + roll(d, 2), s = roll_dim(d, 300);
    const int64_t t = 1 + roll(d, s), blocks = (s + 127) / 128;
    c->call.attr[RO_PLACED_WINDOW] = roll(d, 2) ? roll_dim(d, 300) : 0;
    c->ids = s;
    c->in[0] = shape_of(RO_F32, 4, b, h, t, s);
    if (c->call.op == RO_OP_ATTN_EXP_AT)
        c->in[1] = shape_of(RO_F32, 4, b, h, t, blocks);
    if (c->call.op == RO_OP_ATTN_AV_AT)
        c->in[1] = shape_of(RO_F32, 4, b, h, s, roll_dim(d, 70));
}

static inline void roll_rope(op_case *c, dice *d) {
    const int64_t lines = 1 + roll(d, 3), positions = roll_dim(d, 130), half = roll_dim(d, 66);
    c->in[0] = shape_of(RO_F32, 4, lines, 1 + roll(d, 4), positions, 2 * half);
    c->in[1] = roll(d, 2) ? ints(positions) : shape_of(RO_I32, 2, lines, positions, 0, 0);
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

#endif
