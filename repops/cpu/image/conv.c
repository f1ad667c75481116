/* conv2d and conv2d_dx, SPEC.md section 12.1. The first kernel that takes a convolution computes
 * it. Each comment says what a kernel is for and how many times as fast it is as the rows below it,
 * with AVX-512 and with AVX2 (bench/NOTES.md, "What each kernel of a convolution gains"). */
#include "repops/cpu/image/conv_kernel.h"

static const conv_kernel *const kernels[] = {
    /* 1 x 1 with few pixels: an ordinary matrix product. 1.0 to 2.8. */
    &RO_NAME(ro_conv_few_pixels),
    /* 1 x 1 with few weights: products that pack nothing. 1.1 and 1.07, gradient 1.2 and 1.1. */
    &RO_NAME(ro_conv_pixels),
    /* Few input channels: copies the lines that windows meet, not each window. 1.2 and 1.17. */
    &RO_NAME(ro_conv_narrow),
    /* Few output channels, which would not fill a vector: lanes are pixels. 3.5 and 3.5. */
    &RO_NAME(ro_conv_few),
    /* One channel per group: lanes are channels, and nothing is copied. 1.5 and 1.3 to 1.5. */
    &RO_NAME(ro_conv_depthwise),
    /* Few channels per group: lanes are channels of neighbouring groups. 2.9 and 2.9. */
    &RO_NAME(ro_conv_grouped),
    /* All others: products whose rows are gathered from the image while they are packed. */
    &RO_NAME(ro_conv_gather),
};

static ro_status conv2d(const ro_job *job) {
    const ro_conv v = conv_of(job);
    grouped groups;
    if (no_terms(job))
        return RO_OK;
    gather g = forward_gather(&v, job->in[0]);
    g.weights = job->in[1], g.b_row = v.filters, g.b_col = 1, g.b_group = v.width;
    g.out = job->out;
    return run_conv(kernels, &(conv_call){job, RO_OP_CONV2D, &v, &g, &groups});
}
RO_KERNEL(conv2d, .run = conv2d)

/* All pixels of x with the same remainder modulo the strides meet the same taps, so a span advances
 * by the stride. */
static ro_status conv2d_dx(const ro_job *job) {
    const ro_conv v = conv_of(job);
    grouped groups;
    if (no_terms(job))
        return RO_OK;
    gather g = {.v = &v, .backward = 1, .image = job->in[0], .pixel = v.filters, .depth = v.width};
    g.weights = job->in[1], g.b_row = 1, g.b_col = v.filters, g.b_group = v.width, g.n = v.depth;
    g.out = job->out, g.out_pixel = v.channels;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v.out[d], g.out_size[d] = v.in[d];
        g.step[d] = 1, g.spread[d] = v.stride[d];
    }
    return run_conv(kernels, &(conv_call){job, RO_OP_CONV2D_DX, &v, &g, &groups});
}
RO_KERNEL(conv2d_dx, .run = conv2d_dx)
