/* Exact values of free operators' formulas over the reals (SPEC.md sections 3 to 13), by slow sums
 * in long double, whose errors are about 2^-10 of binary64's. */
#ifndef TESTS_FREE_EXACT_H
#define TESTS_FREE_EXACT_H

#include <math.h>

#include "attention_keys.h"
#include "op_cases.h"
#include "repops/src/call.h"
#include "repops/src/conv.h"
#include "repops/src/rope.h"
#include "repops/operators.h"

typedef long double ld;

/* Returns element i of input t. */
static inline ld in_at(const op_case *c, int t, int64_t i) {
    return (ld)((const float *)c->data[t])[i];
}

static inline int32_t id_at(const op_case *c, int t, int64_t i) {
    return ((const int32_t *)c->data[t])[i];
}

static inline ld attr_at(const op_case *c, int i) {
    return (ld)ro_attr_to_f32(c->call.attr[i]);
}

/* ---- functions ---- */

/* Below -500 the exponential counts as 0: SPEC 14.3. */
static inline ld exact_exp(ld x) {
    return x < -500 ? 0 : expl(x);
}

static inline ld exact_logistic(ld x) {
    return x < -500 ? 0 : 1 / (1 + exact_exp(-x));
}

static inline ld exact_cdf(ld x) {
    const ld z = (ld)0x1.6a09e6p-1f * x;
    return z < 0 && z * z > 500 ? 0 : erfcl(-z) / 2;
}

static inline ld exact_gelu_argument(ld x) {
    return 2 * (ld)RO_GELU_C0 * x * (1 + (ld)RO_GELU_C1 * x * x);
}

/* Functions of infinities are their limits: SPEC 6. */
static inline ld exact_slope(int op, ld x) {
    const ld s = exact_logistic(x);
    const int has_limit =
        op == RO_OP_SILU_GRAD || op == RO_OP_GELU_ERF_GRAD || op == RO_OP_GELU_GRAD;
    if (has_limit && isinf(x))
        return x > 0;
    switch (op) {
    case RO_OP_TANH_GRAD: return 1 - x * x;
    case RO_OP_SIGMOID_GRAD: return x * (1 - x);
    case RO_OP_ERF_GRAD: return (ld)0x1.20dd76p0f * exact_exp(-x * x);
    case RO_OP_SILU_GRAD: return s * (1 + x * exact_logistic(-x));
    case RO_OP_GELU_ERF_GRAD: return x * exact_exp(-x * x / 2) * (ld)0x1.988454p-2f + exact_cdf(x);
    default: { /* gelu_grad */
        const ld v = exact_gelu_argument(x), p = exact_logistic(v), q = exact_logistic(-v);
        return p + 2 * x * p * q * (ld)RO_GELU_C0 * (1 + (ld)(3.0f * RO_GELU_C1) * x * x);
    }
    }
}

static inline ld exact_element(const op_case *c, int64_t e) {
    const int op = c->call.op;
    const ld x = in_at(c, 0, e);
    if ((op == RO_OP_SILU || op == RO_OP_GELU || op == RO_OP_GELU_ERF) && x == -(ld)INFINITY)
        return 0;
    switch (op) {
    case RO_OP_TANH_GRAD:
    case RO_OP_ERF_GRAD:
    case RO_OP_SIGMOID_GRAD:
    case RO_OP_SILU_GRAD:
    case RO_OP_GELU_ERF_GRAD:
    case RO_OP_GELU_GRAD: return in_at(c, 1, e) * exact_slope(op, x);
    case RO_OP_DIV_CONST: return x / attr_at(c, RO_DIV_CONST_DIVISOR);
    case RO_OP_SCALE: return x * attr_at(c, RO_SCALE_FACTOR);
    case RO_OP_EXP: return exact_exp(x);
    case RO_OP_LOG: return logl(x);
    case RO_OP_SQRT: return sqrtl(x);
    case RO_OP_RSQRT: return 1 / sqrtl(x);
    case RO_OP_TANH: return tanhl(x);
    case RO_OP_ERF: return erfl(x);
    case RO_OP_SIGMOID: return exact_logistic(x);
    case RO_OP_SILU: return x * exact_logistic(x);
    case RO_OP_GELU: return x * exact_logistic(exact_gelu_argument(x));
    case RO_OP_GELU_ERF: return x * exact_cdf(x);
    default: break;
    }
    const ld y = in_at(c, 1, e % ro_shape_numel(&c->in[1]));
    return op == RO_OP_ADD ? x + y : op == RO_OP_SUB ? x - y : op == RO_OP_MUL ? x * y : x / y;
}

