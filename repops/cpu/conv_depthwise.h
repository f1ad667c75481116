/* Convolutions in which every channel is a group of its own. */
#ifndef REPOPS_CPU_CONV_DEPTHWISE_H
#define REPOPS_CPU_CONV_DEPTHWISE_H

#include "repops/cpu/conv_gather.h"

static inline int depthwise(const ro_conv *v) {
    return v->groups > 1 && v->depth == 1 && v->width == 1;
}

void RO_NAME(ro_conv_depthwise_weight)(const ro_job *job, const ro_conv *v);

#endif
