/* Convolutions to so few channels that they would fill no vector: lanes are pixels. */
#ifndef REPOPS_CPU_CONV_FEW_H
#define REPOPS_CPU_CONV_FEW_H

#include "repops/cpu/image/conv_gather.h"

/* Whether the product that is described from `v` to `b_group` is one. */
int RO_NAME(ro_conv_is_few)(const gather *g);
/* Weights are finite, or no tap lies outside. */
ro_status RO_NAME(ro_conv_few)(ro_ctx *ctx, const gather *g);

#endif
