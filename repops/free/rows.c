/* Row reductions, SPEC.md section 3.2. An item is one element of the output: a block of a row. */
#include "repops/free/functions.h"
#include "repops/free/sums.h"
#include "repops/op_reduce.h"

typedef struct {
    int64_t row, at; /* where its first element is: row, offset in the row, */
    int64_t e;       /* and offset in the whole input */
    int64_t count;
} row_block;

/* The terms of a block: a[i] * b[i], or a[i]. */
typedef struct {
    real a[RO_REDUCE_BLOCK], b[RO_REDUCE_BLOCK], excess[RO_REDUCE_BLOCK]; /* excess as in sums.h */
} terms;

typedef void fill(const ro_free_job *job, const row_block *b, terms *t, order o);

static inline row_block block_of(const ro_free_job *job, int64_t item) {
    const int64_t cols = job->call->attr[RO_ROWS_COLS], size = job->call->attr[RO_ROWS_BLOCK];
    const int64_t blocks = ro_blocks_of(cols, size), row = item / blocks, at = item % blocks * size;
    return (row_block){row, at, row * cols + at, min_i64(size, cols - at)};
}

typedef struct {
    fill *fill;
    int products, excess;
    double roundings; /* per term */
} reduction;

RO_INLINE void reduce(reduction r, const ro_free_job *job, int64_t first, int64_t last,
                      ro_emitter *t, order o) {
    terms x;
    writer w;
    writer_open(&w, t, first);
    for (int64_t i = first; i < last; i++) {
        const row_block b = block_of(job, i);
        approx y = {0, 0};
        r.fill(job, &b, &x, o);
        real *const factor = r.products ? x.b : NULL;
        if (w.bounds)
            y.e = sum_error(b.count, r.roundings) *
                  sum_size(x.a, factor, r.excess ? x.excess : NULL, b.count);
        y.v = sum_row(job->profile, x.a, factor, b.count, o.contract);
        write_one(&w, y);
    }
    writer_flush(&w);
}

static inline void widen(const float *restrict from, int64_t n, real *restrict to) {
    for (int64_t i = 0; i < n; i++)
        to[i] = (real)from[i];
}

static inline void fill_sum(const ro_free_job *job, const row_block *b, terms *t, order o) {
    (void)o;
    widen(free_in(job, 0) + b->e, b->count, t->a);
}

static inline void fill_dot(const ro_free_job *job, const row_block *b, terms *t, order o) {
    const int64_t period = free_numel(job, 1);
    (void)o;
    widen(free_in(job, 0) + b->e, b->count, t->a);
    for (int64_t i = 0; i < b->count;) {
        const int64_t from = (b->e + i) % period, n = min_i64(period - from, b->count - i);
        widen(free_in(job, 1) + from, n, t->b + i);
        i += n;
    }
}

static inline void fill_sqdev(const ro_free_job *job, const row_block *b, terms *t, order o) {
    const float *restrict x = free_in(job, 0) + b->e;
    const real mean = (real)free_in(job, 1)[b->row];
    (void)o;
    for (int64_t i = 0; i < b->count; i++)
        t->a[i] = t->b[i] = (real)x[i] - mean;
}

/* Fills in exponentials. Rounding the argument changes the result by |argument| roundings. */
RO_INLINE void fill_expsum(const ro_free_job *job, const row_block *b, terms *t, order o) {
    const float *restrict x = free_in(job, 0) + b->e;
    const real m = (real)free_in(job, 1)[b->row], over = 1 / (real)(b->count + 1);
    for (int64_t i = 0; i < b->count; i++) {
        t->a[i] = free_exp((real)x[i] - m, o);
        t->excess[i] = ap_abs((real)x[i] - m) * over;
    }
}

static inline void fill_ln_gx(const ro_free_job *job, const row_block *b, terms *t, order o) {
    const float *restrict dy = free_in(job, 0) + b->e, *restrict gamma = free_in(job, 1) + b->at;
    const float *restrict x = free_in(job, 2) + b->e;
    const real mean = (real)free_in(job, 3)[b->row], rstd = (real)free_in(job, 4)[b->row];
    (void)o;
    for (int64_t i = 0; i < b->count; i++) {
        t->a[i] = (real)dy[i] * (real)gamma[i];
        t->b[i] = ((real)x[i] - mean) * rstd;
    }
}

static inline void fill_rms_gx(const ro_free_job *job, const row_block *b, terms *t, order o) {
    const float *restrict dy = free_in(job, 0) + b->e, *restrict gamma = free_in(job, 1) + b->at;
    const float *restrict x = free_in(job, 2) + b->e;
    const real rstd = (real)free_in(job, 3)[b->row];
    (void)o;
    for (int64_t i = 0; i < b->count; i++) {
        t->a[i] = (real)dy[i] * (real)gamma[i];
        t->b[i] = (real)x[i] * rstd;
    }
}

#define KERNEL(name, dispatch, ...)                                                                \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        reduce((reduction){fill_##name, __VA_ARGS__}, job, first, last, t, o);                     \
    }                                                                                              \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        dispatch(name##_body, job, first, last, t);                                                \
    }                                                                                              \
    RO_FREE_KERNEL(reduce_##name, .range = name)

KERNEL(sum, by_contraction, 0, 0, 0)
KERNEL(dot, by_contraction, 1, 0, 0)
KERNEL(sqdev, by_contraction, 1, 0, 2)
KERNEL(expsum, by_order, 0, 1, RO_EXP_ROUNDINGS)
KERNEL(ln_gx, by_contraction, 1, 0, 2)
KERNEL(rms_gx, by_contraction, 1, 0, 1)
