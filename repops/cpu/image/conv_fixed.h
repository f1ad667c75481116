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

enum {
    FIXED_LINE = RO_DOT_CHUNK + VW, /* from a gathered line to the next: stores run over */
};

/* Terms of a chunk that are neighbours in the image, of one tap or of a row of taps. */
typedef struct {
    int64_t down;  /* rows from the window's to theirs */
    int64_t first; /* numbers from the window's column to the first of them */
    int64_t k;     /* place of the first among all terms */
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

/* Channels [n, n + lines) of the weights in conv2d_dx, in the order of the runs: steps are `width`
 * apart, a multiple of VW. */
void RO_NAME(ro_fixed_gather_weights)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t n, int64_t lines,
                                      int64_t width, float *to);

/* A call of conv2d_fixed or of its gradients by one of the engines that there are, for tests. */
ro_status RO_NAME(ro_conv2d_fixed_by)(const ro_job *job, const fixed_engine *engine);

#endif
