/* The kernels for a convolution or one of its gradients. The table in conv.c lists them, and the
 * one in conv_weight.c those of conv2d_dw. */
#ifndef REPOPS_CPU_CONV_KERNEL_H
#define REPOPS_CPU_CONV_KERNEL_H

#include "repops/cpu/image/conv_groups.h"

typedef struct {
    const ro_job *job;
    int kind; /* RO_OP_CONV2D, RO_OP_CONV2D_DX or RO_OP_CONV2D_DW */
    const ro_conv *v;
    gather *g;       /* set up to b_group; for conv2d_dw it is that of conv2d, without weights */
    grouped *groups; /* the plan of a grouped convolution, set by the kernel that takes it */
} conv_call;

/* `run` computes a convolution that the kernel takes. It allocates its own memory, since it plans
 * what that holds. */
typedef struct {
    const char *name;
    int (*takes)(conv_call *c);
    ro_status (*run)(conv_call *c);
} conv_kernel;

extern const conv_kernel RO_NAME(ro_conv_few_pixels), RO_NAME(ro_conv_pixels),
    RO_NAME(ro_conv_narrow), RO_NAME(ro_conv_few), RO_NAME(ro_conv_depthwise),
    RO_NAME(ro_conv_grouped), RO_NAME(ro_conv_gather);
/* Kernels of conv2d_dw. */
extern const conv_kernel RO_NAME(ro_conv_lanes_weight), RO_NAME(ro_conv_pixels_weight),
    RO_NAME(ro_conv_grouped_weight);

/* Runs the first kernel that takes c. The last one takes every convolution. */
RO_INLINE ro_status run_conv(const conv_kernel *const *kernel, conv_call *c) {
    while (!(*kernel)->takes(c))
        kernel++;
    return (*kernel)->run(c);
}

/* Returns whether reading +0 for pixels outside gives the same bits as leaving them out: if the
 * weights are finite, or nothing lies outside. A gradient's edges reach outside even without
 * padding. */
RO_INLINE int may_read_zeros(const conv_call *c) {
    return (c->kind == RO_OP_CONV2D && c->v->pad[0] == 0 && c->v->pad[1] == 0) ||
           all_finite(c->job->in[1], in_numel(c->job, 1));
}

/* Returns the product of conv2d_dw, before it is cut for threads. */
RO_INLINE weights weights_of(const conv_call *c) {
    const ro_conv *v = c->v;
    return (weights){.v = *v,
                     .x = c->job->in[0],
                     .dy = c->job->in[1],
                     .dw = c->job->out,
                     .n = v->width,
                     .k = v->batch * v->out[0] * v->out[1]};
}

#endif
