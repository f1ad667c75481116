/* Shared by convolutions: SPEC.md section 12.1 as products whose operand a is gathered from an
 * image while it is packed, so that no matrix of patches is ever in memory.
 *
 * Terms outside the image are absent. Where many rows of the product lack the same terms, these are
 * not computed. Elsewhere the products read +0 in place of the pixel, which gives the same bits if
 * the other factor is finite: in a chunk it can only turn a -0 into +0, and the total is never -0
 * (section 3.1). If a factor is not finite, terms outside are left out pixel by pixel or tap by
 * tap. */
#ifndef REPOPS_CPU_CONV_H
#define REPOPS_CPU_CONV_H

#include "repops/cpu/gemm/gemm.h"
#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/cpu/gemm/gemm_tile.h"
#include "repops/src/conv.h"

enum {
    CONV_KC = 1024,            /* k steps that are packed at a time */
    CONV_MC = 12 * MR,         /* rows of a that are packed at a time */
    CONV_PIECE_WORK = 1 << 18, /* multiply-adds that are worth a thread */
};

/* Returns whether each output pixel has one image pixel of its own (1 x 1 kernel), so that the
 * convolution is an ordinary matrix product. */
static inline int pointwise(const ro_conv *v) {
    for (int d = 0; d < 2; d++)
        if (v->kernel[d] != 1 || v->stride[d] != 1 || v->pad[d] != 0)
            return 0;
    return v->groups == 1;
}

/* Returns the convolution of a job. If it is pointwise, all its images become one line. */
static inline ro_conv conv_of(const ro_job *job) {
    ro_conv v = ro_conv_of(job->call);
    if (pointwise(&v)) {
        v.in[1] *= v.batch * v.in[0], v.out[1] = v.in[1];
        v.batch = v.in[0] = v.out[0] = 1;
    }
    return v;
}

/* Returns whether there are no terms to sum. If so, stores +0 in every element. */
static inline int no_terms(const ro_job *job) {
    if (in_numel(job, 0) > 0 && in_numel(job, 1) > 0)
        return 0;
    memset(job->out, 0, (size_t)ro_shape_numel(&job->call->output) * sizeof(float));
    return 1;
}

RO_INLINE int64_t round_up(int64_t n, int64_t to) {
    return ceil_div(n, to) * to;
}

static inline int all_finite(const float *x, int64_t count) {
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = ro_to_bits(x[i]) & UINT32_C(0x7fffffff);
        most = magnitude > most ? magnitude : most;
    }
    return most < UINT32_C(0x7f800000);
}

#endif
