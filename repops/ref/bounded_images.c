/* Pooling and batch norm with bounds. SPEC.md sections 12.2 and 12.3. */
#include "repops/free/norms.h"
#include "repops/ref/bounded.h"
#include "repops/op_image.h"

/* ---- pooling ---- */

static approx avg_pool2d(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_pooling v = ro_pooling_of(call);
    bounded_sum s = {0, 0, 0};
    for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
        const int64_t x = ro_ref_pool_tap(&v, e, t);
        if (x >= 0)
            add_term(&s, (real)loadf(in, 0, x));
    }
    return ap_div_exact(sum_of(&s, 1), (real)ro_ref_pool_divisor(&v, e));
}
RO_BOUNDED(avg_pool2d, .element = avg_pool2d)

/* Returns what tap t of window w adds: 0 if the maximum came from another tap. */
static real share_of(const ro_call *call, int64_t w, int64_t t, int64_t divisor,
                     const ro_access *in) {
    if (call->op == RO_OP_MAX_POOL2D_GRAD)
        return (int32_t)load(in, 1, w) == t ? (real)loadf(in, 0, w) : 0;
    return (real)loadf(in, 0, w) / (real)divisor;
}

static approx pool2d_grad(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_pooling v = ro_pooling_of(call);
    bounded_sum s = {0, 0, 0};
    for (int64_t t = 0; t < v.kernel[0] * v.kernel[1]; t++) {
        int64_t divisor;
        const int64_t w = ro_ref_pool_window(&v, e, t, &divisor);
        if (w >= 0)
            add_term(&s, share_of(call, w, t, divisor, in));
    }
    return ap_div_exact(sum_of(&s, 1), 1);
}
RO_BOUNDED(max_pool2d_grad, .element = pool2d_grad)
RO_BOUNDED(avg_pool2d_grad, .element = pool2d_grad)

/* ---- batch norm: sums ---- */

static approx bn_mean(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = call->attr[RO_BN_MEAN_COLS];
    bounded_sum s = {0, 0, 0};
    int64_t from, to;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++)
        add_term(&s, (real)loadf(in, 0, r * cols + e % cols));
    return ap_div_exact(sum_of(&s, 0), (real)(to - from));
}
RO_BOUNDED(bn_mean, .element = bn_mean)

static approx bn_sqdev(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = call->attr[RO_BN_SQDEV_COLS];
    const real mean = (real)loadf(in, 1, e);
    bounded_sum s = {0, 0, 0};
    int64_t from, to;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++) {
        const real d = (real)loadf(in, 0, r * cols + e % cols) - mean;
        add_term(&s, d * d);
    }
    return sum_of(&s, 3);
}
RO_BOUNDED(bn_sqdev, .element = bn_sqdev)

static approx bn_dgamma(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = call->attr[RO_BN_DGAMMA_COLS], c = e % cols;
    const real mean = (real)loadf(in, 2, c), rstd = (real)loadf(in, 3, c);
    bounded_sum s = {0, 0, 0};
    int64_t from, to;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++) {
        const real xh = ((real)loadf(in, 1, r * cols + c) - mean) * rstd;
        add_term(&s, (real)loadf(in, 0, r * cols + c) * xh);
    }
    return sum_of(&s, 3);
}
RO_BOUNDED(bn_dgamma, .element = bn_dgamma)

/* ---- batch norm: merging, as in repops/free/batchnorm.c ---- */

typedef struct {
    int64_t cols, from, to; /* range of entries in the group */
    real m[RO_COLUMN_GROUP], weight[RO_COLUMN_GROUP], all;
    approx mean;
} group;

static void load_group(const ro_call *call, int64_t e, const ro_access *in, group *g) {
    bounded_sum s = {0, 0, 0};
    g->cols = call->attr[RO_MERGE_COLS];
    ro_ref_group(e, g->cols, numel(call, 0) / g->cols, &g->from, &g->to);
    int64_t rows = 0;
    for (int64_t i = 0; i < g->to - g->from; i++) {
        const int64_t weight = ro_ref_entry_rows(call, g->from + i);
        g->m[i] = (real)loadf(in, 0, (g->from + i) * g->cols + e % g->cols);
        g->weight[i] = (real)weight;
        rows += weight;
        add_term(&s, g->weight[i] * g->m[i]);
    }
    g->all = (real)rows;
    g->mean = g->to - g->from == 1 ? ap_exact(g->m[0]) : ap_div_exact(sum_of(&s, 1), g->all);
}

static approx bn_merge_mean(const ro_call *call, int64_t e, const ro_access *in) {
    group g;
    load_group(call, e, in, &g);
    return g.mean;
}
RO_BOUNDED(bn_merge_mean, .element = bn_merge_mean)

static approx bn_merge_sqdev(const ro_call *call, int64_t e, const ro_access *in) {
    bounded_sum s = {0, 0, 0};
    group g;
    load_group(call, e, in, &g);
    for (int64_t i = 0; i < g.to - g.from; i++) {
        const real d = g.to - g.from == 1 ? 0 : g.m[i] - g.mean.v;
        add_term(&s, (real)loadf(in, 1, (g.from + i) * g.cols + e % g.cols));
        add_term(&s, g.weight[i] * d * d);
    }
    approx y = sum_of(&s, 4);
    y.e += g.all * ap_error(g.mean) * ap_error(g.mean);
    return y;
}
RO_BOUNDED(bn_merge_sqdev, .element = bn_merge_sqdev)

/* ---- batch norm: elements ---- */

static approx batchnorm(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t c = e % last_dim(&call->input[0]);
    const float x[5] = {loadf(in, 0, e), loadf(in, 1, c), loadf(in, 2, c), loadf(in, 3, c),
                        loadf(in, 4, c)};
    return batchnorm_of((operands){.a = x, .b = x + 1, .c = x + 2, .d = x + 3, .e = x + 4}, 0,
                        ro_plain);
}
RO_BOUNDED(batchnorm, .element = batchnorm)

static approx bn_dx(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t c = e % last_dim(&call->input[0]);
    const float x[7] = {loadf(in, 0, e), loadf(in, 1, e), loadf(in, 2, c), loadf(in, 3, c),
                        loadf(in, 4, c), loadf(in, 5, c), loadf(in, 6, c)};
    const operands o = {.a = x,
                        .b = x + 1,
                        .c = x + 2,
                        .d = x + 3,
                        .e = x + 4,
                        .f = x + 5,
                        .g = x + 6,
                        .p = ap_relative(1 / (real)ro_rows_of(&call->input[0]), 1)};
    return bn_dx_of(o, 0, ro_plain);
}
RO_BOUNDED(bn_dx, .element = bn_dx)
