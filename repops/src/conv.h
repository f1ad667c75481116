/* Views of convolutions and poolings that the checks, the reference and the kernels share. SPEC.md
 * sections 12.1 and 12.2. Of pairs, 0 is the height and 1 the width. Private to repops. */
#ifndef RO_CONV_H
#define RO_CONV_H

#include "repops/repops.h"

enum { RO_CONV_MOST = 65536 }; /* strides, paddings, dilations */

typedef struct {
    int64_t batch, channels, filters, groups; /* channels of x, of y */
    int64_t depth, width;                     /* of one group: channels, filters */
    int64_t in[2], out[2], kernel[2], stride[2], pad[2], dilation[2];
} ro_conv;

/* How many windows fit; 0 if none does. */
static inline int64_t ro_windows(int64_t in, int64_t pad, int64_t extent, int64_t stride) {
    const int64_t room = in + 2 * pad - extent;
    return room < 0 ? 0 : room / stride + 1;
}

/* The ranges of attributes and the numbers of dimensions were checked. */
static inline ro_conv ro_conv_of(const ro_call *call) {
    const int64_t *a = call->attr;
    const ro_shape *x = call->op == RO_OP_CONV2D_DX ? &call->output : &call->input[0];
    const ro_shape *w = call->op == RO_OP_CONV2D_DW ? &call->output : &call->input[1];
    ro_conv v = {.batch = x->dim[0], .channels = x->dim[3], .filters = w->dim[3], .groups = a[6]};
    v.depth = w->dim[2];
    v.width = v.filters / v.groups;
    for (int d = 0; d < 2; d++) {
        v.in[d] = x->dim[1 + d];
        v.kernel[d] = w->dim[d];
        v.stride[d] = a[d], v.pad[d] = a[2 + d], v.dilation[d] = a[4 + d];
        v.out[d] =
            ro_windows(v.in[d], v.pad[d], v.dilation[d] * (v.kernel[d] - 1) + 1, v.stride[d]);
    }
    return v;
}

#endif
