/* Operands of convolutions as implicit products, SPEC.md section 12.1: gemm.cuh's kernel copies
 * pixels where a matrix of patches would be read. */
#ifndef REPOPS_CUDA_CONV_CUH
#define REPOPS_CUDA_CONV_CUH

#include "repops/cuda/gemm/gemm_plan.cuh"
#include "repops/src/conv.h"

/* An image's pixels by taps of a kernel. Position (n, i, j) and tap (kh, kw) meet at row i * step -
 * pad + kh * dilation, and at a column likewise, if that is in the image.
 *
 * Backward, the image is dy. One product of the batch has the pixels of x with the same remainder
 * modulo the strides, the "phase". Position i is pixel phase + i * stride, and its window is i +
 * (phase + pad - kh * dilation) / stride. A tap with a remainder in that division has no window. */
template <bool backward, bool taps_outer> struct conv_operand {
    static constexpr bool ALONG_K = !taps_outer;
    const float *data;
    int height, width, groups, phases_w;
    bool vectors;
    int64_t pixel, batch; /* channels of the image; number of images */
    int depth, kernel_w;  /* depth: steps of a tap */
    int count[2], step[2], pad[2], dilation[2], stride[2];
    int of[2]; /* backward: size of x in pixels */
    ro_divider by_depth, by_kernel_w, by_w, by_h;

    RO_DEVICE const float *start(int product) const {
        return data + (int64_t)(product % groups) * depth;
    }
    RO_DEVICE int phase(int product, int d) const {
        if (product < groups) /* always true if strides are 1; avoids a division */
            return 0;
        const int at = product / groups;
        return d ? at % phases_w : at / phases_w;
    }
    RO_DEVICE int positions(int product, int d) const {
        return backward ? (of[d] - phase(product, d) + stride[d] - 1) / stride[d] : count[d];
    }
    RO_DEVICE int64_t rows(int product) const {
        return batch * positions(product, 0) * positions(product, 1);
    }

    RO_DEVICE place at(int64_t n, int h, int w) const {
        return {h, w, ((n * height + h) * width + w) * pixel};
    }
    RO_DEVICE place position(int64_t n, int i, int j) const {
        return at(n, i * step[0] - pad[0], j * step[1] - pad[1]);
    }
    RO_DEVICE int tap_row(int product, int i, int d) const {
        if (!backward)
            return i * dilation[d];
        const int shift = phase(product, d) + pad[d] - i * dilation[d];
        if (stride[d] == 1)
            return shift;
        const int row = shift / stride[d];
        return row * stride[d] == shift ? row : PLACE_ABSENT;
    }
    /* Numbers of taps, of their channels and of positions are below 2^31, as conv.cu checks. */
    RO_DEVICE place tap(int product, int number) const {
        const int kh = by_kernel_w.short_quotient(number), kw = number - kh * kernel_w;
        return at(0, tap_row(product, kh, 0), tap_row(product, kw, 1));
    }
    RO_DEVICE place tap_channel(int product, int k) const {
        const int number = by_depth.short_quotient(k);
        place t = tap(product, number);
        t.at += k - number * depth;
        return t;
    }

    RO_DEVICE place outer(int product, int64_t i) const {
        if (taps_outer)
            return tap_channel(product, (int)i);
        if (i >= rows(product))
            return absent_place();
        const unsigned across = (unsigned)positions(product, 1);
        const unsigned down = (unsigned)positions(product, 0), line = (unsigned)i / across;
        const int w = (int)((unsigned)i - line * across);
        if (backward)
            return at(line / down, (int)(line % down), w);
        return position(line / down, (int)(line % down), w);
    }
    RO_DEVICE place step_of(int product, int64_t k) const {
        if (!taps_outer)
            return tap_channel(product, (int)k);
        const int line = by_w.short_quotient((int)k), n = by_h.short_quotient(line);
        return position(n, line - n * count[0], (int)k - line * count[1]);
    }

    /* Returns the next stage with terms. Backward, this phase may meet none of a stage's taps. */
    template <int K> RO_DEVICE int skip(int product, int stage, int end) const {
        if (stride[0] == 1 && stride[1] == 1)
            return stage;
        while (backward && stage < end) {
            const int number = by_depth.short_quotient(stage * K);
            const int64_t after = (int64_t)(number + 1) * depth;
            const place t = tap(product, number);
            if ((int64_t)(stage + 1) * K > after || (t.h != PLACE_ABSENT && t.w != PLACE_ABSENT))
                break;
            stage = (int)(after / K) > stage ? (int)(after / K) : stage + 1;
        }
        return stage;
    }

    RO_DEVICE bool even(int steps) const {
        return depth % steps == 0;
    }

    /* Returns whether the term exists, and sets *x to its factor. */
    RO_DEVICE bool term(int product, const place &o, int64_t k, float *x) const {
        const place s = step_of(product, k);
        if ((unsigned)(o.h + s.h) >= (unsigned)height || (unsigned)(o.w + s.w) >= (unsigned)width)
            return false;
        *x = start(product)[o.at + s.at];
        return true;
    }

    template <int T, int W, int K> using loader = gathered<conv_operand, T, W, K>;
};

