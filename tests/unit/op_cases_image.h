/* Random calls of convolutions and pooling. */
#ifndef TESTS_OP_CASES_IMAGE_H
#define TESTS_OP_CASES_IMAGE_H

#include "op_dice.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

static inline int is_convolution(int op) {
    const int kind = ro_conv_kind(op);
    return kind == RO_OP_CONV2D || kind == RO_OP_CONV2D_DX || kind == RO_OP_CONV2D_DW;
}

/* Kernels extend over edges, strides leave remainders, groups divide channels. */
static inline void roll_conv(op_case *c, dice *d) {
    int64_t *a = c->call.attr, in[2], out[2], kernel[2];
    const int64_t groups = roll(d, 3) ? 1 : 1 + roll(d, 3), large = roll(d, 4) == 0;
    const int64_t depth = roll_dim(d, large ? 130 : 20), width = roll_dim(d, large ? 70 : 20);
    for (int i = 0; i < 2; i++) {
        kernel[i] = roll(d, 3) ? 1 + 2 * roll(d, 2) : 1 + roll(d, 5);
        a[i] = roll(d, 2) ? 1 : 1 + roll(d, 3);
        a[2 + i] = roll(d, 2) ? kernel[i] / 2 : roll(d, 4);
        a[4 + i] = roll(d, 3) ? 1 : 1 + roll(d, 2);
        out[i] = roll_dim(d, large ? 20 : 9);
        in[i] = (out[i] - 1) * a[i] + a[4 + i] * (kernel[i] - 1) + 1 - 2 * a[2 + i] + roll(d, a[i]);
        in[i] = in[i] < 1 ? 1 : in[i];
        out[i] = (in[i] + 2 * a[2 + i] - a[4 + i] * (kernel[i] - 1) - 1) / a[i] + 1;
    }
    a[6] = groups;
    const int op = ro_conv_kind(c->call.op);
    const int64_t n = 1 + roll(d, roll(d, 3) ? 3 : 20);
    const ro_shape x = shape_of(RO_F32, 4, n, in[0], in[1], groups * depth);
    const ro_shape w = shape_of(RO_F32, 4, kernel[0], kernel[1], depth, groups * width);
    const ro_shape y = shape_of(RO_F32, 4, n, out[0], out[1], groups * width);
    c->in[0] = op == RO_OP_CONV2D_DX ? y : x;
    c->in[1] = op == RO_OP_CONV2D_DW ? y : w;
    if (op != RO_OP_CONV2D)
        c->call.output = op == RO_OP_CONV2D_DX ? x : w;
}

static inline void roll_conv_fixed(op_case *c, dice *d) {
    roll_conv(c, d);
    c->call.attr[RO_CONV_FIXED_BITS] = 8 + 8 * roll(d, 3);
}

static inline void roll_pool(op_case *c, dice *d) {
    int64_t *a = c->call.attr, in[2], out[2];
    const int64_t large = roll(d, 8) == 0, n = 1 + roll(d, 3), channels = roll_dim(d, 600);
    const ro_op_info *info = ro_op_describe(c->call.op);
    for (int i = 0; i < 2; i++) {
        a[i] = large ? 7 + roll(d, 5) : 1 + roll(d, 4);
        a[2 + i] = roll(d, 2) ? a[i] : 1 + roll(d, 3);
        a[4 + i] = roll(d, a[i] / 2 + 1);
        in[i] = a[i] + roll(d, 9);
        out[i] = (in[i] + 2 * a[4 + i] - a[i]) / a[2 + i] + 1;
    }
    if (info->attr_count > RO_AVG_POOL2D_COUNT_PAD)
        a[RO_AVG_POOL2D_COUNT_PAD] = roll(d, 2);
    c->ids = a[0] * a[1];
    const ro_shape x = shape_of(RO_F32, 4, n, in[0], in[1], channels);
    const ro_shape y = shape_of(RO_F32, 4, n, out[0], out[1], channels);
    c->in[0] = c->in[1] = info->declared_shape ? y : x;
    c->in[1].dtype = RO_I32;
    c->call.output = info->declared_shape ? x : (ro_shape){0};
}

#endif