/* ---- reductions ---- */

static inline ld exact_row_term(const op_case *c, int64_t row, int64_t i, int64_t e) {
    const ld x = in_at(c, 0, e);
    switch (c->call.op) {
    case RO_OP_REDUCE_SUM: return x;
    case RO_OP_REDUCE_DOT: return x * in_at(c, 1, e % ro_shape_numel(&c->in[1]));
    case RO_OP_REDUCE_SQDEV: return powl(x - in_at(c, 1, row), 2);
    case RO_OP_REDUCE_EXPSUM: return exact_exp(x - in_at(c, 1, row));
    case RO_OP_REDUCE_LN_GX:
        return x * in_at(c, 1, i) * ((in_at(c, 2, e) - in_at(c, 3, row)) * in_at(c, 4, row));
    default: return x * in_at(c, 1, i) * (in_at(c, 2, e) * in_at(c, 3, row));
    }
}

static inline ld exact_row(const op_case *c, int64_t item) {
    const int64_t cols = c->call.attr[RO_ROWS_COLS], size = c->call.attr[RO_ROWS_BLOCK],
                  blocks = ro_blocks_of(cols, size);
    const int64_t row = item / blocks, from = item % blocks * size;
    ld sum = 0;
    for (int64_t i = from; i < cols && i < from + size; i++)
        sum += exact_row_term(c, row, i, row * cols + i);
    return sum;
}

static inline ld exact_column_term(const op_case *c, int64_t group, int64_t row, int64_t col,
                                   int64_t e) {
    const int64_t cols = c->call.attr[RO_COLUMNS_COLS];
    switch (c->call.op) {
    case RO_OP_LN_DGAMMA:
        return in_at(c, 0, e) * ((in_at(c, 1, e) - in_at(c, 2, row)) * in_at(c, 3, row));
    case RO_OP_RMS_DGAMMA: return in_at(c, 0, e) * (in_at(c, 1, e) * in_at(c, 2, row));
    case RO_OP_BN_SQDEV: return powl(in_at(c, 0, e) - in_at(c, 1, group * cols + col), 2);
    case RO_OP_BN_DGAMMA:
        return in_at(c, 0, e) * ((in_at(c, 1, e) - in_at(c, 2, col)) * in_at(c, 3, col));
    default: return in_at(c, 0, e); /* sum_rows, bn_mean */
    }
}

/* Sums groups of 64 rows of the view [outer, n, cols]. */
static inline ld exact_column(const op_case *c, int64_t out) {
    ro_axis v = {1, 0, c->call.attr[RO_COLUMNS_COLS]};
    if (c->call.op == RO_OP_SUM_AXIS)
        v = ro_axis_of(&c->in[0], c->call.attr[RO_ALONG_AXIS]);
    else
        v.n = ro_shape_numel(&c->in[0]) / v.inner;
    const int64_t groups = ro_blocks_of(v.n, 64), col = out % v.inner, line = out / v.inner;
    const int64_t group = line % groups, o = line / groups;
    ld sum = 0;
    int64_t row = group * 64, n = 0;
    for (; row < v.n && n < 64; row++, n++)
        sum += exact_column_term(c, group, row, col, (o * v.n + row) * v.inner + col);
    return c->call.op == RO_OP_BN_MEAN ? sum / (ld)n : sum;
}

