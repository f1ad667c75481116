/* Random cases of row functions, and of SGD. Part of fused.c. */
#ifndef TESTS_CUDA_FUSED_ROWS_H
#define TESTS_CUDA_FUSED_ROWS_H

#include "tests/cuda/fused_work.h"

/* Widths near the lanes and blocks of order R, up to more blocks than warps keep in registers. */
static int64_t width_of(const work *w) {
    static const int16_t widths[] = {1,    2,    31,    33,    64,    127,   128,   129,
                                     768,  1000, 1023,  1024,  1025,  2047,  2048,  2049,
                                     3072, 5000, 16384, 16385, 16388, 17001, 18000, 20000};
    return pick(w, 0, widths, sizeof widths / sizeof *widths);
}

/* Numbers of rows near the groups of order K, and near groups of groups. */
static int64_t rows_of(const work *w, int64_t cols) {
    static const int16_t few[] = {0, 1, 2, 3, 9}, many[] = {63, 64, 65, 129, 4097};
    if (cols > 130 || roll(w, 1, 2))
        return pick(w, 2, few, sizeof few / sizeof *few);
    return pick(w, 2, many, cols > 40 ? 4 : 5);
}

static void say(char what[80], const char *name, int64_t rows, int64_t cols) {
    snprintf(what, 80, "%s of %lld x %lld", name, (long long)rows, (long long)cols);
}

/* The output's memory: an input's, or its own. */
static array *place(work *w, array *dy, array *x) {
    const uint64_t where = roll(w, 3, 3);
    return where == 0 ? dy : where == 1 ? x : add(w, "dx", x->count);
}

static void layer_norm(work *w) {
    const int64_t cols = width_of(w), rows = rows_of(w, cols);
    const float eps = roll(w, 4, 4) ? 1e-5f : 0.0f;
    array *x = input(w, "x", rows * cols, class_of(w)),
          *gamma = input(w, "gamma", cols, DATA_NORMAL);
    array *beta = input(w, "beta", cols, DATA_NORMAL), *y = add(w, "y", rows * cols);
    array *mean = add(w, "mean", rows), *rstd = add(w, "rstd", rows);
    char what[80];
    say(what, "layer_norm", rows, cols);
    expect(w,
           ro_layer_norm(w->cpu, rows, cols, eps, x->want, gamma->want, beta->want, y->want,
                         mean->want, rstd->want),
           w->cpu);
    expect(w,
           ro_layer_norm(w->device, rows, cols, eps, x->on_device, gamma->on_device,
                         beta->on_device, y->on_device, mean->on_device, rstd->on_device),
           w->device);
    compare(w, mean, what);
    compare(w, rstd, what);
    compare(w, y, what);
    if (w->failed)
        return;
    array *dy = input(w, "dy", rows * cols, class_of(w)), *dx = place(w, dy, x);
    array *dgamma = add(w, "dgamma", cols), *dbeta = add(w, "dbeta", cols);
    say(what, dx == dy ? "layer_norm_backward, dx is dy," : "layer_norm_backward", rows, cols);
    expect(w,
           ro_layer_norm_backward(w->cpu, rows, cols, x->want, gamma->want, mean->want, rstd->want,
                                  dy->want, dx->want, dgamma->want, dbeta->want),
           w->cpu);
    expect(w,
           ro_layer_norm_backward(w->device, rows, cols, x->on_device, gamma->on_device,
                                  mean->on_device, rstd->on_device, dy->on_device, dx->on_device,
                                  dgamma->on_device, dbeta->on_device),
           w->device);
    compare(w, dgamma, what);
    compare(w, dbeta, what);
    compare(w, dx, what);
}

