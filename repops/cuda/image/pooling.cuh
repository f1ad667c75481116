/* Windows and pixels of poolings, SPEC.md section 12.2. */
#ifndef REPOPS_CUDA_POOLING_CUH
#define REPOPS_CUDA_POOLING_CUH

#include "repops/cuda/cuda.cuh"
#include "repops/src/conv.h"

/* The position of element e in a [N, H, W, C] tensor. */
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

/* Calls f(tap, element of x) for a window's taps in the image, by ascending row and column. */
template <class F> RO_DEVICE void each_tap(const ro_pooling &v, const place &p, F f) {
    const int64_t top = p.h * v.stride[0] - v.pad[0], left = p.w * v.stride[1] - v.pad[1];
    for (int64_t i = 0; i < v.kernel[0]; i++)
        for (int64_t j = 0; j < v.kernel[1]; j++) {
            const int64_t h = top + i, w = left + j;
            if (h >= 0 && h < v.in[0] && w >= 0 && w < v.in[1])
                f(i * v.kernel[1] + j, ((p.n * v.in[0] + h) * v.in[1] + w) * v.channels + p.c);
        }
}

/* Calls f(tap, element of y, window) for the windows that see pixel p, by ascending tap. The last
 * window sees it with its first tap; each one before with a tap that is a stride further. */
template <class F> RO_DEVICE void each_window(const ro_pooling &v, const place &p, F f) {
    const int64_t down = p.h + v.pad[0], across = p.w + v.pad[1];
    const int64_t last_h = down / v.stride[0], last_w = across / v.stride[1];
    int64_t i = down - last_h * v.stride[0];
    for (int64_t h = last_h; h >= 0 && i < v.kernel[0]; h--, i += v.stride[0]) {
        int64_t j = across - last_w * v.stride[1];
        for (int64_t w = last_w; w >= 0 && j < v.kernel[1]; w--, j += v.stride[1])
            if (h < v.out[0] && w < v.out[1])
                f(i * v.kernel[1] + j, ((p.n * v.out[0] + h) * v.out[1] + w) * v.channels + p.c,
                  place{p.n, h, w, p.c});
    }
}

#endif
