/* Pooling, SPEC.md section 12.2. A thread has one element; neighbours differ in the channel. */
#include "repops/cuda/cuda.cuh"
#include "repops/src/conv.h"

/* Element e of a [N, H, W, C] tensor. */
struct place {
    int64_t n, h, w, c;
};

struct pixels {
    ro_divider channels, width, height;

    pixels(const int64_t size[2], int64_t c) : channels(c), width(size[1]), height(size[0]) {}

    RO_DEVICE place of(int64_t e) const {
        const int64_t pixel = channels.quotient(e), line = width.quotient(pixel);
        const int64_t n = height.quotient(line);
        return place{n, line - n * height.divisor, pixel - line * width.divisor,
                     e - pixel * channels.divisor};
    }
};

/* The taps of a window that see the image, by row and column, ascending: f(tap, element of x). */
template <class F> RO_DEVICE void each_tap(const ro_pooling &v, const place &p, F f) {
    const int64_t top = p.h * v.stride[0] - v.pad[0], left = p.w * v.stride[1] - v.pad[1];
    for (int64_t i = 0; i < v.kernel[0]; i++)
        for (int64_t j = 0; j < v.kernel[1]; j++) {
            const int64_t h = top + i, w = left + j;
            if (h >= 0 && h < v.in[0] && w >= 0 && w < v.in[1])
                f(i * v.kernel[1] + j, ((p.n * v.in[0] + h) * v.in[1] + w) * v.channels + p.c);
        }
}

/* A sum over taps in the order of dot_64. */
struct tap_sum {
    float total = 0, sum = 0;
    int64_t group = 0;

    RO_DEVICE void at(int64_t tap) {
        if (tap / RO_POOL_GROUP != group) {
            total = total + sum;
            sum = 0;
            group = tap / RO_POOL_GROUP;
        }
    }
    RO_DEVICE float value() const {
        return total + sum;
    }
};

template <bool index>
static ro_status max_pool(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels y(v.out, v.channels);
    return map<uint32_t, 1>(d, call, out, [=] __device__(int64_t e) {
        int32_t most = INT32_MIN, tap = -1;
        each_tap(v, y.of(e), [&](int64_t t, int64_t at) {
            const int32_t rank = ro_rank(x[at]);
            if (tap < 0 || rank > most) {
                most = rank;
                tap = (int32_t)t;
            }
        });
        return index ? (uint32_t)tap : ro_unrank(most);
    });
}

static ro_status avg_pool(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *x = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels y(v.out, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        const place p = y.of(e);
        tap_sum s;
        each_tap(v, p, [&](int64_t t, int64_t at) {
            s.at(t);
            s.sum = s.sum + x[at];
        });
        return ro_canon(s.value() / (float)ro_pool_count(&v, p.h, p.w));
    });
}

/* The windows that see pixel p, by tap ascending: f(tap, element of y, window). */
template <class F> RO_DEVICE void each_window(const ro_pooling &v, const place &p, F f) {
    for (int64_t i = 0; i < v.kernel[0]; i++) {
        const int64_t h = p.h + v.pad[0] - i;
        if (h < 0 || h % v.stride[0] != 0 || h / v.stride[0] >= v.out[0])
            continue;
        for (int64_t j = 0; j < v.kernel[1]; j++) {
            const int64_t w = p.w + v.pad[1] - j;
            if (w < 0 || w % v.stride[1] != 0 || w / v.stride[1] >= v.out[1])
                continue;
            const place window = {p.n, h / v.stride[0], w / v.stride[1], p.c};
            f(i * v.kernel[1] + j,
              ((p.n * v.out[0] + window.h) * v.out[1] + window.w) * v.channels + p.c, window);
        }
    }
}

static ro_status max_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = static_cast<const float *>(in[0]);
    const int32_t *index = static_cast<const int32_t *>(in[1]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        tap_sum s;
        each_window(v, x.of(e), [&](int64_t t, int64_t at, const place &) {
            s.at(t);
            if (index[at] == t)
                s.sum = s.sum + dy[at];
        });
        return ro_canon(s.value());
    });
}

static ro_status avg_pool_grad(ro_cuda *d, const ro_call *call, const void *const *in, void *out) {
    const float *dy = static_cast<const float *>(in[0]);
    const ro_pooling v = ro_pooling_of(call);
    const pixels x(v.in, v.channels);
    return map<float, 1>(d, call, out, [=] __device__(int64_t e) {
        tap_sum s;
        each_window(v, x.of(e), [&](int64_t t, int64_t at, const place &w) {
            s.at(t);
            s.sum = s.sum + dy[at] / (float)ro_pool_count(&v, w.h, w.w);
        });
        return ro_canon(s.value());
    });
}

void ro_cuda_add_pooling(ro_cuda_operator **table) {
    table[RO_OP_MAX_POOL2D] = max_pool<false>;
    table[RO_OP_MAX_POOL2D_INDEX] = max_pool<true>;
    table[RO_OP_MAX_POOL2D_GRAD] = max_pool_grad;
    table[RO_OP_AVG_POOL2D] = avg_pool;
    table[RO_OP_AVG_POOL2D_GRAD] = avg_pool_grad;
}