static void rms_norm(work *w) {
    const int64_t cols = width_of(w), rows = rows_of(w, cols);
    const float eps = roll(w, 4, 4) ? 1e-5f : 0.0f;
    array *x = input(w, "x", rows * cols, class_of(w)),
          *gamma = input(w, "gamma", cols, DATA_NORMAL);
    array *y = roll(w, 3, 2) ? add(w, "y", rows * cols) : x, *rstd = add(w, "rstd", rows);
    char what[80];
    say(what, "rms_norm", rows, cols);
    expect(w, ro_rms_norm(w->cpu, rows, cols, eps, x->want, gamma->want, y->want, rstd->want),
           w->cpu);
    expect(w,
           ro_rms_norm(w->device, rows, cols, eps, x->on_device, gamma->on_device, y->on_device,
                       rstd->on_device),
           w->device);
    compare(w, rstd, what);
    compare(w, y, what);
    if (w->failed || y == x)
        return;
    array *dy = input(w, "dy", rows * cols, class_of(w)), *dx = place(w, dy, x);
    array *dgamma = add(w, "dgamma", cols);
    say(what, dx == dy ? "rms_norm_backward, dx is dy," : "rms_norm_backward", rows, cols);
    expect(w,
           ro_rms_norm_backward(w->cpu, rows, cols, x->want, gamma->want, rstd->want, dy->want,
                                (ro_gradient){dx->want, 0}, (ro_gradient){dgamma->want, 0}),
           w->cpu);
    expect(w,
           ro_rms_norm_backward(w->device, rows, cols, x->on_device, gamma->on_device,
                                rstd->on_device, dy->on_device, (ro_gradient){dx->on_device, 0},
                                (ro_gradient){dgamma->on_device, 0}),
           w->device);
    compare(w, dgamma, what);
    compare(w, dx, what);
}

typedef ro_status softmax_grad(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                               const float *dy, float *dx);

static void grad_of(work *w, const char *of, softmax_grad *backward, array *y, int64_t rows,
                    int64_t cols) {
    array *dy = input(w, "dy", rows * cols, class_of(w)), *dx = place(w, dy, y);
    char what[100];
    snprintf(what, sizeof what, "gradient of %s", of);
    expect(w, backward(w->cpu, rows, cols, y->want, dy->want, dx->want), w->cpu);
    expect(w, backward(w->device, rows, cols, y->on_device, dy->on_device, dx->on_device),
           w->device);
    compare(w, dx, what);
}

typedef ro_status softmax_of(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y,
                             float *m, float *l);

/* Runs the forward function, then the backward one on its result. */
static void either_softmax(work *w, const char *name, softmax_of *forward, softmax_grad *backward) {
    const int64_t cols = width_of(w), rows = rows_of(w, cols);
    array *x = input(w, "x", rows * cols, class_of(w)), *y = add(w, "y", rows * cols);
    array *m = add(w, "m", rows), *l = add(w, "l", rows);
    char what[80];
    say(what, name, rows, cols);
    expect(w, forward(w->cpu, rows, cols, x->want, y->want, m->want, l->want), w->cpu);
    expect(w,
           forward(w->device, rows, cols, x->on_device, y->on_device, m->on_device, l->on_device),
           w->device);
    compare(w, m, what);
    compare(w, l, what);
    compare(w, y, what);
    if (!w->failed)
        grad_of(w, what, backward, y, rows, cols);
}

static void softmax(work *w) {
    either_softmax(w, "softmax", ro_softmax, ro_softmax_backward);
}

static void log_softmax(work *w) {
    either_softmax(w, "log_softmax", ro_log_softmax, ro_log_softmax_backward);
}

/* ---- SGD ---- */

static void sgd(work *w) {
    static const int16_t counts[] = {0, 1, 3, 4, 5, 31, 1023, 1024, 4095, 4096, 4097, 9001};
    const int64_t count = pick(w, 0, counts, sizeof counts / sizeof *counts);
    array *weight = input(w, "w", count, class_of(w)), *m = input(w, "m", count, class_of(w));
    array *g = input(w, "gradient", count, class_of(w)), *one = input(w, "scalars", 2, DATA_NORMAL);
    const int in_place = roll(w, 1, 2) == 0;
    array *w_out = in_place ? weight : add(w, "w_out", count);
    array *m_out = in_place ? m : add(w, "m_out", count);
    ro_sgd_step step = {.size = sizeof step,
                        .nesterov = roll(w, 3, 2) == 0,
                        .count = count,
                        .momentum = 0.9f,
                        .decay = roll(w, 2, 2) ? 0.1f : 0.0f,
                        .clip = one->want,
                        .rate = one->want + 1};
    expect(w, ro_sgd(w->cpu, &step, weight->want, m->want, g->want, w_out->want, m_out->want),
           w->cpu);
    step.clip = one->on_device, step.rate = one->on_device + 1;
    expect(w,
           ro_sgd(w->device, &step, weight->on_device, m->on_device, g->on_device, w_out->on_device,
                  m_out->on_device),
           w->device);
    compare(w, m_out, "sgd");
    compare(w, w_out, "sgd");
}

#endif
