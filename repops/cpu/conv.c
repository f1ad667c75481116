/* conv2d and conv2d_dx, SPEC.md section 12.1. */
#include "repops/cpu/conv_depthwise.h"

/* Pixels by channels of x times w: forward w as it lies, backward transposed. */
static ro_status multiply_pixels(const ro_job *job, const ro_conv *v, int backward) {
    const int64_t from = backward ? v->filters : v->channels;
    const int64_t to = backward ? v->channels : v->filters;
    const gemm g = {.m = v->batch * v->in[0] * v->in[1],
                    .n = to,
                    .k = from,
                    .a = job->in[0],
                    .b = job->in[1],
                    .a_row = from,
                    .a_col = 1,
                    .b_row = backward ? 1 : v->filters,
                    .b_col = backward ? v->filters : 1,
                    .c = job->out,
                    .c_row = to,
                    .chunk = RO_DOT_CHUNK,
                    .alpha = 1.0f};
    return RO_NAME(ro_gemm_shared)(job->ctx, &g);
}

static ro_status run(ro_ctx *ctx, gather *g) {
    g->groups = g->v->groups;
    if (depthwise(g->v))
        g->depthwise = 1, g->groups = 1, g->n = g->v->channels;
    return RO_NAME(ro_conv_gather)(ctx, g);
}

static ro_status conv2d(const ro_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    if (no_terms(job))
        return RO_OK;
    if (pointwise(&v))
        return multiply_pixels(job, &v, 0);
    gather g = {.v = &v, .image = job->in[0], .pixel = v.channels, .depth = v.depth, .n = v.width};
    g.weights = job->in[1], g.b_row = v.filters, g.b_col = 1, g.b_group = v.width;
    g.out = job->out, g.out_pixel = v.filters;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v.in[d], g.out_size[d] = v.out[d];
        g.step[d] = v.stride[d], g.spread[d] = 1;
    }
    return run(job->ctx, &g);
}

/* Pixels of x that leave the same remainder by the strides meet the same taps. */
static ro_status conv2d_dx(const ro_job *job) {
    const ro_conv v = ro_conv_of(job->call);
    if (no_terms(job))
        return RO_OK;
    if (pointwise(&v))
        return multiply_pixels(job, &v, 1);
    gather g = {.v = &v, .backward = 1, .image = job->in[0], .pixel = v.filters, .depth = v.width};
    g.weights = job->in[1], g.b_row = 1, g.b_col = v.filters, g.b_group = v.width, g.n = v.depth;
    g.out = job->out, g.out_pixel = v.channels;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v.out[d], g.out_size[d] = v.in[d];
        g.step[d] = 1, g.spread[d] = v.stride[d];
    }
    return run(job->ctx, &g);
}

void RO_NAME(ro_add_conv)(ro_table *table) {
    table->kernel[RO_OP_CONV2D] = (ro_kernel){.run = conv2d};
    table->kernel[RO_OP_CONV2D_DX] = (ro_kernel){.run = conv2d_dx};
}
