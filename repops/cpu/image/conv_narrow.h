/* Convolutions of images of few channels: a window has few terms. The lines that it meets are
 * copied with what lies outside, and everything else is read where it is. */
#ifndef REPOPS_CPU_CONV_NARROW_H
#define REPOPS_CPU_CONV_NARROW_H

#include "repops/cpu/image/conv_weight.h"

/* Channels, lines and terms of a window, and what it has outside, at most; filters, at least. */
enum {
    NARROW_DEPTH = 8,
    NARROW_LINES = 16,
    NARROW_TERMS = 160,
    NARROW_PAD = 16,
    NARROW_FILTERS = 8
};

static inline int64_t terms_of_window(const ro_conv *v) {
    return v->kernel[0] * v->kernel[1] * v->depth;
}

static inline int narrow(const ro_conv *v) {
    return v->groups == 1 && v->depth <= NARROW_DEPTH && v->kernel[0] <= NARROW_LINES &&
           terms_of_window(v) <= NARROW_TERMS && v->pad[1] <= NARROW_PAD &&
           v->filters >= NARROW_FILTERS;
}

/* conv2d; weights are finite, or no tap lies outside. */
ro_status RO_NAME(ro_conv_narrow)(const ro_job *job, const ro_conv *v);

/* conv2d_dw of a part that has all rows. Its `a` has the floats that are asked for. */
void RO_NAME(ro_conv_narrow_weight)(const part *s);
int64_t RO_NAME(ro_conv_narrow_workspace)(const ro_conv *v);

#endif
