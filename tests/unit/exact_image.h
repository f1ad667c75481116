/* Image layers in double precision, implemented independently of the operators. */
#ifndef TESTS_EXACT_IMAGE_H
#define TESTS_EXACT_IMAGE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An image [N, H, W, C], or weights [KH, KW, C / groups, F]. */
typedef struct {
    double *data;
    const int64_t *dim;
} exact_image;

/* Returns a pixel's channels; NULL outside of the image. */
static inline double *exact_pixel(exact_image x, int64_t n, int64_t h, int64_t w) {
    if (h < 0 || h >= x.dim[1] || w < 0 || w >= x.dim[2])
        return NULL;
    return x.data + ((n * x.dim[1] + h) * x.dim[2] + w) * x.dim[3];
}

/* window: stride, pad, dilation, groups. */
static inline double exact_filter(exact_image x, exact_image w, const int64_t *window, int64_t n,
                                  int64_t h, int64_t v, int64_t f) {
    const int64_t depth = w.dim[2], first = f / (w.dim[3] / window[3]) * depth;
    double sum = 0;
    for (int64_t i = 0; i < w.dim[0]; i++)
        for (int64_t j = 0; j < w.dim[1]; j++) {
            const double *p = exact_pixel(x, n, h * window[0] - window[1] + i * window[2],
                                          v * window[0] - window[1] + j * window[2]);
            for (int64_t c = 0; p && c < depth; c++)
                sum += p[first + c] * w.data[((i * w.dim[1] + j) * depth + c) * w.dim[3] + f];
        }
    return sum;
}

/* window: kernel, stride, pad, whether padding counts. */
static inline double exact_window(exact_image x, const int64_t *window, bool maximum, int64_t n,
                                  int64_t h, int64_t v, int64_t c) {
    double most = -INFINITY, sum = 0, count = 0;
    for (int64_t i = 0; i < window[0]; i++)
        for (int64_t j = 0; j < window[0]; j++) {
            const double *p =
                exact_pixel(x, n, h * window[1] - window[2] + i, v * window[1] - window[2] + j);
            count += p || window[3];
            most = p ? fmax(most, p[c]) : most;
            sum += p ? p[c] : 0;
        }
    return maximum ? most : sum / count;
}

#define FOR_EACH_ELEMENT(out)                                                                      \
    for (int64_t n = 0; n < (out).dim[0]; n++)                                                     \
        for (int64_t h = 0; h < (out).dim[1]; h++)                                                 \
            for (int64_t v = 0; v < (out).dim[2]; v++)                                             \
                for (int64_t c = 0; c < (out).dim[3]; c++)

static inline void exact_conv(exact_image x, exact_image w, const int64_t *window,
                              exact_image out) {
    FOR_EACH_ELEMENT(out)
    exact_pixel(out, n, h, v)[c] = exact_filter(x, w, window, n, h, v, c);
}

static inline void exact_pool(exact_image x, const int64_t *window, bool maximum, exact_image out) {
    FOR_EACH_ELEMENT(out)
    exact_pixel(out, n, h, v)[c] = exact_window(x, window, maximum, n, h, v, c);
}

/* out is [N, 1, 1, C]. */
static inline void exact_global_mean(exact_image x, exact_image out) {
    const double pixels = (double)(x.dim[1] * x.dim[2]);
    for (int64_t e = 0; e < out.dim[0] * out.dim[3]; e++)
        out.data[e] = 0;
    FOR_EACH_ELEMENT(x)
    exact_pixel(out, n, 0, 0)[c] += exact_pixel(x, n, h, v)[c] / pixels;
}

static inline void exact_batchnorm(exact_image x, const double *gamma, const double *beta,
                                   exact_image out) {
    const int64_t cols = x.dim[3], rows = x.dim[0] * x.dim[1] * x.dim[2];
    for (int64_t c = 0; c < cols; c++) {
        double mean = 0, variance = 0;
        for (int64_t r = 0; r < rows; r++)
            mean += x.data[r * cols + c] / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            variance += pow(x.data[r * cols + c] - mean, 2) / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            out.data[r * cols + c] =
                (x.data[r * cols + c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c];
    }
}

#endif