static inline ld exact_merge(const op_case *c, int64_t out) {
    const int64_t cols = c->call.attr[RO_MERGE_COLS], per = c->call.attr[RO_MERGE_PER],
                  n = ro_shape_numel(&c->in[0]);
    const int64_t col = out % cols, first = out / cols * 64;
    ld all = 0, mean = 0, sum = 0;
    int64_t last = first;
    for (; last < first + 64 && last < n / cols; last++) {
        const int64_t left = c->call.attr[RO_MERGE_ROWS] - last * per,
                      rows = left < per ? left : per;
        all += (ld)rows;
        mean += (ld)rows * in_at(c, 0, last * cols + col);
    }
    mean = last - first == 1 ? in_at(c, 0, first * cols + col) : mean / all;
    if (c->call.op == RO_OP_BN_MERGE_MEAN)
        return mean;
    if (last - first == 1)
        return in_at(c, 1, first * cols + col);
    for (int64_t i = first; i < last; i++) {
        const int64_t left = c->call.attr[RO_MERGE_ROWS] - i * per, rows = left < per ? left : per;
        sum += in_at(c, 1, i * cols + col) + (ld)rows * powl(in_at(c, 0, i * cols + col) - mean, 2);
    }
    return sum;
}

/* For embedding_grad and gather_grad. */
static inline ld exact_scatter(const op_case *c, int64_t out) {
    const int64_t axis = c->call.op == RO_OP_GATHER_GRAD ? c->call.attr[RO_GATHER_GRAD_AXIS] : 0;
    const ro_axis v = ro_axis_of(&c->call.output, axis);
    const int64_t i = out % v.inner, id = out / v.inner % v.n, o = out / v.inner / v.n;
    const int64_t positions = ro_shape_numel(&c->in[1]);
    ld sum = 0;
    for (int64_t p = 0; p < positions; p++)
        if (id_at(c, 1, p) == id)
            sum += in_at(c, 0, (o * positions + p) * v.inner + i);
    return sum;
}

static inline ld exact_window(const op_case *c, const ro_pooling *v, int64_t n, int64_t h,
                              int64_t w, int64_t channel) {
    ld sum = 0;
    for (int64_t t = 0; t < v->kernel[0] * v->kernel[1]; t++) {
        const int64_t y = h * v->stride[0] - v->pad[0] + t / v->kernel[1];
        const int64_t x = w * v->stride[1] - v->pad[1] + t % v->kernel[1];
        if (y >= 0 && y < v->in[0] && x >= 0 && x < v->in[1])
            sum += in_at(c, 0, ((n * v->in[0] + y) * v->in[1] + x) * v->channels + channel);
    }
    return sum / (ld)ro_pool_count(v, h, w);
}

static inline ld exact_pool_grad(const op_case *c, const ro_pooling *v, int64_t n, int64_t h,
                                 int64_t w, int64_t channel) {
    ld sum = 0;
    for (int64_t oh = 0; oh < v->out[0]; oh++)
        for (int64_t ow = 0; ow < v->out[1]; ow++) {
            const int64_t i = h + v->pad[0] - oh * v->stride[0];
            const int64_t j = w + v->pad[1] - ow * v->stride[1];
            const int64_t e = ((n * v->out[0] + oh) * v->out[1] + ow) * v->channels + channel;
            if (i < 0 || i >= v->kernel[0] || j < 0 || j >= v->kernel[1])
                continue;
            if (c->call.op == RO_OP_AVG_POOL2D_GRAD)
                sum += in_at(c, 0, e) / (ld)ro_pool_count(v, oh, ow);
            else if (id_at(c, 1, e) == i * v->kernel[1] + j)
                sum += in_at(c, 0, e);
        }
    return sum;
}

static inline ld exact_pool(const op_case *c, int64_t out) {
    const ro_pooling v = ro_pooling_of(&c->call);
    const int64_t *d = c->call.output.dim, pixel = out / v.channels, channel = out % v.channels;
    const int64_t n = pixel / d[2] / d[1], h = pixel / d[2] % d[1], w = pixel % d[2];
    return c->call.op == RO_OP_AVG_POOL2D ? exact_window(c, &v, n, h, w, channel)
                                          : exact_pool_grad(c, &v, n, h, w, channel);
}

