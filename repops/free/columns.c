/* Column reductions, SPEC.md sections 3.3 and 3.4. An item is a tile of columns of one group. */
#include "repops/free/sums.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"

/* The input is [outer, n, cols], the output [outer, groups, cols]; outer is 1 except in
 * sum_axis. */
typedef struct {
    int64_t outer, n, cols, groups;
} view;

typedef struct {
    int64_t out;      /* index of its first element in the output */
    int64_t e;        /* and in the input */
    int64_t row, col; /* first row and column */
    int64_t terms, count;
} column_tile;

static inline view view_of(const ro_call *call) {
    view v = {1, 0, call->attr[RO_COLUMNS_COLS], 1};
    if (call->op == RO_OP_SUM_AXIS) {
        const ro_axis a = ro_axis_of(&call->input[0], call->attr[RO_ALONG_AXIS]);
        v = (view){a.outer, a.n, a.inner, 1};
    } else {
        v.n = ro_shape_numel(&call->input[0]) / v.cols;
    }
    v.groups = ro_blocks_of(v.n, RO_COLUMN_GROUP);
    return v;
}

static int64_t tiles(const ro_call *call) {
    const view v = view_of(call);
    return v.outer * v.groups * ceil_div(v.cols, SUM_COLUMNS);
}

static inline column_tile tile_of(const view *v, int64_t item) {
    const int64_t across = ceil_div(v->cols, SUM_COLUMNS), line = item / across;
    const int64_t row = line % v->groups * RO_COLUMN_GROUP, col = item % across * SUM_COLUMNS;
    return (column_tile){.out = line * v->cols + col,
                         .e = (line / v->groups * v->n + row) * v->cols + col,
                         .row = row,
                         .col = col,
                         .terms = min_i64(RO_COLUMN_GROUP, v->n - row),
                         .count = min_i64(SUM_COLUMNS, v->cols - col)};
}

/* Adds the terms of row `row`, whose elements in the input start at e. */
typedef void term(const ro_free_job *job, sums *s, int64_t e, int64_t row, order o);

RO_INLINE void reduce(term *add, double roundings, const ro_free_job *job, int64_t first,
                      int64_t last, ro_emitter *t, order o) {
    const view v = view_of(job->call);
    sums s;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const column_tile at = tile_of(&v, i);
        writer_open(&w, t, at.out);
        sums_open(&s, job->profile, at.terms, at.count, w.bounds);
        for (int64_t k = 0; k < at.terms; k++) {
            const int64_t row = sums_term(job->profile, k, at.terms);
            add(job, &s, at.e + row * v.cols, at.row + row, o);
        }
        sums_write(&s, &w, at.terms, roundings);
        writer_flush(&w);
    }
}

RO_INLINE void add_row(const ro_free_job *job, sums *s, int64_t e, int64_t row, order o) {
    (void)row;
    (void)o;
    sums_add(s, free_in(job, 0) + e);
}

RO_INLINE void add_product(const ro_free_job *job, sums *s, int64_t e, real mean, real rstd,
                           order o) {
    const float *restrict dy = free_in(job, 0) + e, *restrict x = free_in(job, 1) + e;
    real a[SUM_COLUMNS], b[SUM_COLUMNS];
    for (int64_t c = 0; c < s->columns; c++) {
        a[c] = (real)dy[c];
        b[c] = ((real)x[c] - mean) * rstd;
    }
    sums_add_products(s, a, b, o.contract);
}

RO_INLINE void add_ln(const ro_free_job *job, sums *s, int64_t e, int64_t row, order o) {
    add_product(job, s, e, (real)free_in(job, 2)[row], (real)free_in(job, 3)[row], o);
}

RO_INLINE void add_rms(const ro_free_job *job, sums *s, int64_t e, int64_t row, order o) {
    add_product(job, s, e, 0, (real)free_in(job, 2)[row], o);
}

#define KERNEL(name, roundings)                                                                    \
    RO_INLINE void name##_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t, \
                               order o) {                                                          \
        reduce(add_##name, roundings, job, first, last, t, o);                                     \
    }                                                                                              \
    static void name##_all(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {   \
        by_contraction(name##_body, job, first, last, t);                                          \
    }

KERNEL(row, 0)
RO_FREE_KERNEL(sum_rows, .range = row_all, .items = tiles)
RO_FREE_KERNEL(sum_axis, .range = row_all, .items = tiles)
KERNEL(ln, 3)
RO_FREE_KERNEL(ln_dgamma, .range = ln_all, .items = tiles)
KERNEL(rms, 2)
RO_FREE_KERNEL(rms_dgamma, .range = rms_all, .items = tiles)
