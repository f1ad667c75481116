/* Convolution, SPEC.md section 12.1. */
#include "repops/cuda/image/conv.cuh"

/* ---- factors that are not finite ---- */

enum { FINITE_THREADS = 256, FINITE_RESIDENT = 8 };

static __global__ void __launch_bounds__(FINITE_THREADS)
    find_not_finite(const float *x, int64_t count, unsigned *found) {
    const int64_t stride = (int64_t)gridDim.x * FINITE_THREADS;
    unsigned most = 0;
    for (int64_t i = (int64_t)blockIdx.x * FINITE_THREADS + threadIdx.x; i < count; i += stride) {
        const unsigned magnitude = ro_to_bits(x[i]) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    if (most >= 0x7f800000u)
        atomicMax(found, 1u);
}

/* Returns the number of blocks for a grid-stride loop: at most `resident` per multiprocessor, since
 * further blocks would only wait for these. */
static unsigned some_blocks(const ro_cuda *d, int64_t count, int each, int resident) {
    const int64_t wanted = ceil_div(count, each), most = (int64_t)d->multiprocessors * resident;
    return (unsigned)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

/* Sets **found to 1 if x contains a number that is not finite, else to 0, on the device. */
static ro_status look(ro_cuda *d, const float *x, int64_t count, unsigned **found) {
    void *memory;
    ro_status status = ro_cuda_alloc(d, sizeof **found, &memory);
    if (status != RO_OK)
        return status;
    *found = static_cast<unsigned *>(memory);
    status = ro_cuda_check(d, cudaMemsetAsync(memory, 0, sizeof **found, d->stream), "convolution");
    if (status == RO_OK) {
        RO_LAUNCH(find_not_finite, dim3(some_blocks(d, count, 4 * FINITE_THREADS, FINITE_RESIDENT)),
                  dim3(FINITE_THREADS), 0, d->stream, x, count, *found);
        status = ro_cuda_launched(d, "convolution");
    }
    return status;
}

/* ---- running ---- */

template <class A, class B, class Out>
static ro_status run_direct(ro_cuda *d, const gemm_problem &p, const A &a, const B &b,
                            const Out &out, const unsigned *only, const char *what) {
    gemm_shape s = {};
    s.m = p.m, s.n = p.n, s.k = p.k, s.batch = (int)p.batch;
    RO_LAUNCH((conv_direct_kernel<A, B, Out>),
              dim3(some_blocks(d, p.m * p.n * p.batch, CONV_DIRECT_THREADS, CONV_DIRECT_RESIDENT)),
              dim3(CONV_DIRECT_THREADS), 0, d->stream, s, a, b, out, ro_divider(s.n),
              ro_divider(s.batch), only);
    return ro_cuda_launched(d, what);
}

/* `other` are the factors of the image's pixels; NULL if no pixel is outside. */
template <class A, class B, class Out>
static ro_status run_product(ro_cuda *d, gemm_problem p, const A &a, const B &b, const Out &out,
                             const float *other, int64_t other_count, const char *what) {
    unsigned *found = nullptr;
    if (d->plain || (p.n < 4 && p.k <= 2 * RO_DOT_CHUNK))
        return run_direct(d, p, a, b, out, nullptr, what);
    ro_status status = other ? look(d, other, other_count, &found) : RO_OK;
    p.skip = found;
    if (status == RO_OK)
        status = gemm_run<A, B, Out, false, false>(d, p, a, b, out, what);
    if (status == RO_OK && found)
        status = run_direct(d, p, a, b, out, found, what);
    ro_cuda_free(d, found);
    return status;
}

/* ---- views ---- */

static bool padded(const ro_conv *v) {
    return v->pad[0] > 0 || v->pad[1] > 0;
}

/* Returns whether each output pixel has one image pixel of its own (1 x 1 kernel), so that the
 * convolution is an ordinary matrix product. */
static bool pointwise(const ro_conv *v) {
    for (int i = 0; i < 2; i++)
        if (v->kernel[i] != 1 || v->stride[i] != 1 || v->pad[i] != 0)
            return false;
    return true;
}

/* Returns a matrix of filters by taps, or by pixels. */
static strided<false> filters_of(const ro_conv *v, const float *data) {
    return {data, v->filters, v->width, v->width,
            gemm_in_fours(data, v->filters, v->width, v->width)};
}

static gemm_out rows_of_filters(const ro_conv *v, void *out) {
    return {static_cast<float *>(out),
            v->filters,
            1,
            v->width,
            1.0f,
            0.0f,
            gemm_in_fours(out, v->filters, v->width, v->width)};
}

static gemm_problem problem(int64_t m, int64_t n, int64_t k, int64_t batch) {
    return {m, n, k, batch, RO_DOT_CHUNK, RO_MASK_NONE, nullptr};
}

/* ---- operators ---- */

static ro_status conv2d(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_conv v = ro_conv_of(call);
    const float *x = static_cast<const float *>(in[0]), *w = static_cast<const float *>(in[1]);
    const int64_t taps = v.kernel[0] * v.kernel[1];
    const gemm_problem p =
        problem(v.batch * v.out[0] * v.out[1], v.width, taps * v.depth, v.groups);
    if (pointwise(&v)) {
        gemm_products y = {
            p, {x, v.channels, 1, v.depth}, {w, v.filters, 1, v.width}, rows_of_filters(&v, out)};
        return ro_gemm_products(d, &y, "conv2d");
    }
    if (!conv_fits(&v))
        return conv_too_large(d, "conv2d");
    return run_product(d, p, conv_view<false, false>(&v, x, v.channels, v.depth), filters_of(&v, w),
                       rows_of_filters(&v, out), padded(&v) ? w : nullptr,
                       taps * v.depth * v.filters, "conv2d");
}
RO_CUDA_KERNEL(conv2d, conv2d)

static ro_status conv2d_dx(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_conv v = ro_conv_of(call);
    const float *dy = static_cast<const float *>(in[0]), *w = static_cast<const float *>(in[1]);
    const int64_t taps = v.kernel[0] * v.kernel[1], down = ceil_div(v.in[0], v.stride[0]);
    const int64_t across = ceil_div(v.in[1], v.stride[1]);
    gemm_problem p = problem(v.batch * down * across, v.depth, taps * v.width,
                             v.groups * conv_phases(&v, 0) * conv_phases(&v, 1));
    float *dx = static_cast<float *>(out);
    if (pointwise(&v)) {
        const gemm_out to = {dx, v.channels, 1, v.depth, 1.0f, 0.0f, false};
        gemm_products y = {p, {dy, v.filters, 1, v.width}, {w, 1, v.filters, v.width}, to};
        return ro_gemm_products(d, &y, "conv2d_dx");
    }
    if (!conv_fits(&v) || p.batch > INT32_MAX)
        return conv_too_large(d, "conv2d_dx");
    const auto a = conv_view<true, false>(&v, dy, v.filters, v.width);
    const conv_weights b = {w, v.depth, v.filters, v.width, (int)v.groups, ro_divider(v.width)};
    const conv_dx_out to = {dx, gemm_in_fours(dx, v.channels, 0, v.depth), a, v.channels, v.depth};
    return run_product(d, p, a, b, to, w, taps * v.depth * v.filters, "conv2d_dx");
}
RO_CUDA_KERNEL(conv2d_dx, conv2d_dx)

static ro_status conv2d_dw(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const ro_conv v = ro_conv_of(call);
    const float *x = static_cast<const float *>(in[0]), *dy = static_cast<const float *>(in[1]);
    const int64_t pixels = v.batch * v.out[0] * v.out[1];
    const gemm_problem p = problem(v.kernel[0] * v.kernel[1] * v.depth, v.width, pixels, v.groups);
    if (pointwise(&v)) {
        gemm_products y = {
            p, {x, 1, v.channels, v.depth}, {dy, v.filters, 1, v.width}, rows_of_filters(&v, out)};
        return ro_gemm_products(d, &y, "conv2d_dw");
    }
    if (!conv_fits(&v))
        return conv_too_large(d, "conv2d_dw");
    return run_product(d, p, conv_view<false, true>(&v, x, v.channels, v.depth), filters_of(&v, dy),
                       rows_of_filters(&v, out), padded(&v) ? dy : nullptr, pixels * v.filters,
                       "conv2d_dw");
}
RO_CUDA_KERNEL(conv2d_dw, conv2d_dw)
