/* Batch norm, SPEC.md section 12.3. An item of the reductions is a tile of columns of a group. */
#include "repops/free/norms.h"
#include "repops/free/sums.h"
#include "repops/op_image.h"
#include "repops/op_reduce.h"

/* ---- reductions ---- */

typedef struct {
    int64_t group, row, rows; /* the group, its first row, and how many rows */
    int64_t col, count, cols;
    int64_t e; /* index of its first element */
} bn_tile;

static int64_t entries(const ro_call *call) {
    return ro_shape_numel(&call->input[0]) / call->attr[RO_COLUMNS_COLS];
}

static int64_t tiles(const ro_call *call) {
    return ro_blocks_of(entries(call), RO_COLUMN_GROUP) *
           ceil_div(call->attr[RO_COLUMNS_COLS], SUM_COLUMNS);
}

static inline bn_tile tile_of(const ro_free_job *job, int64_t item) {
    const int64_t cols = job->call->attr[RO_COLUMNS_COLS], across = ceil_div(cols, SUM_COLUMNS);
    const int64_t group = item / across, row = group * RO_COLUMN_GROUP;
    const int64_t col = item % across * SUM_COLUMNS;
    return (bn_tile){group,
                     row,
                     min_i64(RO_COLUMN_GROUP, entries(job->call) - row),
                     col,
                     min_i64(SUM_COLUMNS, cols - col),
                     cols,
                     row * cols + col};
}

/* Sums of the columns of a tile, and bounds of their errors. */
typedef struct {
    real v[SUM_COLUMNS];
    double e[SUM_COLUMNS];
} sums_of_tile;

static void take(sums *s, int64_t terms, double roundings, sums_of_tile *y) {
    const real *sum = sums_close(s);
    memcpy(y->v, sum, (size_t)s->columns * sizeof *sum);
    for (int64_t c = 0; s->bounds && c < s->columns; c++)
        y->e[c] = sum_error(terms, roundings) * s->size[c];
}

RO_INLINE approx of_tile(const sums_of_tile *y, int64_t c, int bounds) {
    return (approx){y->v[c], bounds ? y->e[c] : 0};
}

static void bn_mean(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {
    sums s;
    sums_of_tile y;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const bn_tile at = tile_of(job, i);
        writer_open(&w, t, at.group * at.cols + at.col);
        sums_open(&s, job->profile, at.rows, at.count, w.bounds);
        for (int64_t k = 0; k < at.rows; k++)
            sums_add(&s, free_in(job, 0) + at.e + sums_term(job->profile, k, at.rows) * at.cols);
        take(&s, at.rows, 0, &y);
        for (int64_t c = 0; c < at.count; c++)
            write_one(&w, ap_div_exact(of_tile(&y, c, w.bounds), (real)at.rows));
        writer_flush(&w);
    }
}
RO_FREE_KERNEL(bn_mean, .range = bn_mean, .items = tiles)

/* Adds the terms dy * xh of a row or, if dy is NULL, the squares of x - mean. */
RO_INLINE void add_row(sums *s, const float *dy, const float *restrict x,
                       const float *restrict mean, const float *restrict rstd, order o) {
    real a[SUM_COLUMNS], b[SUM_COLUMNS];
    for (int64_t c = 0; c < s->columns; c++)
        b[c] = (real)x[c] - (real)mean[c];
    for (int64_t c = 0; dy && c < s->columns; c++) {
        a[c] = (real)dy[c];
        b[c] = b[c] * (real)rstd[c];
    }
    sums_add_products(s, dy ? a : b, b, o.contract);
}

RO_INLINE void bn_sqdev_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                             order o) {
    sums s;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const bn_tile at = tile_of(job, i);
        const float *mean = free_in(job, 1) + at.group * at.cols + at.col;
        writer_open(&w, t, at.group * at.cols + at.col);
        sums_open(&s, job->profile, at.rows, at.count, w.bounds);
        for (int64_t k = 0; k < at.rows; k++) {
            const int64_t row = sums_term(job->profile, k, at.rows);
            add_row(&s, NULL, free_in(job, 0) + at.e + row * at.cols, mean, NULL, o);
        }
        sums_write(&s, &w, at.rows, 3);
        writer_flush(&w);
    }
}

