/* Evaluates formulas of one element: reads their operands and emits their results. */
#ifndef REPOPS_FREE_WRITER_H
#define REPOPS_FREE_WRITER_H

#include "repops/free/approx.h"
#include "repops/free/kernel.h"

/* Consecutive results that are collected for ro_emit. */
typedef struct {
    ro_emitter *t;
    int64_t at; /* index in the output */
    int64_t n;
    int bounds;
    real y[RO_EMIT_MAX];
    double e[RO_EMIT_MAX];
} writer;

RO_INLINE void writer_open(writer *w, ro_emitter *t, int64_t at) {
    w->t = t;
    w->at = at;
    w->n = 0;
#if defined(RO_IS_f32)
    w->bounds = 0;
#else
    w->bounds = ro_emit_wants_bounds(t);
#endif
}

/* Opens a writer whose results are all exact. */
RO_INLINE void writer_open_exact(writer *w, ro_emitter *t, int64_t at) {
    writer_open(w, t, at);
    w->bounds = 0;
}

static __attribute__((noinline, unused)) void writer_flush(writer *w) {
    if (w->n > 0)
        ro_emit(w->t, w->at, w->y, w->bounds ? w->e : NULL, w->n);
    w->at += w->n;
    w->n = 0;
}

RO_INLINE void write_one(writer *w, approx a) {
    w->y[w->n] = a.v;
    w->e[w->n] = free_bound(ap_error(a));
    if (++w->n == RO_EMIT_MAX)
        writer_flush(w);
}

static inline __attribute__((unused)) void write_zeros(writer *w, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        write_one(w, ap_exact(0));
}

/* Appends f of elements 0 to n - 1. */
RO_INLINE void write_each(writer *w, formula *f, operands o, int64_t n, order how) {
    for (int64_t i = 0; i < n;) {
        const int64_t count = min_i64(n - i, RO_EMIT_MAX - w->n);
        real *restrict y = w->y + w->n;
        double *restrict e = w->e + w->n;
        if (w->bounds) {
            RO_SAME_INDEX
            for (int64_t j = 0; j < count; j++) {
                const approx r = f(o, i + j, how);
                y[j] = r.v;
                e[j] = free_bound(ap_error(r));
            }
        } else {
            RO_SAME_INDEX
            for (int64_t j = 0; j < count; j++)
                y[j] = f(o, i + j, how).v;
        }
        i += count;
        w->n += count;
        if (w->n == RO_EMIT_MAX)
            writer_flush(w);
    }
}

/* ---- kernels that are one loop over a formula ---- */

typedef void body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, order o);

/* Runs a formula over elements of the tensors of an elementwise operator. */
RO_INLINE void run_formula(formula *f, operands o, const ro_free_job *job, int64_t first,
                           int64_t last, ro_emitter *t, order how) {
    const float *const *in = (const float *const *)job->in;
    const int n = job->call->input_count;
    writer w;
    o.a = in[0] + first;
    o.b = n > 1 && !o.b ? in[1] + first : o.b;
    o.c = n > 2 && !o.c ? in[2] + first : o.c;
    writer_open(&w, t, first);
    write_each(&w, f, o, last - first, how);
    writer_flush(&w);
}

/* Runs the body with the order of the job's profile as a constant. */
RO_INLINE void by_contraction(body *b, const ro_free_job *job, int64_t first, int64_t last,
                              ro_emitter *t) {
    if (job->profile->contract && RO_HAS_FMA)
        b(job, first, last, t, (order){1, 0});
    else
        b(job, first, last, t, (order){0, 0});
}

RO_INLINE void by_order(body *b, const ro_free_job *job, int64_t first, int64_t last,
                        ro_emitter *t) {
    if (!job->profile->estrin)
        by_contraction(b, job, first, last, t);
    else if (job->profile->contract && RO_HAS_FMA)
        b(job, first, last, t, (order){1, 1});
    else
        b(job, first, last, t, (order){0, 1});
}

/* ---- views of a call ---- */

RO_INLINE int64_t free_numel(const ro_free_job *job, int i) {
    return ro_shape_numel(&job->call->input[i]);
}

RO_INLINE real free_attr(const ro_free_job *job, int i) {
    return (real)ro_from_bits((uint32_t)job->call->attr[i]);
}

RO_INLINE const float *free_in(const ro_free_job *job, int i) {
    return (const float *)job->in[i];
}

/* Returns element i of input `input`. */
RO_INLINE approx free_at(const ro_free_job *job, int input, int64_t i) {
    return at(free_in(job, input), i);
}

/* Returns the last dimension of the first input. */
RO_INLINE int64_t free_width(const ro_free_job *job) {
    return job->call->input[0].dim[job->call->input[0].ndim - 1];
}

static inline __attribute__((unused)) int64_t free_rows(const ro_call *call) {
    return ro_rows_of(&call->input[0]);
}

#endif
