/* Exact values of products (SPEC.md sections 3.1, 8 and 12.1), by sums in long double. */
#ifndef TESTS_FREE_PRODUCTS_EXACT_H
#define TESTS_FREE_PRODUCTS_EXACT_H

#include <math.h>

#include "attention_keys.h"
#include "op_cases.h"
#include "repops/src/call.h"
#include "repops/src/conv.h"
#include "repops/src/half.h"
#include "repops/op_attention.h"
#include "repops/op_image.h"
#include "repops/op_product.h"
#include "repops/src/matmul.h"

/* Returns element i of input t. */
static inline long double at(const op_case *c, int t, int64_t i) {
    const int dtype = c->in[t].dtype;
    if (dtype == RO_F32)
        return (long double)((const float *)c->data[t])[i];
    return (long double)ro_number_of(dtype, ((const uint16_t *)c->data[t])[i]);
}

static inline long double exact_matmul(const op_case *c, int64_t e) {
    const ro_matmul v = ro_matmul_of(&c->call);
    const int64_t batch = e / (v.m * v.n), i = e / v.n % v.m, j = e % v.n;
    long double sum = 0;
    for (int64_t k = 0; k < v.k; k++) {
        if ((v.mask == RO_MASK_UPTO_ROW && k > i) || (v.mask == RO_MASK_FROM_ROW && k < i))
            continue;
        if (v.window && (k > i ? k - i : i - k) >= v.window)
            continue;
        sum += at(c, 0, batch * v.m * v.k + (v.trans_a ? k * v.m + i : i * v.k + k)) *
               at(c, 1, batch * v.k * v.n + (v.trans_b ? j * v.k + k : k * v.n + j));
    }
    return sum * (long double)v.alpha;
}

static inline long double exact_attn_av(const op_case *c, int64_t e) {
    const ro_shape *s = &c->in[0], *o = &c->call.output;
    const int64_t keys = s->dim[s->ndim - 1], queries = s->dim[s->ndim - 2];
    const int64_t width = o->dim[o->ndim - 1], blocks = o->dim[o->ndim - 2];
    const int64_t d = e % width, block = e / width % blocks, row = e / width / blocks;
    long double sum = 0;
    for (int64_t j = block * 128; j < keys && j < (block + 1) * 128; j++)
        if (query_admits(c, row, j))
            sum += at(c, 0, row * keys + j) * at(c, 1, (row / queries * keys + j) * width + d);
    return sum;
}

/* Indices of y, x and w in the sum that all three convolution operators share; those of the output
 * are given. */
typedef struct {
    int64_t n, o[2], f, tap[2], c; /* c: within the group */
} conv_index;

static inline int pixel_index(const ro_conv *v, const conv_index *i, int64_t *x) {
    int64_t p[2];
    for (int d = 0; d < 2; d++) {
        p[d] = i->o[d] * v->stride[d] - v->pad[d] + i->tap[d] * v->dilation[d];
        if (p[d] < 0 || p[d] >= v->in[d])
            return 0;
    }
    *x = ((i->n * v->in[0] + p[0]) * v->in[1] + p[1]) * v->channels + i->f / v->width * v->depth +
         i->c;
    return 1;
}

static inline int64_t weight_index(const ro_conv *v, const conv_index *i) {
    return ((i->tap[0] * v->kernel[1] + i->tap[1]) * v->depth + i->c) * v->filters + i->f;
}

static inline int64_t result_index(const ro_conv *v, const conv_index *i) {
    return ((i->n * v->out[0] + i->o[0]) * v->out[1] + i->o[1]) * v->filters + i->f;
}

static inline long double exact_conv2d(const op_case *c, int64_t e) {
    const ro_conv v = ro_conv_of(&c->call);
    conv_index i = {.f = e % v.filters, .o[1] = e / v.filters % v.out[1]};
    i.o[0] = e / v.filters / v.out[1] % v.out[0], i.n = e / v.filters / v.out[1] / v.out[0];
    long double sum = 0;
    int64_t x;
    for (i.tap[0] = 0; i.tap[0] < v.kernel[0]; i.tap[0]++)
        for (i.tap[1] = 0; i.tap[1] < v.kernel[1]; i.tap[1]++)
            for (i.c = 0; i.c < v.depth; i.c++)
                if (pixel_index(&v, &i, &x))
                    sum += at(c, 0, x) * at(c, 1, weight_index(&v, &i));
    return sum;
}

static inline long double exact_conv2d_dw(const op_case *c, int64_t e) {
    const ro_conv v = ro_conv_of(&c->call);
    conv_index i = {.f = e % v.filters, .c = e / v.filters % v.depth};
    i.tap[1] = e / v.filters / v.depth % v.kernel[1];
    i.tap[0] = e / v.filters / v.depth / v.kernel[1];
    long double sum = 0;
    int64_t x;
    for (i.n = 0; i.n < v.batch; i.n++)
        for (i.o[0] = 0; i.o[0] < v.out[0]; i.o[0]++)
            for (i.o[1] = 0; i.o[1] < v.out[1]; i.o[1]++)
                if (pixel_index(&v, &i, &x))
                    sum += at(c, 0, x) * at(c, 1, result_index(&v, &i));
    return sum;
}

/* Sums over all windows and taps that cover the pixel. */
static inline long double exact_conv2d_dx(const op_case *c, int64_t e) {
    const ro_conv v = ro_conv_of(&c->call);
    const int64_t channel = e % v.channels, image = e / v.channels / v.in[1] / v.in[0];
    const int64_t group = channel / v.depth;
    conv_index i = {.n = image, .c = channel % v.depth};
    long double sum = 0;
    int64_t x;
    for (i.tap[0] = 0; i.tap[0] < v.kernel[0]; i.tap[0]++)
        for (i.tap[1] = 0; i.tap[1] < v.kernel[1]; i.tap[1]++)
            for (i.o[0] = 0; i.o[0] < v.out[0]; i.o[0]++)
                for (i.o[1] = 0; i.o[1] < v.out[1]; i.o[1]++) {
                    i.f = group * v.width;
                    if (!pixel_index(&v, &i, &x) || x != e)
                        continue;
                    for (; i.f < (group + 1) * v.width; i.f++)
                        sum += at(c, 0, result_index(&v, &i)) * at(c, 1, weight_index(&v, &i));
                }
    return sum;
}

static inline long double exact_product(const op_case *c, int64_t e) {
    switch (c->call.op) {
    case RO_OP_MATMUL: return exact_matmul(c, e);
    case RO_OP_ATTN_AV:
    case RO_OP_ATTN_AV_AT: return exact_attn_av(c, e);
    case RO_OP_CONV2D: return exact_conv2d(c, e);
    case RO_OP_CONV2D_DX: return exact_conv2d_dx(c, e);
    default: return exact_conv2d_dw(c, e);
    }
}

#endif
