/* Fixed convolutions (SPEC.md section 3.5) as products whose lines are gathered a chunk at a time:
 * the interface between plans and gathering.
 *
 * A product's lines of a are windows and its columns filters (conv2d_fixed), pixels of x and their
 * channels (conv2d_fixed_dx), or taps by channels and filters, with windows as steps
 * (conv2d_fixed_dw). Each group is a product of its own. In conv2d_fixed_dx, so is each "phase":
 * the pixels with the same remainder modulo the strides, which meet the same taps. */
#ifndef REPOPS_CPU_CONV_FIXED_H
#define REPOPS_CPU_CONV_FIXED_H

#include "repops/cpu/gemm/fixed.h"
#include "repops/src/conv.h"
#include "repops/op_image.h"

enum {
    FIXED_LINE = RO_DOT_CHUNK + VW, /* stride of gathered lines: stores run past their ends */
    FIXED_MET_STEPS = 64,           /* an engine computes a multiple of so many steps of a chunk */
};

/* Terms of a chunk that are contiguous in the image, of one tap or of a row of taps. */
typedef struct {
    int64_t down, right; /* offset in rows and pixels from the window's position */
    int64_t channel;     /* the first one in the image */
    int64_t k;           /* index of the first term among all */
    int64_t count;
} fixed_run;

/* The runs of one chunk. Those of taps that no window of the phase meets come last. */
typedef struct {
    fixed_run run[RO_DOT_CHUNK];
    int count, met;
    int64_t steps, met_steps;
} fixed_runs;

typedef struct {
    ro_conv v;
    int kind;  /* RO_OP_CONV2D, RO_OP_CONV2D_DX or RO_OP_CONV2D_DW */
    int plain; /* lines of a are rows of a matrix in memory */
    const fixed_engine *engine;
    const float *a, *b;
    float *out;
    int64_t m, n, k;              /* sizes of a product; m of the largest one */
    int64_t height, width, pixel; /* of the image that windows see: rows, pixels, numbers */
    int64_t length, across;       /* terms in a whole run, and runs in a row of taps */
    int64_t phases[2];
} fixed_conv;

/* One of the products of a call. */
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

/* Returns where the group's first result of line m is stored. */
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

/* Returns how many steps of a chunk windows are packed with: all terms after them are absent. */
RO_INLINE int64_t fixed_steps_met(const fixed_runs *runs) {
    return min_i64(ceil_div(runs->met_steps, FIXED_MET_STEPS) * FIXED_MET_STEPS, runs->steps);
}

/* Returns the plan of a job, except its engine. */
fixed_conv RO_NAME(ro_fixed_conv_of)(const ro_job *job);

/* Finds the runs of the chunk that starts at term k. Not for conv2d_dw. */
void RO_NAME(ro_fixed_find_runs)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                 fixed_runs *out);

/* Gather lines [m, m + lines) of a in a chunk, FIXED_LINE apart; absent terms are +0. The first is
 * for conv2d and conv2d_dx, with `steps` terms each: those after the runs that are met are +0. */
void RO_NAME(ro_fixed_gather_windows)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t m, int64_t lines,
                                      int64_t steps, float *to);
void RO_NAME(ro_fixed_gather_taps)(const fixed_conv *c, const fixed_part *p, int64_t k,
                                   int64_t steps, int64_t m, int64_t lines, float *to);

/* Transposes pixels that are `step` apart: channel i of all pixels becomes a line, `apart` from the
 * next. Stores run past the end by a vector. */
void RO_NAME(ro_fixed_turn)(const float *x, int64_t step, int64_t pixels, int64_t lines,
                            int64_t apart, float *to);

/* Gathers channels [n, n + lines) of the weights in conv2d_dx, in the order of the runs. Steps are
 * `width` apart, a multiple of VW. */
void RO_NAME(ro_fixed_gather_weights)(const fixed_conv *c, const fixed_part *p,
                                      const fixed_runs *runs, int64_t n, int64_t lines,
                                      int64_t width, float *to);

/* The way to compute: whichever is faster; windows as lines of a; or windows as columns of b, which
 * is not possible for conv2d_dw, nor if planes or filters are too large. */
enum { FIXED_EITHER, FIXED_ROWS, FIXED_COLUMNS };

/* Computes with windows as columns, and sets *status. Returns 0 if planes or filters are too
 * large. */
int RO_NAME(ro_fixed_by_columns)(const ro_job *job, const fixed_conv *c, int threads,
                                 ro_status *status);

/* Runs conv2d_fixed or a gradient by the given engine, for tests. Returns RO_ERR_UNSUPPORTED if the
 * given way is not possible. */
ro_status RO_NAME(ro_conv2d_fixed_by)(const ro_job *job, const fixed_engine *engine, int way);

#endif
