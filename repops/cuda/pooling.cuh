/* Windows and pixels of poolings, SPEC.md section 12.2. */
#ifndef REPOPS_CUDA_POOLING_CUH
#define REPOPS_CUDA_POOLING_CUH

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

#endif
