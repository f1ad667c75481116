/* Fixed convolutions that guard.c checks: 3 x 3 of images of `size` x `size`, padded. */
#ifndef REPOPS_TEST_CUDA_GUARD_CONVS_H
#define REPOPS_TEST_CUDA_GUARD_CONVS_H

#include "repops/op_image.h"
#include "tests/cuda/products.h"

typedef struct {
    int op; /* 0: no convolution */
    int64_t images, size, channels, filters;
} conv;

static inline ro_shape conv_image(const conv *c, int64_t channels) {
    return (ro_shape){RO_F32, 4, {c->images, c->size, c->size, channels}};
}

static inline ro_shape conv_filters(const conv *c) {
    return (ro_shape){RO_F32, 4, {3, 3, c->channels, c->filters}};
}

static inline ro_shape conv_input(const conv *c, int side) {
    if (side == 0)
        return conv_image(c, c->op == RO_OP_CONV2D_FIXED_DX ? c->filters : c->channels);
    return c->op == RO_OP_CONV2D_FIXED_DW ? conv_image(c, c->filters) : conv_filters(c);
}

static inline ro_shape conv_output(const conv *c) {
    if (c->op == RO_OP_CONV2D_FIXED_DW)
        return conv_filters(c);
    return conv_image(c, c->op == RO_OP_CONV2D_FIXED ? c->filters : c->channels);
}

/* Terms of an element. */
static inline int64_t conv_steps(const conv *c) {
    if (c->op == RO_OP_CONV2D_FIXED_DW)
        return c->images * c->size * c->size;
    return 9 * (c->op == RO_OP_CONV2D_FIXED ? c->channels : c->filters);
}

static inline ro_status run_conv(const tally *t, const conv *c, int bits) {
    const ro_shape in[2] = {conv_input(c, 0), conv_input(c, 1)};
    ro_call call = {.op = c->op, .input_count = 2, .input = in, .output = conv_output(c)};
    call.attr[RO_CONV_FIXED_STRIDE_H] = call.attr[RO_CONV_FIXED_STRIDE_W] = 1;
    call.attr[RO_CONV_FIXED_PAD_H] = call.attr[RO_CONV_FIXED_PAD_W] = 1;
    call.attr[RO_CONV_FIXED_DILATION_H] = call.attr[RO_CONV_FIXED_DILATION_W] = 1;
    call.attr[RO_CONV_FIXED_GROUPS] = 1, call.attr[RO_CONV_FIXED_BITS] = bits;
    return run_call(t, &call);
}

#endif
