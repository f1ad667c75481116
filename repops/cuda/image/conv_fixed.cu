/* Fixed convolutions, SPEC.md section 3.5: their windows are packed as lines of a product. */
#include "repops/cuda/image/conv_fixed.cuh"
#include "repops/op_image.h"

/* Gives the lines of a conv_operand or of conv_weights the interface of fixed_lines: lines from
 * first_line on, with steps from first_step on. */
template <class View> struct fixed_view {
    View view;
    int64_t lines, steps;
    bool fours; /* four steps from a multiple of 4 on are contiguous and aligned */
    int64_t first_line, first_step;

    RO_DEVICE float4 load(int64_t product, int64_t l, int64_t k) const {
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        if (l >= lines || k >= steps)
            return make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        const place o = view.outer((int)product, first_line + l);
        for (int i = 0; i < 4 && k + i < steps; i++) {
            const place s = view.step_of((int)product, first_step + k + i);
            const bool inside = (unsigned)(o.h + s.h) < (unsigned)view.height &&
                                (unsigned)(o.w + s.w) < (unsigned)view.width;
            const float *at = inside ? view.start((int)product) + o.at + s.at : nullptr;
            if (fours && inside)
                return *reinterpret_cast<const float4 *>(at);
            if (fours)
                break;
            x[i] = inside ? *at : 0.0f;
        }
        return make_float4(x[0], x[1], x[2], x[3]);
    }
};

template <class View>
static fixed_view<View> lines_of(const View &view, int64_t lines, int64_t steps, bool fours) {
    return {view, lines, steps, fours, 0, 0};
}

/* Returns whether taps consist of groups of four numbers that are contiguous and aligned. */
static bool taps_in_fours(const float *image, int64_t pixel, int64_t per_group) {
    return (uintptr_t)image % 16 == 0 && pixel % 4 == 0 && per_group % 4 == 0;
}

/* Returns rows of filters by taps, or by pixels. */
static fixed_lines filters_of(const ro_conv &v, const float *data, int64_t steps) {
    return {data, 1, v.filters, v.width, v.width, steps, false};
}

static gemm_out rows_of(const ro_conv &v, void *out) {
    return {static_cast<float *>(out), v.filters, 1, v.width, 1.0f, 0.0f, false};
}

static ro_status forward(ro_cuda *d, const ro_conv &v, const float *x, const float *w, void *out) {
    const int64_t k = v.kernel[0] * v.kernel[1] * v.depth;
    const fixed_problem p = {
        v.batch * v.out[0] * v.out[1], v.width, k, v.groups, v.bits, "conv2d_fixed"};
    const auto a = lines_of(conv_view<false, false>(&v, x, v.channels, v.depth), p.m, k,
                            taps_in_fours(x, v.channels, v.depth));
    return run_rows(d, p, a, filters_of(v, w, k), rows_of(v, out));
}

static ro_status input_gradient(ro_cuda *d, const ro_conv &v, const float *dy, const float *w,
                                void *out) {
    const int64_t k = v.kernel[0] * v.kernel[1] * v.width;
    const int64_t down = ceil_div(v.in[0], v.stride[0]), across = ceil_div(v.in[1], v.stride[1]);
    const fixed_problem p = {v.batch * down * across,
                             v.depth,
                             k,
                             v.groups * conv_phases(&v, 0) * conv_phases(&v, 1),
                             v.bits,
                             "conv2d_fixed_dx"};
    const auto view = conv_view<true, false>(&v, dy, v.filters, v.width);
    const conv_weights weights = {w,       v.depth,       v.filters,
                                  v.width, (int)v.groups, ro_divider(v.width)};
    const conv_fixed_dx_out to = {{static_cast<float *>(out), false, view, v.channels, v.depth}, 0};
    const auto a = lines_of(view, p.m, k, taps_in_fours(dy, v.filters, v.width));
    return run_rows(d, p, a, lines_of(weights, p.n, k, taps_in_fours(w, v.filters, v.width)), to);
}

static ro_status weight_gradient(ro_cuda *d, const ro_conv &v, const float *x, const float *dy,
                                 void *out) {
    const int64_t k = v.batch * v.out[0] * v.out[1];
    const fixed_problem p = {
        v.kernel[0] * v.kernel[1] * v.depth, v.width, k, v.groups, v.bits, "conv2d_fixed_dw"};
    const auto a = lines_of(conv_view<false, true>(&v, x, v.channels, v.depth), p.m, k, false);
    return run_steps(d, p, a, filters_of(v, dy, k), rows_of(v, out));
}

static ro_status conv2d_fixed(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_conv v = ro_conv_of(call);
    const float *a = static_cast<const float *>(in[0]), *b = static_cast<const float *>(in[1]);
    if (!conv_fits(&v))
        return conv_too_large(d, "conv2d_fixed");
    if (call->op == RO_OP_CONV2D_FIXED)
        return forward(d, v, a, b, out);
    return call->op == RO_OP_CONV2D_FIXED_DX ? input_gradient(d, v, a, b, out)
                                             : weight_gradient(d, v, a, b, out);
}
RO_CUDA_KERNEL(conv2d_fixed, conv2d_fixed)
RO_CUDA_KERNEL(conv2d_fixed_dx, conv2d_fixed)
RO_CUDA_KERNEL(conv2d_fixed_dw, conv2d_fixed)
