/* Convolutions in which every channel is a group of its own. */
#ifndef REPOPS_CPU_CONV_DEPTHWISE_H
#define REPOPS_CPU_CONV_DEPTHWISE_H

#include "repops/cpu/conv_gather.h"

static inline int depthwise(const ro_conv *v) {
    return v->groups > 1 && v->depth == 1 && v->width == 1;
}

/* conv2d and conv2d_dx of the pixels of a block, all channels; fills in the pieces' x. */
void RO_NAME(ro_conv_depthwise)(const gather *g, const block *b, piece *pieces, int64_t count);
void RO_NAME(ro_conv_depthwise_weight)(const ro_job *job, const ro_conv *v);

#endif
