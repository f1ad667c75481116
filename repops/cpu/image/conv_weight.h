/* conv2d_dw, SPEC.md section 12.1, as products: rows are the weights of one output channel, columns
 * the output channels, steps the pixels of the output. */
#ifndef REPOPS_CPU_CONV_WEIGHT_H
#define REPOPS_CPU_CONV_WEIGHT_H

#include "repops/cpu/image/conv.h"

#include <stdatomic.h>

/* The pixels of the output that meet a pixel of x with each of a product's taps: an interval in
 * each axis. */
typedef struct {
    int64_t first[2], count[2];
} window;

typedef struct {
    ro_conv v;
    const float *x, *dy;
    float *dw;
    int by_tap;      /* each tap is a product of its own, over the pixels at which it is inside */
    int narrow;      /* conv_narrow.c computes the parts, which have all rows */
    int64_t units;   /* products: taps, or 1 */
    int64_t m, n, k; /* sizes of one group's product */
    int outside;
    atomic_int not_finite;
    /* how the work is shared */
    int64_t rows, cols, down, across, depth; /* depth: steps of an item */
    float *chunks;                           /* results of chunks, if each has its own */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
} weights;

/* Some rows and columns of a product. */
typedef struct {
    weights *g;
    window u;
    int64_t group, row, m, col, n;         /* rows are counted through all taps */
    int64_t k0, k;                         /* range of steps, including those outside the window */
    int64_t steps;                         /* how many of them are inside the window */
    int64_t chunk[CONV_KC / RO_DOT_CHUNK]; /* the same for each chunk */
    float *a, *b;
} weight_part;

/* Packs the part's steps of dy. */
void RO_NAME(ro_conv_pack_dy)(const weight_part *s);
/* Packs rows [row, row + m) of x for the part's steps. */
void RO_NAME(ro_conv_pack_x)(const weight_part *s, int64_t row, int64_t m);

/* Returns the stride of a panel's steps in floats: whole vectors. */
static inline int64_t panel_width(int64_t rows) {
    return round_up(rows, VW);
}

static inline int64_t offset_of(const ro_conv *v, int d, int64_t tap) {
    return (d ? tap % v->kernel[1] : tap / v->kernel[1]) * v->dilation[d] - v->pad[d];
}

/* Finds the positions of axis d whose pixel i * stride + at is inside: *count from *first on. */
static inline void inside(const ro_conv *v, int d, int64_t at, int64_t *first, int64_t *count) {
    const int64_t step = v->stride[d];
    const int64_t from = at < 0 ? min_i64(v->out[d], ceil_div(-at, step)) : 0;
    const int64_t end = at < v->in[d] ? min_i64(v->out[d], ceil_div(v->in[d] - at, step)) : 0;
    *first = from, *count = max_i64(0, end - from);
}

#endif
