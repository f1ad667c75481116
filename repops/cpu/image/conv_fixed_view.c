/* Fixed convolutions as products: sizes, and how windows see their image. */
#include "repops/cpu/image/conv_fixed.h"
#include "repops/op_image.h"

static void set_forward(fixed_conv *c) {
    const ro_conv *v = &c->v;
    const int whole_rows = v->dilation[1] == 1 && v->groups == 1;
    c->m = v->batch * v->out[0] * v->out[1], c->n = v->width;
    c->k = v->kernel[0] * v->kernel[1] * v->depth;
    c->height = v->in[0], c->width = v->in[1], c->pixel = v->channels;
    c->length = whole_rows ? v->kernel[1] * v->depth : v->depth;
    c->across = whole_rows ? 1 : v->kernel[1];
}

static void set_gradient(fixed_conv *c) {
    const ro_conv *v = &c->v;
    c->n = v->depth, c->k = v->kernel[0] * v->kernel[1] * v->width;
    c->height = v->out[0], c->width = v->out[1], c->pixel = v->filters;
    c->length = v->width, c->across = v->kernel[1];
    for (int d = 0; d < 2; d++)
        c->phases[d] = min_i64(v->stride[d], v->in[d]);
    c->m = v->batch * fixed_positions(c, &(fixed_part){0}, 0) *
           fixed_positions(c, &(fixed_part){0}, 1);
}

static void set_weight_gradient(fixed_conv *c) {
    const ro_conv *v = &c->v;
    c->m = v->kernel[0] * v->kernel[1] * v->depth, c->n = v->width;
    c->k = v->batch * v->out[0] * v->out[1];
    c->height = v->in[0], c->width = v->in[1], c->pixel = v->channels;
}

static int is_plain(const fixed_conv *c) {
    for (int d = 0; d < 2; d++)
        if (c->v.kernel[d] != 1 || c->v.stride[d] != 1 || c->v.pad[d] != 0)
            return 0;
    return c->kind != RO_OP_CONV2D_DW;
}

fixed_conv RO_NAME(ro_fixed_conv_of)(const ro_job *job) {
    fixed_conv c = {.v = ro_conv_of(job->call),
                    .kind = ro_conv_kind(job->call->op),
                    .a = job->in[0],
                    .b = job->in[1],
                    .out = job->out,
                    .phases = {1, 1}};
    if (c.kind == RO_OP_CONV2D)
        set_forward(&c);
    else if (c.kind == RO_OP_CONV2D_DX)
        set_gradient(&c);
    else
        set_weight_gradient(&c);
    c.plain = is_plain(&c);
    return c;
}
