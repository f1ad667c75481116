/* Depthwise convolutions, in which every channel is a group: lanes are channels, and images and
 * weights are read in place. */
#ifndef REPOPS_CPU_CONV_DEPTHWISE_H
#define REPOPS_CPU_CONV_DEPTHWISE_H

#include "repops/cpu/image/conv_groups.h"

enum {
    DEPTH_PIXELS = 8,     /* output pixels that run together */
    DEPTH_FEW_PIXELS = 4, /* the same for short lines, or with few registers */
    DEPTH_TAPS = 7,       /* most taps of a kernel line */
    DEPTH_LINES = 16,     /* most lines of a kernel */
    DEPTH_STRIDE = 2,     /* largest stride */
};

/* Returns whether g, which is set up to `b_group`, is such a convolution. */
int RO_NAME(ro_conv_is_depthwise)(const gather *g);
/* Returns how many of the image's next lines to prefetch. */
int64_t RO_NAME(ro_conv_depthwise_ahead)(const ro_conv *v);

/* Returns whether ro_conv_depthwise_sums can run conv2d_dw of such a convolution. */
int RO_NAME(ro_conv_is_depthwise_weight)(const gather *forward);
/* Adds pixels [k, end) of one line of dy to the sums of a chunk. */
void RO_NAME(ro_conv_depthwise_sums)(const grouped *f, const float *dy, int64_t k, int64_t end,
                                     float *sums);

#endif
