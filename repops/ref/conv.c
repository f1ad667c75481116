/* Convolution, SPEC.md section 12.1. */
#include "repops/ref/ref.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

/* Returns the number of terms of an element's dot product, including absent ones. */
int64_t ro_ref_conv_terms(const ro_call *call, const ro_conv *v) {
    const int64_t taps = v->kernel[0] * v->kernel[1];
    switch (ro_conv_kind(call->op)) {
    case RO_OP_CONV2D: return taps * v->depth;
    case RO_OP_CONV2D_DX: return taps * v->width;
    case RO_OP_CONV2D_DW: return v->batch * v->out[0] * v->out[1];
    default: return 0;
    }
}

int64_t ro_ref_conv2d_steps(const ro_call *call) {
    const ro_conv v = ro_conv_of(call);
    return (ro_ref_conv_terms(call, &v) + RO_REF_TERMS - 1) / RO_REF_TERMS;
}

/* Returns the pixel of x under tap `tap` of window (h, w) in image n, or -1 outside. */
static int64_t pixel(const ro_conv *v, int64_t n, int64_t h, int64_t w, int64_t tap) {
    const int64_t ih = h * v->stride[0] - v->pad[0] + tap / v->kernel[1] * v->dilation[0];
    const int64_t iw = w * v->stride[1] - v->pad[1] + tap % v->kernel[1] * v->dilation[1];
    const int inside = ih >= 0 && ih < v->in[0] && iw >= 0 && iw < v->in[1];
    return inside ? (n * v->in[0] + ih) * v->in[1] + iw : -1;
}

static ro_ref_factors forward(const ro_conv *v, int64_t e, int64_t k) {
    const int64_t f = e % v->filters, w = e / v->filters % v->out[1];
    const int64_t h = e / v->filters / v->out[1] % v->out[0];
    const int64_t n = e / v->filters / v->out[1] / v->out[0];
    const int64_t p = pixel(v, n, h, w, k / v->depth);
    const int64_t channel = f / v->width * v->depth + k % v->depth;
    return (ro_ref_factors){p * v->channels + channel, k * v->filters + f, p >= 0};
}

static ro_ref_factors input_gradient(const ro_conv *v, int64_t e, int64_t k) {
    const int64_t c = e % v->channels, w = e / v->channels % v->in[1];
    const int64_t h = e / v->channels / v->in[1] % v->in[0];
    const int64_t n = e / v->channels / v->in[1] / v->in[0];
    const int64_t tap = k / v->width, f = c / v->depth * v->width + k % v->width;
    const int64_t y = h + v->pad[0] - tap / v->kernel[1] * v->dilation[0];
    const int64_t x = w + v->pad[1] - tap % v->kernel[1] * v->dilation[1];
    const int64_t oh = y / v->stride[0], ow = x / v->stride[1];
    const int present = y >= 0 && x >= 0 && y % v->stride[0] == 0 && x % v->stride[1] == 0 &&
                        oh < v->out[0] && ow < v->out[1];
    return (ro_ref_factors){((n * v->out[0] + oh) * v->out[1] + ow) * v->filters + f,
                            (tap * v->depth + c % v->depth) * v->filters + f, present};
}

static ro_ref_factors weight_gradient(const ro_conv *v, int64_t e, int64_t k) {
    const int64_t f = e % v->filters, c = e / v->filters % v->depth;
    const int64_t w = k % v->out[1], h = k / v->out[1] % v->out[0], n = k / v->out[1] / v->out[0];
    const int64_t p = pixel(v, n, h, w, e / v->filters / v->depth);
    return (ro_ref_factors){p * v->channels + f / v->width * v->depth + c, k * v->filters + f,
                            p >= 0};
}

ro_ref_factors ro_ref_conv_factors(const ro_call *call, const ro_conv *v, int64_t e, int64_t k) {
    switch (ro_conv_kind(call->op)) {
    case RO_OP_CONV2D: return forward(v, e, k);
    case RO_OP_CONV2D_DX: return input_gradient(v, e, k);
    case RO_OP_CONV2D_DW: return weight_gradient(v, e, k);
    default: return (ro_ref_factors){0, 0, 0};
    }
}

/* Adds one chunk to the total. */
static void conv2d_step(const ro_call *call, int64_t e, int64_t step, ro_acc *acc,
                        const ro_access *in) {
    const ro_conv v = ro_conv_of(call);
    int64_t from, to;
    float sum = 0;
    ro_ref_step_range(step, ro_ref_conv_terms(call, &v), &from, &to);
    for (int64_t k = from; k < to; k++) {
        const ro_ref_factors t = ro_ref_conv_factors(call, &v, e, k);
        if (t.present)
            sum = ro_fma(loadf(in, 0, t.a), loadf(in, 1, t.b), sum);
    }
    acc->word[0] = result(ro_from_bits(acc->word[0]) + sum);
}

uint32_t ro_ref_conv2d(const ro_call *call, int64_t e, const ro_acc *acc, const ro_access *in) {
    (void)call, (void)e, (void)in;
    return acc->word[0];
}
RO_REFERENCE(conv2d, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps, .step = conv2d_step,
             .words = 1)
RO_REFERENCE(conv2d_dx, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps, .step = conv2d_step,
             .words = 1)
RO_REFERENCE(conv2d_dw, .finish = ro_ref_conv2d, .steps = ro_ref_conv2d_steps, .step = conv2d_step,
             .words = 1)
