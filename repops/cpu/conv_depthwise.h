/* Convolutions in which every channel is a group: lanes are channels, and images and weights are
 * read where they lie. */
#ifndef REPOPS_CPU_CONV_DEPTHWISE_H
#define REPOPS_CPU_CONV_DEPTHWISE_H

#include "repops/cpu/conv_gather.h"

/* Whether it is for g, of which all up to `b_group` is set. */
int RO_NAME(ro_conv_is_depthwise)(const gather *g);
/* conv2d, or conv2d_dx without stride; weights are finite, or no tap lies outside. */
ro_status RO_NAME(ro_conv_depthwise)(ro_ctx *ctx, const gather *g);

#endif
