/* Fixed convolutions (SPEC.md section 3.5) as products, whose lines are gathered a chunk at a time:
 * what plans them and what gathers agree on this.
 *
 * A product's lines of a are windows and its columns filters (conv2d_fixed), pixels of x and their
 * channels (conv2d_fixed_dx), or taps by channels and filters, with windows as steps
 * (conv2d_fixed_dw). Each group is a product. So are, in conv2d_fixed_dx, the pixels that leave one
 * remainder by the strides, the "phase": they meet the same taps. */
#ifndef REPOPS_CPU_CONV_FIXED_H
#define REPOPS_CPU_CONV_FIXED_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

enum {
    FIXED_LINE = RO_DOT_CHUNK + VW, /* from a gathered line to the next: stores run over */
    FIXED_MET_STEPS = 64, /* an engine's steps at once: of a chunk it computes multiples of them */
};

/* Terms of a chunk that are neighbours in the image, of one tap or of a row of taps. */
typedef struct {
    int64_t down, right; /* rows and pixels from the window's to theirs */
    int64_t channel;     /* the first one, of the image's */
    int64_t k;           /* place of the first among all terms */
    int64_t count;
} fixed_run;

/* A chunk. Runs of taps that no window of the phase meets come last. */
typedef struct {
    fixed_run run[RO_DOT_CHUNK];
    int count, met;
    int64_t steps, met_steps;
} fixed_runs;

typedef struct {
    ro_conv v;
    int kind;  /* conv2d, conv2d_dx or conv2d_dw */
    int plain; /* lines of a lie as a matrix */
    const fixed_engine *engine;
    const float *a, *b;
    float *out;
    int64_t m, n, k;              /* of a product, m of the largest */
    int64_t height, width, pixel; /* of the image that windows see, in rows, pixels and numbers */
    int64_t length, across;       /* terms of a whole run, and runs in a row of taps */
    int64_t phases[2];
} fixed_conv;

/* A product of those of a call. */
typedef struct {
    int64_t group, phase[2];
} fixed_part;

RO_INLINE int64_t fixed_positions(const fixed_conv *c, const fixed_part *p, int d) {
    return c->kind == RO_OP_CONV2D_DX ? ceil_div(c->v.in[d] - p->phase[d], c->v.stride[d])
                                      : c->v.out[d];
}

RO_INLINE int64_t fixed_windows(const fixed_conv *c, const fixed_part *p) {
    return c->v.batch * fixed_positions(c, p, 0) * fixed_positions(c, p, 1);
}

/* Returns where the first of the group's results of a line lies. */
RO_INLINE float *fixed_result_of(const fixed_conv *c, const fixed_part *p, int64_t m) {
    const ro_conv *v = &c->v;
    if (c->kind != RO_OP_CONV2D_DX)
        return c->out + m * v->filters + p->group * v->width;
    const int64_t across = fixed_positions(c, p, 1), down = fixed_positions(c, p, 0);
    const int64_t h = p->phase[0] + m / across % down * v->stride[0];
    const int64_t w = p->phase[1] + m % across * v->stride[1];
    return c->out + ((m / across / down * v->in[0] + h) * v->in[1] + w) * v->channels +
           p->group * v->depth;
}

/* Steps of a chunk that windows are packed with: beyond them every term of the phase is absent. */
RO_INLINE int64_t fixed_steps_met(const fixed_runs *runs) {
    return min_i64(ceil_div(runs->met_steps, FIXED_MET_STEPS) * FIXED_MET_STEPS, runs->steps);
}

/* All but the engine. */
fixed_conv RO_NAME(ro_fixed_conv_of)(const ro_job *job);

/* The chunk of the terms from k on. Not for conv2d_dw. */
void RO_NAME(ro_fixed_find_runs)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                 fixed_runs *out);

/* Lines [m, m + lines) of a in a chunk, FIXED_LINE apart; absent terms are +0. The first is for
 * conv2d and conv2d_dx and leaves `steps` of each; those beyond the runs that are met are +0. */
void RO_NAME(ro_fixed_gather_windows)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t m, int64_t lines,
                                      int64_t steps, float *to);
void RO_NAME(ro_fixed_gather_taps)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                   int64_t steps, int64_t m, int64_t lines, float *to);

/* Channels of pixels that are `step` apart become lines of pixels, `apart` from one to the next.
 * Stores run over by a vector. */
void RO_NAME(ro_fixed_turn)(const float *x, int64_t step, int64_t pixels, int64_t lines,
                            int64_t apart, float *to);

/* Channels [n, n + lines) of the weights in conv2d_dx, in the order of the runs: steps are `width`
 * apart, a multiple of VW. */
void RO_NAME(ro_fixed_gather_weights)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t n, int64_t lines,
                                      int64_t width, float *to);

/* The faster way; windows as lines of a; windows as columns of b, which conv2d_dw has not, nor one
 * whose planes or filters are too large. */
enum { FIXED_EITHER, FIXED_ROWS, FIXED_COLUMNS };

/* Windows as columns. 0 if their planes or the filters would be too large; otherwise sets *status.
 */
int RO_NAME(ro_fixed_by_columns)(const ro_job *job, const fixed_conv *c, int threads,
                                 ro_status *status);

/* A call of conv2d_fixed or of its gradients by one of the engines that there are, for tests:
 * RO_ERR_UNSUPPORTED if it cannot be had in this way. */
ro_status RO_NAME(ro_conv2d_fixed_by)(const ro_job *job, const fixed_engine *engine, int way);

#endif
