/* Views of convolutions and poolings that the checks, the reference and the kernels share. SPEC.md
 * sections 12.1 and 12.2. Index 0 of a pair is the height, 1 the width. Private to repops. */
#ifndef RO_CONV_H
#define RO_CONV_H

#include "repops/repops.h"
#include "repops/src/inline.h"
#include "repops/src/math.h"
#include "repops/op_image.h"

enum { RO_CONV_MOST = 65536 }; /* largest stride, padding and dilation */

typedef struct {
    int64_t batch, channels, filters, groups; /* channels: of x; filters: channels of y */
    int64_t depth, width;                     /* channels and filters per group */
    int64_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
    int bits; /* of the integers of a fixed convolution; 0: f32 */
} ro_conv;

/* Returns conv2d, conv2d_dx or conv2d_dw: the operator whose terms a fixed convolution also has. */
RO_INLINE int ro_conv_kind(int op) {
    switch (op) {
    case RO_OP_CONV2D_FIXED: return RO_OP_CONV2D;
    case RO_OP_CONV2D_FIXED_DX: return RO_OP_CONV2D_DX;
    case RO_OP_CONV2D_FIXED_DW: return RO_OP_CONV2D_DW;
    default: return op;
    }
}

/* Returns how many windows fit along one dimension; 0 if none does. */
RO_INLINE int64_t ro_windows(int64_t in, int64_t pad, int64_t extent, int64_t stride) {
    const int64_t room = in + 2 * pad - extent;
    return room < 0 ? 0 : room / stride + 1;
}

/* The caller has checked the ranges of attributes and the numbers of dimensions. */
RO_INLINE ro_conv ro_conv_of(const ro_call *call) {
    const int64_t *a = call->attr;
    const int kind = ro_conv_kind(call->op);
    const ro_shape *x = kind == RO_OP_CONV2D_DX ? &call->output : &call->input[0];
    const ro_shape *w = kind == RO_OP_CONV2D_DW ? &call->output : &call->input[1];
    ro_conv v = {.batch = x->dim[0],
                 .channels = x->dim[3],
                 .filters = w->dim[3],
                 .groups = a[RO_CONV_GROUPS],
                 .bits = kind == call->op ? 0 : (int)a[RO_CONV_FIXED_BITS]};
    v.depth = w->dim[2];
    v.width = v.filters / v.groups;
    for (int d = 0; d < 2; d++) {
        v.in[d] = x->dim[1 + d];
        v.kernel[d] = w->dim[d];
        v.stride[d] = a[RO_CONV_STRIDE_H + d], v.pad[d] = a[RO_CONV_PAD_H + d];
        v.dilation[d] = a[RO_CONV_DILATION_H + d];
        v.out[d] =
            ro_windows(v.in[d], v.pad[d], v.dilation[d] * (v.kernel[d] - 1) + 1, v.stride[d]);
    }
    return v;
}

enum { RO_POOL_TAPS = 4096, RO_POOL_WINDOWS = 2048, RO_POOL_GROUP = 64 };

/* x and y of a pooling have the same number of channels. */
typedef struct {
    int64_t batch, channels, in[2], out[2], kernel[2], stride[2], pad[2];
    int count_pad;
} ro_pooling;

RO_INLINE ro_pooling ro_pooling_of(const ro_call *call) {
    const int backward = call->op == RO_OP_MAX_POOL2D_GRAD || call->op == RO_OP_AVG_POOL2D_GRAD;
    const ro_shape *x = backward ? &call->output : &call->input[0];
    ro_pooling v = {.batch = x->dim[0],
                    .channels = x->dim[3],
                    .count_pad = call->attr[RO_AVG_POOL2D_COUNT_PAD] != 0};
    for (int d = 0; d < 2; d++) {
        v.in[d] = x->dim[1 + d];
        v.kernel[d] = call->attr[RO_POOL_KERNEL_H + d];
        v.stride[d] = call->attr[RO_POOL_STRIDE_H + d];
        v.pad[d] = call->attr[RO_POOL_PAD_H + d];
        v.out[d] = ro_windows(v.in[d], v.pad[d], v.kernel[d], v.stride[d]);
    }
    return v;
}

/* Returns the number of elements that average pooling divides window (h, w) by. */
RO_INLINE int64_t ro_pool_count(const ro_pooling *v, int64_t h, int64_t w) {
    int64_t count = 1;
    const int64_t at[2] = {h, w};
    for (int d = 0; d < 2; d++) {
        int64_t from = at[d] * v->stride[d] - v->pad[d], to = from + v->kernel[d];
        if (!v->count_pad) {
            from = from < 0 ? 0 : from;
            to = to > v->in[d] ? v->in[d] : to;
        }
        count *= to - from;
    }
    return count;
}

/* Returns an upper bound of the number of windows that contain one pixel. */
RO_INLINE int64_t ro_pool_covering(const ro_pooling *v) {
    return ((v->kernel[0] - 1) / v->stride[0] + 1) * ((v->kernel[1] - 1) / v->stride[1] + 1);
}

/* Returns an integer that orders floats as max does (SPEC 3.2): NaN above all, -0 below +0. */
RO_INLINE int32_t ro_rank(float x) {
    const uint32_t bits = ro_to_bits(x), magnitude = bits & UINT32_C(0x7fffffff);
    const uint32_t sign = (uint32_t)((int32_t)bits >> 31);
    return magnitude > UINT32_C(0x7f800000) ? INT32_MAX
                                            : (int32_t)(bits ^ (sign & UINT32_C(0x7fffffff)));
}

RO_INLINE uint32_t ro_unrank(int32_t rank) {
    const uint32_t sign = (uint32_t)(rank >> 31);
    return rank == INT32_MAX ? RO_QNAN_BITS : (uint32_t)rank ^ (sign & UINT32_C(0x7fffffff));
}

#endif