/* ---- rows ---- */

static inline ld exact_norm(const op_case *c, int64_t e) {
    const int64_t cols = c->in[0].dim[c->in[0].ndim - 1], r = e / cols, i = e % cols;
    const ld x = in_at(c, 0, e), n = (ld)cols;
    switch (c->call.op) {
    case RO_OP_LN_RSTD:
        return isinf(x)
                   ? (ld)NAN
                   : 1 / sqrtl(x / (ld)c->call.attr[RO_LN_RSTD_N] + attr_at(c, RO_LN_RSTD_EPS));
    case RO_OP_LAYERNORM:
        return (x - in_at(c, 1, r)) * in_at(c, 2, r) * in_at(c, 3, i) + in_at(c, 4, i);
    case RO_OP_LN_DX: {
        const ld rstd = in_at(c, 4, r), xh = (in_at(c, 2, e) - in_at(c, 3, r)) * rstd;
        return rstd * (-xh * (in_at(c, 6, r) / n) + (x * in_at(c, 1, i) - in_at(c, 5, r) / n));
    }
    case RO_OP_RMSNORM: return x * in_at(c, 1, r) * in_at(c, 2, i);
    default: {
        const ld rstd = in_at(c, 3, r), xh = in_at(c, 2, e) * rstd;
        return rstd * (-xh * (in_at(c, 4, r) / n) + x * in_at(c, 1, i));
    }
    }
}

static inline ld exact_softmax(const op_case *c, int64_t e) {
    const int64_t cols = c->in[0].dim[c->in[0].ndim - 1], r = e / cols;
    const ld x = in_at(c, 0, e);
    switch (c->call.op) {
    case RO_OP_SOFTMAX: return exact_exp(x - in_at(c, 1, r)) * (1 / in_at(c, 2, r));
    case RO_OP_SOFTMAX_GRAD: return x * (in_at(c, 1, e) - in_at(c, 2, r));
    case RO_OP_LOG_SOFTMAX: return x - in_at(c, 1, r) - logl(in_at(c, 2, r));
    default: return -exact_exp(x) * in_at(c, 2, r) + in_at(c, 1, e);
    }
}

static inline ld exact_xent(const op_case *c, int64_t e) {
    const int grad = c->call.op == RO_OP_XENT_GRAD || c->call.op == RO_OP_XENT_IGNORE_GRAD;
    const int ignores = c->call.op == RO_OP_XENT_IGNORE || c->call.op == RO_OP_XENT_IGNORE_GRAD;
    const int64_t cols = c->in[0].dim[c->in[0].ndim - 1], r = grad ? e / cols : e;
    const int64_t id = id_at(c, 3, r);
    if (ignores && id == c->call.attr[RO_LABELS_IGNORE])
        return 0;
    const ld m = in_at(c, 1, r), l = in_at(c, 2, r);
    if (grad)
        return (exact_exp(in_at(c, 0, e) - m) * (1 / l) - (id == e % cols)) * in_at(c, 4, r);
    return id < 0 || id >= cols ? (ld)NAN : logl(l) - (in_at(c, 0, r * cols + id) - m);
}

/* ---- attention ---- */

static inline ld exact_blocks(const op_case *c, int64_t row, int64_t d, int64_t width) {
    const int64_t blocks = c->in[0].dim[c->in[0].ndim - 1];
    ld greatest = -INFINITY, sum = 0;
    int64_t admitted = 0;
    for (int64_t b = 0; b < blocks; b++) {
        const ld m = in_at(c, 0, row * blocks + b);
        greatest = m != m || m > greatest ? m : greatest;
        admitted += m != -(ld)INFINITY;
    }
    for (int64_t b = 0; b < blocks; b++) {
        const ld m = in_at(c, 0, row * blocks + b);
        if (m != -(ld)INFINITY)
            sum += (admitted == 1 ? 1 : exact_exp(m - greatest)) *
                   in_at(c, 1, (row * blocks + b) * width + d);
    }
    return admitted && c->call.op == RO_OP_ATTN_OUT ? sum * (1 / in_at(c, 2, row)) : sum;
}