/* Weights by channels of x, for conv2d_dx. Steps are taps by filters. */
struct conv_weights {
    static constexpr bool ALONG_K = true, vectors = false;
    static constexpr int height = 1, width = 1;
    const float *data;
    int64_t count, filters, per_group;
    int groups;
    ro_divider by_per_group;

    RO_DEVICE const float *start(int product) const {
        return data + product % groups * per_group;
    }
    RO_DEVICE place outer(int, int64_t i) const {
        return i < count ? place{0, 0, i * filters} : absent_place();
    }
    RO_DEVICE place step_of(int, int64_t k) const {
        const int64_t tap = by_per_group.short_quotient((int)k);
        return {0, 0, tap * count * filters + (k - tap * per_group)};
    }
    template <int K> RO_DEVICE int skip(int, int stage, int) const {
        return stage;
    }
    RO_DEVICE bool even(int steps) const {
        return per_group % steps == 0;
    }
    RO_DEVICE float at(int64_t product, int64_t i, int64_t k) const {
        return start((int)product)[outer(0, i).at + step_of(0, k).at];
    }
    template <int T, int W, int K> using loader = gathered<conv_weights, T, W, K>;
};

/* The output dx. Rows are the pixels of one phase. */
struct conv_dx_out {
    static constexpr bool ENDS = false;
    float *c;
    static constexpr int64_t col = 1;
    static constexpr float alpha = 1.0f, beta = 0.0f;
    bool vectors;
    conv_operand<true, false> view;
    int64_t channels, depth;

    RO_DEVICE int64_t rows(const gemm_shape &, int64_t product) const {
        return view.rows((int)product);
    }
    RO_DEVICE float *line(int64_t product, int64_t m) const {
        const unsigned across = (unsigned)view.positions((int)product, 1);
        const unsigned down = (unsigned)view.positions((int)product, 0);
        const unsigned i = (unsigned)m / across, j = (unsigned)m - i * across, n = i / down;
        const int64_t h = view.phase((int)product, 0) + (int64_t)(i - n * down) * view.stride[0];
        const int64_t w = view.phase((int)product, 1) + (int64_t)j * view.stride[1];
        return c + ((n * (int64_t)view.of[0] + h) * view.of[1] + w) * channels +
               product % view.groups * depth;
    }
};

/* ---- views ---- */

static inline ro_status conv_too_large(ro_cuda *d, const char *what) {
    return ro_cuda_fail(d, RO_ERR_UNSUPPORTED,
                        "cuda: %s of an image beyond 2^29 rows or columns, of 2^31 pixels, or of "
                        "2^30 taps and channels",
                        what);
}

