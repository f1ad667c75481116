/* conv2d and conv2d_dx as one product per group: rows are pixels of the output, columns its
 * channels, and k steps the taps' channels in the order of SPEC.md section 12.1. */
#ifndef REPOPS_CPU_CONV_GATHER_H
#define REPOPS_CPU_CONV_GATHER_H

#include "repops/cpu/image/conv.h"

#include <stdatomic.h>

/* Positions first, first + spread, ... in one axis of the output; all meet the same taps. */
typedef struct {
    int64_t first, count;
} span;

/* The pixels at the crossing of two spans, as rows of the product: image by image, line by line. */
typedef struct {
    span at[2];
    int64_t row, m; /* first row, and how many */
} gather_block;

/* Consecutive steps of one chunk that are contiguous in the image. */
typedef struct {
    int64_t at[2]; /* pixel for the spans' first positions */
    int64_t c;     /* offset in channels from that pixel */
    int64_t k, steps;
    int last;       /* whether it ends its chunk */
    int64_t beside; /* the piece after those contiguous with this in a line of the image */
} piece;

typedef struct {
    const ro_conv *v;
    int backward;
    const float *image; /* [batch, size[0], size[1], pixel] */
    int64_t size[2], pixel;
    float *out; /* [batch, out_size[0], out_size[1], out_pixel] */
    int64_t out_size[2], out_pixel;
    int64_t spread[2], step[2]; /* strides of a span's positions: in out, in the image */
    const float *weights;
    int64_t n, k, depth;           /* sizes of one group's product; steps of one tap */
    int64_t b_row, b_col, b_group; /* element (c, j) of a tap is at c * b_row + j * b_col */
    int split;                     /* spans end where taps reach outside */
    span *spans[2];
    int64_t span_count[2];
    gather_block *blocks;
    piece *pieces;
    tile_run *runs;
    int64_t piece_count;        /* most pieces of one thread */
    int64_t rows, cols, across; /* most rows and columns of an item; items of the same rows */
    float *packed;              /* all of b: groups, then panels of NR columns */
    const float *kept;          /* the same, packed earlier and finite; NULL: b is packed */
    float *workspace;
    int64_t workspace_size; /* floats for each thread */
    atomic_int not_finite;  /* set if weights are not finite, while taps may lie outside */
} gather;

/* Returns the floats of `packed`, if n, k and v are set. */
int64_t RO_NAME(ro_conv_packed_count)(const gather *g);
/* Packs all of b. Sets g->not_finite if weights are not finite and taps may lie outside. */
void RO_NAME(ro_conv_pack)(ro_pool *pool, gather *g, int64_t grain);
/* Runs a convolution. The caller has set g up to its weights and output. */
ro_status RO_NAME(ro_conv_gather_run)(ro_ctx *ctx, gather *g);

/* Lists the spans of axis d, or only counts them if `to` is NULL. */
int64_t RO_NAME(ro_conv_spans)(const gather *g, int d, span *to);
/* Lists the blocks, of at most g->rows rows. */
int64_t RO_NAME(ro_conv_blocks)(const gather *g, gather_block *to);
/* Lists the pieces that the pixels of a block meet, by ascending k. */
int64_t RO_NAME(ro_conv_pieces)(const gather *g, const gather_block *b, piece *to);

/* The position of a row's window: image n, positions i and j in the spans. */
typedef struct {
    int64_t n, i, j;
} gather_place;

static inline gather_place place_of(const gather_block *b, int64_t row) {
    const int64_t i = row / b->at[1].count;
    return (gather_place){i / b->at[0].count, i % b->at[0].count, row % b->at[1].count};
}

static inline void next_place(const gather_block *b, gather_place *p) {
    if (++p->j < b->at[1].count)
        return;
    p->j = 0;
    if (++p->i < b->at[0].count)
        return;
    p->i = 0;
    p->n++;
}

/* Returns the weight of step k of a group in column j. */
static inline const float *conv_weight(const gather *g, int64_t group, int64_t k, int64_t j) {
    return g->weights + k / g->depth * g->v->depth * g->v->filters + group * g->b_group +
           k % g->depth * g->b_row + j * g->b_col;
}

/* Returns the pixel of row p in piece q, or NULL if it lies outside. */
static inline const float *pixel_of(const gather *g, const gather_place *p, const piece *q) {
    const int64_t h = p->i * g->step[0] + q->at[0], w = p->j * g->step[1] + q->at[1];
    if ((uint64_t)h >= (uint64_t)g->size[0] || (uint64_t)w >= (uint64_t)g->size[1])
        return NULL;
    return g->image + ((p->n * g->size[0] + h) * g->size[1] + w) * g->pixel + q->c;
}

static inline float *out_pixel(const gather *g, const gather_block *b, const gather_place *p) {
    const int64_t h = b->at[0].first + p->i * g->spread[0];
    const int64_t w = b->at[1].first + p->j * g->spread[1];
    return g->out + ((p->n * g->out_size[0] + h) * g->out_size[1] + w) * g->out_pixel;
}

/* Finds the pixel, perhaps outside, where position `h` meets tap `t`. Returns 0 if they meet at no
 * pixel. */
static inline int pixel_at(const gather *g, int d, int64_t h, int64_t t, int64_t *at) {
    const int64_t shift = t * g->v->dilation[d] - g->v->pad[d], stride = g->v->stride[d];
    *at = g->backward ? (h - shift) / stride : h * stride + shift;
    return !g->backward || (h - shift) % stride == 0;
}

/* Returns the product of conv2d, without its weights and output. */
static inline gather forward_gather(const ro_conv *v, const float *x) {
    gather g = {.v = v, .image = x, .pixel = v->channels, .depth = v->depth, .n = v->width};
    g.out_pixel = v->filters;
    for (int d = 0; d < 2; d++) {
        g.size[d] = v->in[d], g.out_size[d] = v->out[d];
        g.step[d] = v->stride[d], g.spread[d] = 1;
    }
    return g;
}

#endif
