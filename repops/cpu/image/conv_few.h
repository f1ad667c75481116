/* Convolutions to so few channels that they would fill no vector: lanes are pixels. */
#ifndef REPOPS_CPU_CONV_FEW_H
#define REPOPS_CPU_CONV_FEW_H

#include "repops/cpu/image/conv_gather.h"

/* Whether g, set up to `b_group`, is such a convolution. */
int RO_NAME(ro_conv_is_few)(const gather *g);
/* Weights must be finite, or no tap may lie outside. */
ro_status RO_NAME(ro_conv_few)(ro_ctx *ctx, const gather *g);

#endif