static inline bool conv_fits(const ro_conv *v) {
    for (int i = 0; i < 2; i++)
        if (v->in[i] > PLACE_MOST || v->out[i] > PLACE_MOST || v->kernel[i] > PLACE_MOST)
            return false;
    const int64_t deepest = v->depth > v->width ? v->depth : v->width;
    return v->kernel[0] * v->kernel[1] <= (1 << 30) / (deepest ? deepest : 1) &&
           v->batch <= INT32_MAX && v->in[0] * v->in[1] <= INT32_MAX / (v->batch ? v->batch : 1) &&
           v->out[0] * v->out[1] <= INT32_MAX / (v->batch ? v->batch : 1) &&
           v->channels <= INT32_MAX && v->filters <= INT32_MAX;
}

/* Returns how many remainders modulo the stride pixels have. */
static inline int64_t conv_phases(const ro_conv *v, int i) {
    return v->stride[i] < v->in[i] ? v->stride[i] : v->in[i];
}

/* Returns a view of images with `pixel` channels in groups of `depth`. */
template <bool backward, bool taps_outer>
static conv_operand<backward, taps_outer> conv_view(const ro_conv *v, const float *image,
                                                    int64_t pixel, int64_t depth) {
    const int64_t *size = backward ? v->out : v->in;
    conv_operand<backward, taps_outer> x = {image,
                                            (int)size[0],
                                            (int)size[1],
                                            (int)v->groups,
                                            (int)conv_phases(v, 1),
                                            false,
                                            pixel,
                                            v->batch,
                                            (int)depth,
                                            (int)v->kernel[1],
                                            {},
                                            {},
                                            {},
                                            {},
                                            {},
                                            {},
                                            ro_divider(depth),
                                            ro_divider(v->kernel[1]),
                                            ro_divider(v->out[1]),
                                            ro_divider(v->out[0])};
    for (int i = 0; i < 2; i++) {
        x.count[i] = (int)v->out[i], x.of[i] = (int)v->in[i];
        x.step[i] = x.stride[i] = (int)v->stride[i];
        x.pad[i] = (int)v->pad[i], x.dilation[i] = (int)v->dilation[i];
    }
    x.vectors = taps_outer && gemm_in_fours(image, pixel, 0, depth);
    return x;
}

/* ---- single elements ---- */

enum { CONV_DIRECT_THREADS = 256, CONV_DIRECT_RESIDENT = 4 };

/* One thread per element. Used if factors are not finite (*only is not 0), where +0 for an absent
 * term would give NaN, and for groups of so few filters that tiles would be nearly empty.
 * Neighbouring groups go to neighbouring threads. */
template <class A, class B, class Out>
__global__ void __launch_bounds__(CONV_DIRECT_THREADS, CONV_DIRECT_RESIDENT)
    conv_direct_kernel(const __grid_constant__ gemm_shape s, const __grid_constant__ A a,
                       const __grid_constant__ B b, const __grid_constant__ Out out,
                       ro_divider by_n, ro_divider by_batch, const unsigned *only) {
    if (only && *only == 0)
        return;
    const int64_t size = (int64_t)s.batch * s.m * s.n, stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < size; e += stride) {
        const int64_t line = by_n.quotient(e), m = by_batch.quotient(line);
        const int64_t n = e - line * s.n, batch = line - m * s.batch;
        if (m >= out.rows(s, batch))
            continue;
        const place o = a.outer((int)batch, m);
        float total = 0.0f, x = 0.0f;
        for (int64_t k = 0; k < s.k;) {
            const int64_t end = s.k - k < RO_DOT_CHUNK ? s.k : k + RO_DOT_CHUNK;
            float sum = 0.0f;
#pragma unroll 2
            for (; k < end; k++)
                if (a.term((int)batch, o, k, &x))
                    sum = ro_fma(x, b.at(batch, n, k), sum);
            total = total + sum;
        }
        float *c = out.line(batch, m) + n * out.col;
        *c = gemm_result(total, out.alpha, out.beta, c);
    }
}

#endif
