/* Convolutions of images with few channels, whose windows have few terms. The lines that windows
 * meet are copied with padding, and everything else is read in place. */
#ifndef REPOPS_CPU_CONV_NARROW_H
#define REPOPS_CPU_CONV_NARROW_H

#include "repops/cpu/image/conv_weight.h"

enum {
    NARROW_DEPTH = 8,   /* most channels of the image */
    NARROW_LINES = 16,  /* most lines of a window */
    NARROW_TERMS = 160, /* most terms of a window */
    NARROW_PAD = 16,    /* most padding of a line */
    NARROW_FILTERS = 8  /* least filters */
};

static inline int64_t terms_of_window(const ro_conv *v) {
    return v->kernel[0] * v->kernel[1] * v->depth;
}

static inline int narrow(const ro_conv *v) {
    return v->groups == 1 && v->depth <= NARROW_DEPTH && v->kernel[0] <= NARROW_LINES &&
           terms_of_window(v) <= NARROW_TERMS && v->pad[1] <= NARROW_PAD &&
           v->filters >= NARROW_FILTERS;
}

/* Runs conv2d_dw for a part with all rows, whose `a` has ro_conv_narrow_workspace floats. */
void RO_NAME(ro_conv_narrow_weight)(const weight_part *s);
int64_t RO_NAME(ro_conv_narrow_workspace)(const ro_conv *v);

#endif
