/* Sums along rows, columns and axes, and over positions, with bounds. SPEC.md sections 3.2 to 3.4,
 * 5 and 8. */
#include "repops/free/functions.h"
#include "repops/ref/bounded.h"
#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"

/* ---- rows ---- */

static double roundings_of(int op) {
    switch (op) {
    case RO_OP_REDUCE_SUM:
    case RO_OP_REDUCE_DOT: return 0;
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_LN_GX: return 2;
    case RO_OP_REDUCE_RMS_GX: return 1;
    case RO_OP_REDUCE_EXPSUM: return RO_EXP_ROUNDINGS;
    default: return (double)no_such_operator();
    }
}

/* Values that the terms of a row share. */
typedef struct {
    real mean, rstd;
} row_values;

static row_values values_of(const ro_call *call, int64_t r, const ro_access *in) {
    switch (call->op) {
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM: return (row_values){.mean = (real)loadf(in, 1, r)};
    case RO_OP_REDUCE_LN_GX: return (row_values){(real)loadf(in, 3, r), (real)loadf(in, 4, r)};
    case RO_OP_REDUCE_RMS_GX: return (row_values){.rstd = (real)loadf(in, 3, r)};
    default: return (row_values){0, 0}; /* nothing is shared */
    }
}

/* Returns dy * gamma, which is exact. x: index in the input, i: index in the row. */
static real gain(const ro_access *in, int64_t x, int64_t i) {
    return (real)loadf(in, 0, x) * (real)loadf(in, 1, i);
}

static real row_term(const ro_call *call, const ro_access *in, row_values row, int64_t x,
                     int64_t i) {
    real d;
    switch (call->op) {
    case RO_OP_REDUCE_SUM: return (real)loadf(in, 0, x);
    case RO_OP_REDUCE_DOT: return (real)loadf(in, 0, x) * (real)loadf(in, 1, x % numel(call, 1));
    case RO_OP_REDUCE_SQDEV: d = (real)loadf(in, 0, x) - row.mean; return d * d;
    case RO_OP_REDUCE_LN_GX:
        d = ((real)loadf(in, 2, x) - row.mean) * row.rstd;
        return gain(in, x, i) * d;
    case RO_OP_REDUCE_RMS_GX: d = (real)loadf(in, 2, x) * row.rstd; return gain(in, x, i) * d;
    default: return (real)no_such_operator();
    }
}

static approx reduce(const ro_call *call, int64_t e, const ro_access *in) {
    bounded_sum s = {0, 0, 0};
    int64_t r, from, to;
    ro_ref_block(call, e, &r, &from, &to);
    const row_values row = values_of(call, r, in);
    const real over = 1 / (real)(to - from + 1);
    for (int64_t i = from; i < to; i++) {
        const int64_t x = r * call->attr[RO_ROWS_COLS] + i;
        if (call->op == RO_OP_REDUCE_EXPSUM) {
            const real d =
                (real)loadf(in, 0, x) - row.mean; /* rounding it is |d| roundings of the term */
            add_excess(&s, free_exp(d, ro_plain), ap_abs(d) * over);
        } else {
            add_term(&s, row_term(call, in, row, x, i));
        }
    }
    return sum_of(&s, roundings_of(call->op));
}
RO_BOUNDED(reduce_sum, .element = reduce)
RO_BOUNDED(reduce_dot, .element = reduce)
RO_BOUNDED(reduce_sqdev, .element = reduce)
RO_BOUNDED(reduce_expsum, .element = reduce)
RO_BOUNDED(reduce_ln_gx, .element = reduce)
RO_BOUNDED(reduce_rms_gx, .element = reduce)

/* ---- columns ---- */

static approx columns(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t cols = call->attr[RO_COLUMNS_COLS], c = e % cols;
    bounded_sum s = {0, 0, 0};
    int64_t from, to;
    ro_ref_group(e, cols, numel(call, 0) / cols, &from, &to);
    for (int64_t r = from; r < to; r++) {
        const real x = (real)loadf(in, 0, r * cols + c);
        if (call->op == RO_OP_SUM_ROWS) {
            add_term(&s, x);
            continue;
        }
        const real y = (real)loadf(in, 1, r * cols + c), v = (real)loadf(in, 2, r);
        const real xh = call->op == RO_OP_RMS_DGAMMA ? y * v : (y - v) * (real)loadf(in, 3, r);
        add_term(&s, x * xh);
    }
    return sum_of(&s, call->op == RO_OP_LN_DGAMMA ? 3 : call->op == RO_OP_RMS_DGAMMA ? 2 : 0);
}
RO_BOUNDED(sum_rows, .element = columns)
RO_BOUNDED(ln_dgamma, .element = columns)
RO_BOUNDED(rms_dgamma, .element = columns)

static approx sum_axis(const ro_call *call, int64_t e, const ro_access *in) {
    const ro_ref_line l = ro_ref_line_of(call, e, call->output.dim[call->attr[RO_SUM_AXIS_AXIS]]);
    const int64_t from = l.at * RO_COLUMN_GROUP, end = from + RO_COLUMN_GROUP;
    bounded_sum s = {0, 0, 0};
    for (int64_t j = from; j < l.x.n && j < end; j++)
        add_term(&s, (real)loadf(in, 0, l.start + j * l.x.inner));
    return sum_of(&s, 0);
}
RO_BOUNDED(sum_axis, .element = sum_axis)

/* ---- gradients of repeated and of gathered elements ---- */

static approx repeat_heads_grad(const ro_call *call, int64_t e, const ro_access *in) {
    const int64_t size = call->output.dim[2] * call->output.dim[3],
                  times = call->attr[RO_REPEAT_HEADS_GRAD_TIMES];
    bounded_sum s = {0, 0, 0};
    for (int64_t i = 0; i < times; i++)
        add_term(&s, (real)loadf(in, 0, (e / size * times + i) * size + e % size));
    return sum_of(&s, 0);
}
RO_BOUNDED(repeat_heads_grad, .element = repeat_heads_grad)

/* For embedding and gather: adds the positions that carry the id, in ascending order. */
static void scatter_step(const ro_call *call, int64_t e, int64_t step, bounded_sum *s,
                         const ro_access *in) {
    const ro_axis out = ro_axis_of(
        &call->output, call->op == RO_OP_GATHER_GRAD ? call->attr[RO_GATHER_GRAD_AXIS] : 0);
    const int64_t c = e % out.inner, v = e / out.inner % out.n, o = e / out.inner / out.n;
    const int64_t count = numel(call, 1);
    int64_t from, to;
    ro_ref_step_range(step, count, &from, &to);
    for (int64_t p = from; p < to; p++)
        if ((int32_t)load(in, 1, p) == v)
            add_term(s, (real)loadf(in, 0, (o * count + p) * out.inner + c));
}

approx ro_bounded_plain_sum(const ro_call *call, const bounded_sum *s) {
    (void)call;
    return sum_of(s, 0);
}
RO_BOUNDED(embedding_grad, .step = scatter_step, .finish = ro_bounded_plain_sum)
RO_BOUNDED(gather_grad, .step = scatter_step, .finish = ro_bounded_plain_sum)