static inline ld exact_attention(const op_case *c, int64_t e) {
    const int op = c->call.op;
    const int64_t keys = c->in[0].dim[c->in[0].ndim - 1];
    const int64_t row = keys ? e / keys : 0, j = keys ? e % keys : 0;
    if (op == RO_OP_ATTN_L)
        return exact_blocks(c, e, 0, 1);
    if (op == RO_OP_ATTN_OUT) {
        const int64_t width = c->in[1].dim[c->in[1].ndim - 1];
        return exact_blocks(c, e / width, e % width, width);
    }
    if (op == RO_OP_REPEAT_HEADS_GRAD) {
        const int64_t *d = c->call.output.dim, inner = d[2] * d[3],
                      times = c->call.attr[RO_REPEAT_HEADS_GRAD_TIMES];
        ld sum = 0;
        for (int64_t i = 0; i < times; i++)
            sum += in_at(c, 0, (e / inner * times + i) * inner + e % inner);
        return sum;
    }
    const int exp_only = op == RO_OP_ATTN_EXP || op == RO_OP_ATTN_EXP_AT;
    if (!query_admits(c, row, j))
        return 0;
    const ld s = in_at(c, 0, e);
    if (op == RO_OP_ATTN_DSCORE)
        return s * (in_at(c, 1, e) - in_at(c, 2, row));
    const ld m = in_at(c, 1, exp_only ? row * ((keys + 127) / 128) + j / 128 : row);
    if (m == -(ld)INFINITY)
        return 0;
    return exp_only ? exact_exp(s - m) : exact_exp(s - m) * (1 / in_at(c, 2, row));
}

/* ---- updates ---- */

static inline ld exact_update(const op_case *c, int64_t e) {
    const ld a = attr_at(c, 0), d = attr_at(c, 1), x = in_at(c, 0, e), y = in_at(c, 1, e);
    switch (c->call.op) {
    case RO_OP_ADAMW_M: return a * x + (1 - a) * (y * in_at(c, 2, 0));
    case RO_OP_ADAMW_V: return a * x + (1 - a) * powl(y * in_at(c, 2, 0), 2);
    case RO_OP_ADAMW_W: {
        const ld root = sqrtl(in_at(c, 2, e) / in_at(c, 4, 0));
        const ld u = isinf(root) ? (ld)NAN : y / in_at(c, 3, 0) / (root + a);
        return -in_at(c, 5, 0) * (d * x + u) + x;
    }
    case RO_OP_SGD_M: return a * x + (d * in_at(c, 2, e) + y * in_at(c, 3, 0));
    case RO_OP_SGD_W: return -in_at(c, 2, 0) * y + x;
    case RO_OP_SGD_NESTEROV:
        return -in_at(c, 4, 0) * (a * y + (d * x + in_at(c, 2, e) * in_at(c, 3, 0))) + x;
    default: return a * (y / d - x) + x; /* bn_running */
    }
}

static inline ld exact_batchnorm(const op_case *c, int64_t e) {
    const int64_t cols = c->in[0].dim[c->in[0].ndim - 1], i = e % cols;
    const ld x = in_at(c, 0, e), n = (ld)(ro_shape_numel(&c->in[0]) / cols);
    if (c->call.op == RO_OP_BATCHNORM)
        return (x - in_at(c, 1, i)) * in_at(c, 2, i) * in_at(c, 3, i) + in_at(c, 4, i);
    const ld rstd = in_at(c, 3, i), xh = (in_at(c, 1, e) - in_at(c, 2, i)) * rstd;
    return in_at(c, 4, i) * rstd * (-xh * (in_at(c, 6, i) / n) + (x - in_at(c, 5, i) / n));
}