RO_INLINE void bn_dgamma_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                              order o) {
    sums s;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const bn_tile at = tile_of(job, i);
        writer_open(&w, t, at.group * at.cols + at.col);
        sums_open(&s, job->profile, at.rows, at.count, w.bounds);
        for (int64_t k = 0; k < at.rows; k++) {
            const int64_t e = at.e + sums_term(job->profile, k, at.rows) * at.cols;
            add_row(&s, free_in(job, 0) + e, free_in(job, 1) + e, free_in(job, 2) + at.col,
                    free_in(job, 3) + at.col, o);
        }
        sums_write(&s, &w, at.rows, 3);
        writer_flush(&w);
    }
}

/* ---- merging: over the reals, the walk of SPEC 12.3 gives the mean of all rows, M, and the sum
 * of s_i + b_i (m_i - M)^2 ---- */

/* Returns the number of rows that an entry stands for. */
RO_INLINE real weight_of(const ro_call *call, int64_t entry) {
    return (real)min_i64(call->attr[RO_MERGE_PER],
                         call->attr[RO_MERGE_ROWS] - entry * call->attr[RO_MERGE_PER]);
}

RO_INLINE real weight_of_group(const ro_call *call, const bn_tile *at) {
    const int64_t from = at->row * call->attr[RO_MERGE_PER];
    return (real)min_i64(at->rows * call->attr[RO_MERGE_PER], call->attr[RO_MERGE_ROWS] - from);
}

/* Computes the means of a tile's columns. A single entry is its own mean. */
RO_INLINE void merge_means(const ro_free_job *job, const bn_tile *at, sums *s, int bounds,
                           approx *mean, order o) {
    real a[SUM_COLUMNS], b[SUM_COLUMNS];
    sums_of_tile y;
    const float *m = free_in(job, 0) + at->e;
    const real all = weight_of_group(job->call, at);
    sums_open(s, job->profile, at->rows, at->count, bounds);
    for (int64_t k = 0; k < at->rows; k++) {
        const int64_t row = sums_term(job->profile, k, at->rows);
        const real weight = weight_of(job->call, at->row + row);
        for (int64_t c = 0; c < at->count; c++) {
            a[c] = weight;
            b[c] = (real)m[row * at->cols + c];
        }
        sums_add_products(s, a, b, o.contract);
    }
    take(s, at->rows, 1, &y);
    for (int64_t c = 0; c < at->count; c++)
        mean[c] = at->rows == 1 ? ap_exact((real)m[c]) : ap_div_exact(of_tile(&y, c, bounds), all);
}

RO_INLINE void bn_merge_mean_body(const ro_free_job *job, int64_t first, int64_t last,
                                  ro_emitter *t, order o) {
    approx mean[SUM_COLUMNS];
    sums s;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const bn_tile at = tile_of(job, i);
        writer_open(&w, t, at.group * at.cols + at.col);
        merge_means(job, &at, &s, w.bounds, mean, o);
        for (int64_t c = 0; c < at.count; c++)
            write_one(&w, mean[c]);
        writer_flush(&w);
    }
}

/* If M is off by d, the sum of b_i (m_i - M)^2 grows by (sum of b_i) d^2: the rest cancels. */
RO_INLINE void bn_merge_sqdev_body(const ro_free_job *job, int64_t first, int64_t last,
                                   ro_emitter *t, order o) {
    approx mean[SUM_COLUMNS];
    real a[SUM_COLUMNS], b[SUM_COLUMNS];
    sums_of_tile y;
    sums s;
    writer w;
    for (int64_t i = first; i < last; i++) {
        const bn_tile at = tile_of(job, i);
        const double all = (double)weight_of_group(job->call, &at);
        const float *m = free_in(job, 0) + at.e, *deviation = free_in(job, 1) + at.e;
        writer_open(&w, t, at.group * at.cols + at.col);
        merge_means(job, &at, &s, w.bounds, mean, o);
        sums_open(&s, job->profile, 2 * at.rows, at.count, w.bounds);
        for (int64_t k = 0; k < at.rows; k++) {
            const int64_t row = sums_term(job->profile, k, at.rows);
            const real weight = weight_of(job->call, at.row + row);
            sums_add(&s, deviation + row * at.cols);
            for (int64_t c = 0; c < at.count; c++) {
                b[c] = at.rows == 1 ? 0 : (real)m[row * at.cols + c] - mean[c].v;
                a[c] = weight * b[c];
            }
            sums_add_products(&s, a, b, o.contract);
        }
        take(&s, 2 * at.rows, 4, &y);
        for (int64_t c = 0; c < at.count; c++) {
            approx r = of_tile(&y, c, w.bounds);
            r.e += all * ap_error(mean[c]) * ap_error(mean[c]);
            write_one(&w, r);
        }
        writer_flush(&w);
    }
}

