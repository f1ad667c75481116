/* Convolutions in which every channel is a group: lanes are channels, and images and weights are
 * read where they lie. */
#ifndef REPOPS_CPU_CONV_DEPTHWISE_H
#define REPOPS_CPU_CONV_DEPTHWISE_H

#include "repops/cpu/image/conv_groups.h"

/* Pixels of the output that go together; taps of a line of the kernel, its lines, strides, at
 * most. */
enum { DEPTH_PIXELS = 8, DEPTH_FEW_PIXELS = 4, DEPTH_TAPS = 7, DEPTH_LINES = 16, DEPTH_STRIDE = 2 };

/* Whether it is for g, of which all up to `b_group` is set. */
int RO_NAME(ro_conv_is_depthwise)(const gather *g);
/* How many of the image's next lines are worth asking for. */
int64_t RO_NAME(ro_conv_depthwise_ahead)(const ro_conv *v);
/* conv2d, or conv2d_dx without stride; weights are finite, or no tap lies outside. */
ro_status RO_NAME(ro_conv_depthwise)(ro_ctx *ctx, const gather *g);

/* The same for conv2d_dw, and what pixels [k, end) of one line of dy add to the sums of a chunk. */
int RO_NAME(ro_conv_is_depthwise_weight)(const gather *forward);
void RO_NAME(ro_conv_depthwise_sums)(const grouped *f, const float *dy, int64_t k, int64_t end,
                                     float *sums);

#endif