static inline ld exact_rope(const op_case *c, int64_t e) {
    const int64_t width = c->in[0].dim[c->in[0].ndim - 1], half = width / 2, j = e % width;
    const int64_t pairs = c->call.attr[RO_ROPE_PAIRS];
    const int64_t positions = c->in[0].dim[c->in[0].ndim - 2], row = e / width;
    const int64_t apart = ro_shape_numel(&c->in[0]) / width / c->in[0].dim[0];
    const int64_t line = ro_shape_numel(&c->in[1]) == positions ? 0 : row / apart;
    const int32_t p = ((const int32_t *)c->data[1])[line * positions + row % positions];
    const int64_t i = pairs ? j / 2 : j % half, second = pairs ? j % 2 : j / half;
    const int64_t other = pairs ? e ^ 1 : second ? e - half : e + half;
    const uint32_t *word = (const uint32_t *)c->data[2] + 2 * i;
    const uint32_t k = ro_rope_turn(ro_rope_words(word[0], word[1]), p);
    const ld s = (c->call.attr[RO_ROPE_INVERSE] ? -1 : 1) * (ld)ro_sin_turn(k);
    return in_at(c, 0, e) * (ld)ro_cos_turn(k) + (second ? s : -s) * in_at(c, 0, other);
}

static inline ld exact_value(const op_case *c, int64_t e) {
    switch (c->call.op) {
    case RO_OP_REDUCE_SUM:
    case RO_OP_REDUCE_DOT:
    case RO_OP_REDUCE_SQDEV:
    case RO_OP_REDUCE_EXPSUM:
    case RO_OP_REDUCE_LN_GX:
    case RO_OP_REDUCE_RMS_GX: return exact_row(c, e);
    case RO_OP_SUM_ROWS:
    case RO_OP_SUM_AXIS:
    case RO_OP_LN_DGAMMA:
    case RO_OP_RMS_DGAMMA:
    case RO_OP_BN_MEAN:
    case RO_OP_BN_SQDEV:
    case RO_OP_BN_DGAMMA: return exact_column(c, e);
    case RO_OP_BN_MERGE_MEAN:
    case RO_OP_BN_MERGE_SQDEV: return exact_merge(c, e);
    case RO_OP_EMBEDDING_GRAD:
    case RO_OP_GATHER_GRAD: return exact_scatter(c, e);
    case RO_OP_MAX_POOL2D_GRAD:
    case RO_OP_AVG_POOL2D:
    case RO_OP_AVG_POOL2D_GRAD: return exact_pool(c, e);
    case RO_OP_LN_RSTD:
    case RO_OP_LAYERNORM:
    case RO_OP_LN_DX:
    case RO_OP_RMSNORM:
    case RO_OP_RMS_DX: return exact_norm(c, e);
    case RO_OP_SOFTMAX:
    case RO_OP_SOFTMAX_GRAD:
    case RO_OP_LOG_SOFTMAX:
    case RO_OP_LOG_SOFTMAX_GRAD: return exact_softmax(c, e);
    case RO_OP_XENT:
    case RO_OP_XENT_GRAD:
    case RO_OP_XENT_IGNORE:
    case RO_OP_XENT_IGNORE_GRAD: return exact_xent(c, e);
    case RO_OP_ATTN_EXP:
    case RO_OP_ATTN_EXP_AT:
    case RO_OP_ATTN_L:
    case RO_OP_ATTN_OUT:
    case RO_OP_ATTN_PROB:
    case RO_OP_ATTN_DSCORE:
    case RO_OP_REPEAT_HEADS_GRAD: return exact_attention(c, e);
    case RO_OP_ADAMW_M:
    case RO_OP_ADAMW_V:
    case RO_OP_ADAMW_W:
    case RO_OP_SGD_M:
    case RO_OP_SGD_W:
    case RO_OP_SGD_NESTEROV:
    case RO_OP_BN_RUNNING: return exact_update(c, e);
    case RO_OP_BATCHNORM:
    case RO_OP_BN_DX: return exact_batchnorm(c, e);
    case RO_OP_ROPE: return exact_rope(c, e);
    default: return exact_element(c, e);
    }
}

#endif