/* ---- elements: an item is a row of all channels ---- */

/* Repeats the parameters of channels as often as fit into a span: loops over single rows of few
 * channels would be too short. */
enum { SPAN = 256, SPAN_PARAMETERS = 5 };

typedef struct {
    int64_t rows, columns; /* rows that are computed at a time, and their elements */
    const float *of[SPAN_PARAMETERS];
    float copy[SPAN_PARAMETERS][SPAN];
} span;

/* Opens a span of the inputs `first` to first + count - 1, for at most `rows` rows. */
static void span_open(span *s, const ro_free_job *job, int first, int count, int64_t rows) {
    const int64_t cols = free_width(job);
    s->rows = max_i64(1, min_i64(rows, SPAN / max_i64(cols, 1)));
    s->columns = s->rows * cols;
    for (int k = 0; k < count; k++) {
        s->of[k] = s->rows > 1 ? s->copy[k] : free_in(job, first + k);
        for (int64_t row = 0; row < s->rows && s->rows > 1; row++)
            memcpy(s->copy[k] + row * cols, free_in(job, first + k), (size_t)cols * sizeof(float));
    }
}

RO_INLINE void batchnorm_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                              order o) {
    const int64_t cols = free_width(job);
    span s;
    writer w;
    span_open(&s, job, 1, 4, last - first);
    operands x = {.b = s.of[0], .c = s.of[1], .d = s.of[2], .e = s.of[3]};
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row += s.rows) {
        x.a = free_in(job, 0) + row * cols;
        write_each(&w, batchnorm_of, x, min_i64(s.columns, (last - row) * cols), o);
    }
    writer_flush(&w);
}

RO_INLINE void bn_dx_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                          order o) {
    const int64_t cols = free_width(job);
    span s;
    writer w;
    span_open(&s, job, 2, 5, last - first);
    operands x = {.c = s.of[0],
                  .d = s.of[1],
                  .e = s.of[2],
                  .f = s.of[3],
                  .g = s.of[4],
                  .p = ap_relative(1 / (real)free_rows(job->call), 1)};
    writer_open(&w, t, first * cols);
    for (int64_t row = first; row < last; row += s.rows) {
        x.a = free_in(job, 0) + row * cols;
        x.b = free_in(job, 1) + row * cols;
        write_each(&w, bn_dx_of, x, min_i64(s.columns, (last - row) * cols), o);
    }
    writer_flush(&w);
}

RO_INLINE void bn_running_body(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t,
                               order o) {
    const operands x = {.p = ap_exact(free_attr(job, RO_BN_RUNNING_MOMENTUM)),
                        .q = ap_exact(free_attr(job, RO_BN_RUNNING_DIVISOR))};
    run_formula(bn_running_of, x, job, first, last, t, o);
}

#define KERNEL(name)                                                                               \
    static void name(const ro_free_job *job, int64_t first, int64_t last, ro_emitter *t) {         \
        by_contraction(name##_body, job, first, last, t);                                          \
    }

KERNEL(bn_sqdev)
RO_FREE_KERNEL(bn_sqdev, .range = bn_sqdev, .items = tiles)
KERNEL(bn_dgamma)
RO_FREE_KERNEL(bn_dgamma, .range = bn_dgamma, .items = tiles)
KERNEL(bn_merge_mean)
RO_FREE_KERNEL(bn_merge_mean, .range = bn_merge_mean, .items = tiles)
KERNEL(bn_merge_sqdev)
RO_FREE_KERNEL(bn_merge_sqdev, .range = bn_merge_sqdev, .items = tiles)
KERNEL(batchnorm)
RO_FREE_KERNEL(batchnorm, .range = batchnorm, .items = free_rows)
KERNEL(bn_dx)
RO_FREE_KERNEL(bn_dx, .range = bn_dx, .items = free_rows)
KERNEL(bn_running)
RO_FREE_KERNEL(bn_running, .range = bn_running)
