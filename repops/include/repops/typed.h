/* A function for each operator, on tensors that carry their shapes. SPEC.md defines what each
 * computes, to the bit. `make operators` writes this file from repops/src/operators.def.
 *
 * ro_op_NAME runs ro_infer and ro_run for RO_OP_NAME: the same checks, bytes and errors, on CPUs
 * and on devices. Inputs are f32 where no type is given; "..." means `count` tensors that follow
 * each other in memory.
 *
 * attrs: a member that is 0 means the default in its comment, or 0 if there is none; a "required"
 * member is used as it is, even 0. NULL means a struct of zeros if no member is required, and is
 * RO_ERR_ARG otherwise.
 *
 * out: if out->shape.ndim is 0, the call fills in the shape, unless the shape must be declared,
 * which makes it part of the call. A shape that is set must be the right one. If out->data is NULL,
 * ro_tensor_alloc allocates the memory, and the caller frees it by ro_tensor_free. So the first
 * call makes a tensor from {0}, and later calls use it again. out may be an input where
 * ro_op_in_place says so. A call that fails leaves out unchanged.
 *
 * Errors are those of ro_infer and ro_run, with a sentence in ro_ctx_error. */
#ifndef REPOPS_TYPED_H
#define REPOPS_TYPED_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates memory of the context (ro_alloc) for t's shape, all bytes 0. t->data must be NULL. */
RO_API RO_MUST_USE ro_status ro_tensor_alloc(ro_ctx *ctx, ro_tensor *t);
/* Frees memory of ro_tensor_alloc, and sets all members of t to 0. Accepts NULL, and a t without
 * memory. */
RO_API void ro_tensor_free(ro_ctx *ctx, ro_tensor *t);

/* clang-format off */

/* no input: one value (out->shape is declared) */
typedef struct {
    float value;
} ro_op_fill_attrs;
RO_API RO_MUST_USE ro_status ro_op_fill(ro_ctx *ctx, const ro_op_fill_attrs *attrs,
        ro_tensor *out);

/* no input: normally distributed numbers (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    float mean;
    float std; /* required */
} ro_op_normal_attrs;
RO_API RO_MUST_USE ro_status ro_op_normal(ro_ctx *ctx, const ro_op_normal_attrs *attrs,
        ro_tensor *out);

/* data u8 or u16 or i32..., step i32: windows of tokens (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    int64_t batch; /* required */
    int64_t first;
    int64_t shift;
} ro_op_read_batch_attrs;
RO_API RO_MUST_USE ro_status ro_op_read_batch(ro_ctx *ctx, const ro_tensor *data, int32_t count,
        const ro_tensor *step, const ro_op_read_batch_attrs *attrs, ro_tensor *out);

/* table f32 or bf16 or f16, ids i32: rows of the table */
RO_API RO_MUST_USE ro_status ro_op_embedding(ro_ctx *ctx, const ro_tensor *table,
        const ro_tensor *ids, ro_tensor *out);

/* dy, ids i32: gradient of the table (out->shape is declared) */
RO_API RO_MUST_USE ro_status ro_op_embedding_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *ids, ro_tensor *out);

/* x any: one part of each row, head by head */
typedef struct {
    int64_t parts; /* default: 1 */
    int64_t part;
    int64_t heads; /* required */
} ro_op_split_heads_attrs;
RO_API RO_MUST_USE ro_status ro_op_split_heads(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_split_heads_attrs *attrs, ro_tensor *out);

/* x any...: rows of all heads, the inverse of split_heads */
RO_API RO_MUST_USE ro_status ro_op_join_heads(ro_ctx *ctx, const ro_tensor *x, int32_t count,
        ro_tensor *out);

/* x...: all elements in one row */
RO_API RO_MUST_USE ro_status ro_op_concat(ro_ctx *ctx, const ro_tensor *x, int32_t count,
        ro_tensor *out);

/* no input: 0, 1, 2, ... (out->shape is declared) */
RO_API RO_MUST_USE ro_status ro_op_iota(ro_ctx *ctx, ro_tensor *out);

/* x any: dimensions in another order */
typedef struct {
    int64_t d0; /* required */
    int64_t d1; /* required */
    int64_t d2;
    int64_t d3;
    int64_t d4;
    int64_t d5;
    int64_t d6;
    int64_t d7;
} ro_op_transpose_attrs;
RO_API RO_MUST_USE ro_status ro_op_transpose(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_transpose_attrs *attrs, ro_tensor *out);

/* x any: every step-th along an axis */
typedef struct {
    int64_t axis;
    int64_t start;
    int64_t length; /* required */
    int64_t step; /* default: 1 */
} ro_op_slice_attrs;
RO_API RO_MUST_USE ro_status ro_op_slice(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_slice_attrs *attrs, ro_tensor *out);

/* x any: x with a value before, after and between its elements */
typedef struct {
    int64_t axis;
    int64_t before;
    int64_t after;
    int64_t step; /* default: 1 */
    float value;
} ro_op_pad_attrs;
RO_API RO_MUST_USE ro_status ro_op_pad(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_pad_attrs *attrs, ro_tensor *out);

/* x any, ids i32: x at the places `ids` along an axis */
typedef struct {
    int64_t axis;
} ro_op_gather_attrs;
RO_API RO_MUST_USE ro_status ro_op_gather(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *ids,
        const ro_op_gather_attrs *attrs, ro_tensor *out);

/* x any...: inputs joined along an axis */
typedef struct {
    int64_t axis;
} ro_op_concat_axis_attrs;
RO_API RO_MUST_USE ro_status ro_op_concat_axis(ro_ctx *ctx, const ro_tensor *x, int32_t count,
        const ro_op_concat_axis_attrs *attrs, ro_tensor *out);

/* x any: x as another type */
typedef struct {
    int64_t dtype; /* required */
} ro_op_cast_attrs;
RO_API RO_MUST_USE ro_status ro_op_cast(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_cast_attrs *attrs, ro_tensor *out);

/* x, step i32: x as bf16, rounded up or down at random */
typedef struct {
    int64_t seed;
    int64_t stream;
} ro_op_cast_stochastic_attrs;
RO_API RO_MUST_USE ro_status ro_op_cast_stochastic(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *step, const ro_op_cast_stochastic_attrs *attrs, ro_tensor *out);

/* a, b: a + b; b repeats */
RO_API RO_MUST_USE ro_status ro_op_add(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* x: x / divisor */
typedef struct {
    float divisor; /* required */
} ro_op_div_const_attrs;
RO_API RO_MUST_USE ro_status ro_op_div_const(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_div_const_attrs *attrs, ro_tensor *out);

/* x: GELU by tanh */
RO_API RO_MUST_USE ro_status ro_op_gelu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x, dy */
RO_API RO_MUST_USE ro_status ro_op_gelu_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, ro_tensor *out);

/* x: max(x, 0) */
RO_API RO_MUST_USE ro_status ro_op_relu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x, dy */
RO_API RO_MUST_USE ro_status ro_op_relu_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, ro_tensor *out);

/* x: x, but x * slope below 0 */
typedef struct {
    float slope; /* required */
} ro_op_leaky_relu_attrs;
RO_API RO_MUST_USE ro_status ro_op_leaky_relu(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_leaky_relu_attrs *attrs, ro_tensor *out);

/* x, dy */
typedef struct {
    float slope; /* required */
} ro_op_leaky_relu_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_leaky_relu_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, const ro_op_leaky_relu_grad_attrs *attrs, ro_tensor *out);

/* x: x moved by lambd towards 0 */
typedef struct {
    float lambd; /* required */
} ro_op_soft_shrink_attrs;
RO_API RO_MUST_USE ro_status ro_op_soft_shrink(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_soft_shrink_attrs *attrs, ro_tensor *out);

/* x, dy */
typedef struct {
    float lambd; /* required */
} ro_op_soft_shrink_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_soft_shrink_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, const ro_op_soft_shrink_grad_attrs *attrs, ro_tensor *out);

/* a, b: the larger; b repeats */
RO_API RO_MUST_USE ro_status ro_op_max(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* a, b: the smaller; b repeats */
RO_API RO_MUST_USE ro_status ro_op_min(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* x: x without its sign */
RO_API RO_MUST_USE ro_status ro_op_abs(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* a f32 or i32, b f32 or i32: 1 where the relation holds, else 0; b repeats */
typedef struct {
    int64_t kind; /* required */
} ro_op_compare_attrs;
RO_API RO_MUST_USE ro_status ro_op_compare(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_compare_attrs *attrs, ro_tensor *out);

/* c i32, a any, b any: a where c is not 0, else b */
RO_API RO_MUST_USE ro_status ro_op_where(ro_ctx *ctx, const ro_tensor *c, const ro_tensor *a,
        const ro_tensor *b, ro_tensor *out);

/* a i32, b i32: a + b of integers; b repeats */
RO_API RO_MUST_USE ro_status ro_op_iadd(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* x, step i32: 0 at random, else x * scale; also its own gradient */
typedef struct {
    int64_t seed;
    int64_t stream;
    int64_t threshold; /* required */
    float scale; /* required */
} ro_op_dropout_attrs;
RO_API RO_MUST_USE ro_status ro_op_dropout(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *step, const ro_op_dropout_attrs *attrs, ro_tensor *out);

/* a, b: a * b; b repeats */
RO_API RO_MUST_USE ro_status ro_op_mul(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* a, b: a - b; b repeats */
RO_API RO_MUST_USE ro_status ro_op_sub(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* a, b: a / b; b repeats */
RO_API RO_MUST_USE ro_status ro_op_div(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out);

/* x: x * factor */
typedef struct {
    float factor; /* required */
} ro_op_scale_attrs;
RO_API RO_MUST_USE ro_status ro_op_scale(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_scale_attrs *attrs, ro_tensor *out);

/* x */
RO_API RO_MUST_USE ro_status ro_op_exp(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: natural logarithm */
RO_API RO_MUST_USE ro_status ro_op_log(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x */
RO_API RO_MUST_USE ro_status ro_op_sqrt(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: 1 / sqrt(x) */
RO_API RO_MUST_USE ro_status ro_op_rsqrt(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* a, b f32 or bf16 or f16: alpha * a b; batches, transposes, masks */
typedef struct {
    int64_t batch_dims;
    int64_t trans;
    float alpha; /* default: 1 */
    int64_t chunk; /* default: RO_DOT_CHUNK */
    int64_t mask;
    int64_t window;
} ro_op_matmul_attrs;
RO_API RO_MUST_USE ro_status ro_op_matmul(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_matmul_attrs *attrs, ro_tensor *out);

/* a, b: alpha * a b by exact sums of integers; batches, transposes */
typedef struct {
    int64_t batch_dims;
    int64_t trans;
    float alpha; /* default: 1 */
    int64_t bits; /* default: RO_FIXED_24 */
} ro_op_matmul_fixed_attrs;
RO_API RO_MUST_USE ro_status ro_op_matmul_fixed(ro_ctx *ctx, const ro_tensor *a,
        const ro_tensor *b, const ro_op_matmul_fixed_attrs *attrs, ro_tensor *out);

/* x: sums of blocks of a row (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_sum_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_sum(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_reduce_sum_attrs *attrs, ro_tensor *out);

/* x: maxima of blocks of a row (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_max_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_max(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_reduce_max_attrs *attrs, ro_tensor *out);

/* a, b: sums of a * b; b repeats (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of a */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_dot_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_dot(ro_ctx *ctx, const ro_tensor *a,
        const ro_tensor *b, const ro_op_reduce_dot_attrs *attrs, ro_tensor *out);

/* x, mean: sums of (x - mean)^2 (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_sqdev_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_sqdev(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *mean, const ro_op_reduce_sqdev_attrs *attrs, ro_tensor *out);

/* x, m: sums of exp(x - m) (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_expsum_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_expsum(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *m, const ro_op_reduce_expsum_attrs *attrs, ro_tensor *out);

/* dy, gamma, x, mean, rstd: sums for ln_dx (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of dy */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_ln_gx_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_ln_gx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *gamma, const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd,
        const ro_op_reduce_ln_gx_attrs *attrs, ro_tensor *out);

/* x: sums of 64 rows (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
} ro_op_sum_rows_attrs;
RO_API RO_MUST_USE ro_status ro_op_sum_rows(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_sum_rows_attrs *attrs, ro_tensor *out);

/* dy, x, mean, rstd: gradient of gamma (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of dy */
} ro_op_ln_dgamma_attrs;
RO_API RO_MUST_USE ro_status ro_op_ln_dgamma(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd,
        const ro_op_ln_dgamma_attrs *attrs, ro_tensor *out);

/* ss: 1 / sqrt(ss / n + eps) */
typedef struct {
    int64_t n; /* required */
    float eps; /* required */
} ro_op_ln_rstd_attrs;
RO_API RO_MUST_USE ro_status ro_op_ln_rstd(ro_ctx *ctx, const ro_tensor *ss,
        const ro_op_ln_rstd_attrs *attrs, ro_tensor *out);

/* x, mean, rstd, gamma, beta */
RO_API RO_MUST_USE ro_status ro_op_layernorm(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_tensor *gamma,
        const ro_tensor *beta, ro_tensor *out);

/* dy, gamma, x, mean, rstd, sg, sgx */
RO_API RO_MUST_USE ro_status ro_op_ln_dx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *gamma, const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd,
        const ro_tensor *sg, const ro_tensor *sgx, ro_tensor *out);

/* x, m, l, ids i32: cross-entropy loss of each row */
RO_API RO_MUST_USE ro_status ro_op_xent(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, const ro_tensor *ids, ro_tensor *out);

/* x, m, l, ids i32, dloss: gradient of x */
RO_API RO_MUST_USE ro_status ro_op_xent_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, const ro_tensor *ids, const ro_tensor *dloss, ro_tensor *out);

/* s: the largest score of each key block */
typedef struct {
    int64_t causal;
    int64_t window;
} ro_op_attn_max_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_max(ro_ctx *ctx, const ro_tensor *s,
        const ro_op_attn_max_attrs *attrs, ro_tensor *out);

/* s, mc: exp(s - mc) */
typedef struct {
    int64_t causal;
    int64_t window;
} ro_op_attn_exp_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_exp(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *mc,
        const ro_op_attn_exp_attrs *attrs, ro_tensor *out);

/* ex, v: weighted sums of values, by key block */
typedef struct {
    int64_t causal;
    int64_t window;
} ro_op_attn_av_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_av(ro_ctx *ctx, const ro_tensor *ex, const ro_tensor *v,
        const ro_op_attn_av_attrs *attrs, ro_tensor *out);

/* mc, lc: sums of exp over all key blocks */
RO_API RO_MUST_USE ro_status ro_op_attn_l(ro_ctx *ctx, const ro_tensor *mc, const ro_tensor *lc,
        ro_tensor *out);

/* mc, ac, l: output of attention */
RO_API RO_MUST_USE ro_status ro_op_attn_out(ro_ctx *ctx, const ro_tensor *mc,
        const ro_tensor *ac, const ro_tensor *l, ro_tensor *out);

/* s, m, l: softmax of scores */
typedef struct {
    int64_t causal;
    int64_t window;
} ro_op_attn_prob_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_prob(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *m,
        const ro_tensor *l, const ro_op_attn_prob_attrs *attrs, ro_tensor *out);

/* p, dp, delta: gradient of the scores */
typedef struct {
    int64_t causal;
    int64_t window;
} ro_op_attn_dscore_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_dscore(ro_ctx *ctx, const ro_tensor *p,
        const ro_tensor *dp, const ro_tensor *delta, const ro_op_attn_dscore_attrs *attrs,
        ro_tensor *out);

/* x any: each head repeated `times` times */
typedef struct {
    int64_t times; /* required */
} ro_op_repeat_heads_attrs;
RO_API RO_MUST_USE ro_status ro_op_repeat_heads(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_repeat_heads_attrs *attrs, ro_tensor *out);

/* dy */
typedef struct {
    int64_t times; /* required */
} ro_op_repeat_heads_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_repeat_heads_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_op_repeat_heads_grad_attrs *attrs, ro_tensor *out);

/* s, first i32: attn_max of queries from position `first` on */
typedef struct {
    int64_t window;
} ro_op_attn_max_at_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_max_at(ro_ctx *ctx, const ro_tensor *s,
        const ro_tensor *first, const ro_op_attn_max_at_attrs *attrs, ro_tensor *out);

/* s, mc, first i32: attn_exp of queries from position `first` on */
typedef struct {
    int64_t window;
} ro_op_attn_exp_at_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_exp_at(ro_ctx *ctx, const ro_tensor *s,
        const ro_tensor *mc, const ro_tensor *first, const ro_op_attn_exp_at_attrs *attrs,
        ro_tensor *out);

/* ex, v, first i32: attn_av of queries from position `first` on */
typedef struct {
    int64_t window;
} ro_op_attn_av_at_attrs;
RO_API RO_MUST_USE ro_status ro_op_attn_av_at(ro_ctx *ctx, const ro_tensor *ex,
        const ro_tensor *v, const ro_tensor *first, const ro_op_attn_av_at_attrs *attrs,
        ro_tensor *out);

/* step i32: learning rate, after a warmup */
typedef struct {
    int64_t kind;
    float base; /* required */
    float min;
    int64_t warmup;
    int64_t total;
} ro_op_lr_schedule_attrs;
RO_API RO_MUST_USE ro_status ro_op_lr_schedule(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_lr_schedule_attrs *attrs, ro_tensor *out);

/* c: the next 1 - beta^t, from that of the step before */
typedef struct {
    float beta; /* required */
} ro_op_bias_correction_attrs;
RO_API RO_MUST_USE ro_status ro_op_bias_correction(ro_ctx *ctx, const ro_tensor *c,
        const ro_op_bias_correction_attrs *attrs, ro_tensor *out);

/* sumsq: the factor that limits a global norm */
typedef struct {
    float max_norm; /* required */
} ro_op_clip_scale_attrs;
RO_API RO_MUST_USE ro_status ro_op_clip_scale(ro_ctx *ctx, const ro_tensor *sumsq,
        const ro_op_clip_scale_attrs *attrs, ro_tensor *out);

/* m, g, clip: next first moment */
typedef struct {
    float beta; /* required */
} ro_op_adamw_m_attrs;
RO_API RO_MUST_USE ro_status ro_op_adamw_m(ro_ctx *ctx, const ro_tensor *m, const ro_tensor *g,
        const ro_tensor *clip, const ro_op_adamw_m_attrs *attrs, ro_tensor *out);

/* v, g, clip: next second moment */
typedef struct {
    float beta; /* required */
} ro_op_adamw_v_attrs;
RO_API RO_MUST_USE ro_status ro_op_adamw_v(ro_ctx *ctx, const ro_tensor *v, const ro_tensor *g,
        const ro_tensor *clip, const ro_op_adamw_v_attrs *attrs, ro_tensor *out);

/* w, m, v, c1, c2, lr: updated weights */
typedef struct {
    float eps; /* required */
    float decay;
} ro_op_adamw_w_attrs;
RO_API RO_MUST_USE ro_status ro_op_adamw_w(ro_ctx *ctx, const ro_tensor *w, const ro_tensor *m,
        const ro_tensor *v, const ro_tensor *c1, const ro_tensor *c2, const ro_tensor *lr,
        const ro_op_adamw_w_attrs *attrs, ro_tensor *out);

/* m, g, w, clip: next momentum */
typedef struct {
    float momentum;
    float decay;
} ro_op_sgd_m_attrs;
RO_API RO_MUST_USE ro_status ro_op_sgd_m(ro_ctx *ctx, const ro_tensor *m, const ro_tensor *g,
        const ro_tensor *w, const ro_tensor *clip, const ro_op_sgd_m_attrs *attrs,
        ro_tensor *out);

/* w, m, lr: updated weights */
RO_API RO_MUST_USE ro_status ro_op_sgd_w(ro_ctx *ctx, const ro_tensor *w, const ro_tensor *m,
        const ro_tensor *lr, ro_tensor *out);

/* w, m, g, clip, lr: updated weights */
typedef struct {
    float momentum;
    float decay;
} ro_op_sgd_nesterov_attrs;
RO_API RO_MUST_USE ro_status ro_op_sgd_nesterov(ro_ctx *ctx, const ro_tensor *w,
        const ro_tensor *m, const ro_tensor *g, const ro_tensor *clip, const ro_tensor *lr,
        const ro_op_sgd_nesterov_attrs *attrs, ro_tensor *out);

/* x */
RO_API RO_MUST_USE ro_status ro_op_tanh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x */
RO_API RO_MUST_USE ro_status ro_op_erf(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x */
RO_API RO_MUST_USE ro_status ro_op_sigmoid(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: x * sigmoid(x) */
RO_API RO_MUST_USE ro_status ro_op_silu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: GELU by erf */
RO_API RO_MUST_USE ro_status ro_op_gelu_erf(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* y, dy: y = tanh(x) */
RO_API RO_MUST_USE ro_status ro_op_tanh_grad(ro_ctx *ctx, const ro_tensor *y,
        const ro_tensor *dy, ro_tensor *out);

/* x, dy */
RO_API RO_MUST_USE ro_status ro_op_erf_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        ro_tensor *out);

/* y, dy: y = sigmoid(x) */
RO_API RO_MUST_USE ro_status ro_op_sigmoid_grad(ro_ctx *ctx, const ro_tensor *y,
        const ro_tensor *dy, ro_tensor *out);

/* x, dy */
RO_API RO_MUST_USE ro_status ro_op_silu_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, ro_tensor *out);

/* x, dy */
RO_API RO_MUST_USE ro_status ro_op_gelu_erf_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, ro_tensor *out);

/* x, m, l */
RO_API RO_MUST_USE ro_status ro_op_softmax(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, ro_tensor *out);

/* y, dy, d: y = softmax(x) */
RO_API RO_MUST_USE ro_status ro_op_softmax_grad(ro_ctx *ctx, const ro_tensor *y,
        const ro_tensor *dy, const ro_tensor *d, ro_tensor *out);

/* x, m, l */
RO_API RO_MUST_USE ro_status ro_op_log_softmax(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *m, const ro_tensor *l, ro_tensor *out);

/* y, dy, s: y = log_softmax(x) */
RO_API RO_MUST_USE ro_status ro_op_log_softmax_grad(ro_ctx *ctx, const ro_tensor *y,
        const ro_tensor *dy, const ro_tensor *s, ro_tensor *out);

/* x, m, l, ids i32: xent, but 0 where the id is `ignore` */
typedef struct {
    int64_t ignore; /* required */
} ro_op_xent_ignore_attrs;
RO_API RO_MUST_USE ro_status ro_op_xent_ignore(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *m, const ro_tensor *l, const ro_tensor *ids,
        const ro_op_xent_ignore_attrs *attrs, ro_tensor *out);

/* x, m, l, ids i32, dloss */
typedef struct {
    int64_t ignore; /* required */
} ro_op_xent_ignore_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_xent_ignore_grad(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *m, const ro_tensor *l, const ro_tensor *ids, const ro_tensor *dloss,
        const ro_op_xent_ignore_grad_attrs *attrs, ro_tensor *out);

/* ids i32: 0 where the id is `ignore`, else 1 */
typedef struct {
    int64_t ignore; /* required */
} ro_op_kept_attrs;
RO_API RO_MUST_USE ro_status ro_op_kept(ro_ctx *ctx, const ro_tensor *ids,
        const ro_op_kept_attrs *attrs, ro_tensor *out);

/* x: sums of 64 along an axis */
typedef struct {
    int64_t axis;
} ro_op_sum_axis_attrs;
RO_API RO_MUST_USE ro_status ro_op_sum_axis(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_sum_axis_attrs *attrs, ro_tensor *out);

/* x: maxima of 64 along an axis */
typedef struct {
    int64_t axis;
} ro_op_max_axis_attrs;
RO_API RO_MUST_USE ro_status ro_op_max_axis(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_max_axis_attrs *attrs, ro_tensor *out);

/* x: index of the first maximum along an axis */
typedef struct {
    int64_t axis;
} ro_op_argmax_attrs;
RO_API RO_MUST_USE ro_status ro_op_argmax(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_argmax_attrs *attrs, ro_tensor *out);

/* at i32, dy: gradient of max_axis; at is from argmax */
typedef struct {
    int64_t axis;
    int64_t count; /* required */
} ro_op_max_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_max_grad(ro_ctx *ctx, const ro_tensor *at,
        const ro_tensor *dy, const ro_op_max_grad_attrs *attrs, ro_tensor *out);

/* x any: repeated along an axis of length 1 */
typedef struct {
    int64_t axis;
    int64_t count; /* required */
} ro_op_expand_attrs;
RO_API RO_MUST_USE ro_status ro_op_expand(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_expand_attrs *attrs, ro_tensor *out);

/* x, rstd, gamma */
RO_API RO_MUST_USE ro_status ro_op_rmsnorm(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *rstd, const ro_tensor *gamma, ro_tensor *out);

/* dy, gamma, x, rstd, sgx */
RO_API RO_MUST_USE ro_status ro_op_rms_dx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *gamma, const ro_tensor *x, const ro_tensor *rstd, const ro_tensor *sgx,
        ro_tensor *out);

/* dy, gamma, x, rstd: sums for rms_dx (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of dy */
    int64_t block; /* default: RO_REDUCE_BLOCK */
} ro_op_reduce_rms_gx_attrs;
RO_API RO_MUST_USE ro_status ro_op_reduce_rms_gx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *gamma, const ro_tensor *x, const ro_tensor *rstd,
        const ro_op_reduce_rms_gx_attrs *attrs, ro_tensor *out);

/* dy, x, rstd: gradient of gamma (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of dy */
} ro_op_rms_dgamma_attrs;
RO_API RO_MUST_USE ro_status ro_op_rms_dgamma(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *x, const ro_tensor *rstd, const ro_op_rms_dgamma_attrs *attrs,
        ro_tensor *out);

/* x, w */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
} ro_op_conv2d_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *w,
        const ro_op_conv2d_attrs *attrs, ro_tensor *out);

/* dy, w: gradient of x (out->shape is declared) */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
} ro_op_conv2d_dx_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d_dx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *w, const ro_op_conv2d_dx_attrs *attrs, ro_tensor *out);

/* x, dy: gradient of w (out->shape is declared) */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
} ro_op_conv2d_dw_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d_dw(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, const ro_op_conv2d_dw_attrs *attrs, ro_tensor *out);

/* x, w: conv2d by exact sums of integers */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
    int64_t bits; /* default: RO_FIXED_24 */
} ro_op_conv2d_fixed_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d_fixed(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *w, const ro_op_conv2d_fixed_attrs *attrs, ro_tensor *out);

/* dy, w: gradient of x by exact sums of integers (out->shape is declared) */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
    int64_t bits; /* default: RO_FIXED_24 */
} ro_op_conv2d_fixed_dx_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d_fixed_dx(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *w, const ro_op_conv2d_fixed_dx_attrs *attrs, ro_tensor *out);

/* x, dy: gradient of w by exact sums of integers (out->shape is declared) */
typedef struct {
    int64_t stride_h; /* default: 1 */
    int64_t stride_w; /* default: 1 */
    int64_t pad_h;
    int64_t pad_w;
    int64_t dilation_h; /* default: 1 */
    int64_t dilation_w; /* default: 1 */
    int64_t groups; /* default: 1 */
    int64_t bits; /* default: RO_FIXED_24 */
} ro_op_conv2d_fixed_dw_attrs;
RO_API RO_MUST_USE ro_status ro_op_conv2d_fixed_dw(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *dy, const ro_op_conv2d_fixed_dw_attrs *attrs, ro_tensor *out);

/* x */
typedef struct {
    int64_t kernel_h; /* required */
    int64_t kernel_w; /* required */
    int64_t stride_h; /* required */
    int64_t stride_w; /* required */
    int64_t pad_h;
    int64_t pad_w;
} ro_op_max_pool2d_attrs;
RO_API RO_MUST_USE ro_status ro_op_max_pool2d(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_max_pool2d_attrs *attrs, ro_tensor *out);

/* x: place of the maximum in its window */
typedef struct {
    int64_t kernel_h; /* required */
    int64_t kernel_w; /* required */
    int64_t stride_h; /* required */
    int64_t stride_w; /* required */
    int64_t pad_h;
    int64_t pad_w;
} ro_op_max_pool2d_index_attrs;
RO_API RO_MUST_USE ro_status ro_op_max_pool2d_index(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_max_pool2d_index_attrs *attrs, ro_tensor *out);

/* dy, index i32 (out->shape is declared) */
typedef struct {
    int64_t kernel_h; /* required */
    int64_t kernel_w; /* required */
    int64_t stride_h; /* required */
    int64_t stride_w; /* required */
    int64_t pad_h;
    int64_t pad_w;
} ro_op_max_pool2d_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_max_pool2d_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *index, const ro_op_max_pool2d_grad_attrs *attrs, ro_tensor *out);

/* x */
typedef struct {
    int64_t kernel_h; /* required */
    int64_t kernel_w; /* required */
    int64_t stride_h; /* required */
    int64_t stride_w; /* required */
    int64_t pad_h;
    int64_t pad_w;
    int64_t count_pad;
} ro_op_avg_pool2d_attrs;
RO_API RO_MUST_USE ro_status ro_op_avg_pool2d(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_avg_pool2d_attrs *attrs, ro_tensor *out);

/* dy (out->shape is declared) */
typedef struct {
    int64_t kernel_h; /* required */
    int64_t kernel_w; /* required */
    int64_t stride_h; /* required */
    int64_t stride_w; /* required */
    int64_t pad_h;
    int64_t pad_w;
    int64_t count_pad;
} ro_op_avg_pool2d_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_avg_pool2d_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_op_avg_pool2d_grad_attrs *attrs, ro_tensor *out);

/* x: means of groups of rows (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
} ro_op_bn_mean_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_mean(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_bn_mean_attrs *attrs, ro_tensor *out);

/* x, mean: squared deviations of groups of rows (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of x */
} ro_op_bn_sqdev_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_sqdev(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *mean, const ro_op_bn_sqdev_attrs *attrs, ro_tensor *out);

/* m: means of 64 groups (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of m */
    int64_t rows; /* required */
    int64_t per; /* required */
} ro_op_bn_merge_mean_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_merge_mean(ro_ctx *ctx, const ro_tensor *m,
        const ro_op_bn_merge_mean_attrs *attrs, ro_tensor *out);

/* m, s: squared deviations of 64 groups (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of m */
    int64_t rows; /* required */
    int64_t per; /* required */
} ro_op_bn_merge_sqdev_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_merge_sqdev(ro_ctx *ctx, const ro_tensor *m,
        const ro_tensor *s, const ro_op_bn_merge_sqdev_attrs *attrs, ro_tensor *out);

/* x, mean, rstd, gamma, beta */
RO_API RO_MUST_USE ro_status ro_op_batchnorm(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_tensor *gamma,
        const ro_tensor *beta, ro_tensor *out);

/* dy, x, mean, rstd: gradient of gamma (out->shape is declared) */
typedef struct {
    int64_t cols; /* 0: the last dimension of dy */
} ro_op_bn_dgamma_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_dgamma(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd,
        const ro_op_bn_dgamma_attrs *attrs, ro_tensor *out);

/* dy, x, mean, rstd, gamma, dbeta, dgamma */
RO_API RO_MUST_USE ro_status ro_op_bn_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_tensor *gamma,
        const ro_tensor *dbeta, const ro_tensor *dgamma, ro_tensor *out);

/* r, v: the next running mean or variance */
typedef struct {
    float momentum; /* required */
    float divisor; /* default: 1 */
} ro_op_bn_running_attrs;
RO_API RO_MUST_USE ro_status ro_op_bn_running(ro_ctx *ctx, const ro_tensor *r,
        const ro_tensor *v, const ro_op_bn_running_attrs *attrs, ro_tensor *out);

/* data u8, step i32: pixels as numbers (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    int64_t batch; /* required */
    int64_t first;
    int64_t record; /* required */
    int64_t offset;
    float scale; /* required */
    float shift;
} ro_op_read_images_attrs;
RO_API RO_MUST_USE ro_status ro_op_read_images(ro_ctx *ctx, const ro_tensor *data,
        const ro_tensor *step, const ro_op_read_images_attrs *attrs, ro_tensor *out);

/* data u8, step i32 (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    int64_t batch; /* required */
    int64_t first;
    int64_t record; /* required */
    int64_t offset;
} ro_op_read_labels_attrs;
RO_API RO_MUST_USE ro_status ro_op_read_labels(ro_ctx *ctx, const ro_tensor *data,
        const ro_tensor *step, const ro_op_read_labels_attrs *attrs, ro_tensor *out);

/* x any: the same elements (out->shape is declared) */
RO_API RO_MUST_USE ro_status ro_op_reshape(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* dy, ids i32 (out->shape is declared) */
typedef struct {
    int64_t axis;
} ro_op_gather_grad_attrs;
RO_API RO_MUST_USE ro_status ro_op_gather_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_tensor *ids, const ro_op_gather_grad_attrs *attrs, ro_tensor *out);

/* no input: uniformly distributed numbers (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    float low;
    float high; /* required */
} ro_op_uniform_attrs;
RO_API RO_MUST_USE ro_status ro_op_uniform(ro_ctx *ctx, const ro_op_uniform_attrs *attrs,
        ro_tensor *out);

/* x any, rows any, at i32: x with some places along an axis replaced */
typedef struct {
    int64_t axis;
} ro_op_put_rows_attrs;
RO_API RO_MUST_USE ro_status ro_op_put_rows(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *rows, const ro_tensor *at, const ro_op_put_rows_attrs *attrs,
        ro_tensor *out);

/* step i32: 0 .. W - 1 in shuffled order (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
} ro_op_permutation_attrs;
RO_API RO_MUST_USE ro_status ro_op_permutation(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_permutation_attrs *attrs, ro_tensor *out);

/* no input: turns of each pair per position (out->shape is declared) */
typedef struct {
    float base; /* required */
    int64_t kind;
    float factor;
    float low;
    float high;
    int64_t original;
} ro_op_rope_turns_attrs;
RO_API RO_MUST_USE ro_status ro_op_rope_turns(ro_ctx *ctx, const ro_op_rope_turns_attrs *attrs,
        ro_tensor *out);

/* x, position i32, turns i32: x rotated by its positions */
typedef struct {
    int64_t pairs;
    int64_t inverse;
} ro_op_rope_attrs;
RO_API RO_MUST_USE ro_status ro_op_rope(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *position, const ro_tensor *turns, const ro_op_rope_attrs *attrs,
        ro_tensor *out);

/* x, m: exp(x - m) in units of 2^-31 */
RO_API RO_MUST_USE ro_status ro_op_weight(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        ro_tensor *out);

/* q i32: the cut that keeps the k largest weights */
typedef struct {
    int64_t k; /* required */
} ro_op_top_k_attrs;
RO_API RO_MUST_USE ro_status ro_op_top_k(ro_ctx *ctx, const ro_tensor *q,
        const ro_op_top_k_attrs *attrs, ro_tensor *out);

/* q i32: the cut that keeps the largest weights that hold a share */
typedef struct {
    int64_t p; /* required */
} ro_op_top_p_attrs;
RO_API RO_MUST_USE ro_status ro_op_top_p(ro_ctx *ctx, const ro_tensor *q,
        const ro_op_top_p_attrs *attrs, ro_tensor *out);

/* q i32, cut i32: weights that a cut keeps, else 0 */
RO_API RO_MUST_USE ro_status ro_op_keep_top(ro_ctx *ctx, const ro_tensor *q,
        const ro_tensor *cut, ro_tensor *out);

/* key i32, position i32: 64 random bits of a key and a position */
typedef struct {
    int64_t seed;
    int64_t stream;
} ro_op_random_words_attrs;
RO_API RO_MUST_USE ro_status ro_op_random_words(ro_ctx *ctx, const ro_tensor *key,
        const ro_tensor *position, const ro_op_random_words_attrs *attrs, ro_tensor *out);

/* q i32, words i32: an index drawn with weights q */
RO_API RO_MUST_USE ro_status ro_op_draw(ro_ctx *ctx, const ro_tensor *q, const ro_tensor *words,
        ro_tensor *out);

/* a i32, b i32: arithmetic of integers; b repeats */
typedef struct {
    int64_t kind; /* required */
} ro_op_integer_attrs;
RO_API RO_MUST_USE ro_status ro_op_integer(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_integer_attrs *attrs, ro_tensor *out);

/* x: x rounded to a whole number */
typedef struct {
    int64_t kind; /* required */
} ro_op_round_attrs;
RO_API RO_MUST_USE ro_status ro_op_round(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_round_attrs *attrs, ro_tensor *out);

/* x: sine */
RO_API RO_MUST_USE ro_status ro_op_sin(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: cosine */
RO_API RO_MUST_USE ro_status ro_op_cos(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: tangent */
RO_API RO_MUST_USE ro_status ro_op_tan(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of sin */
RO_API RO_MUST_USE ro_status ro_op_asin(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of cos */
RO_API RO_MUST_USE ro_status ro_op_acos(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of tan */
RO_API RO_MUST_USE ro_status ro_op_atan(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: hyperbolic sine */
RO_API RO_MUST_USE ro_status ro_op_sinh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: hyperbolic cosine */
RO_API RO_MUST_USE ro_status ro_op_cosh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of sinh */
RO_API RO_MUST_USE ro_status ro_op_asinh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of cosh */
RO_API RO_MUST_USE ro_status ro_op_acosh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: inverse of tanh */
RO_API RO_MUST_USE ro_status ro_op_atanh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: log(1 + x) */
RO_API RO_MUST_USE ro_status ro_op_log1p(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: exp(x) - 1 */
RO_API RO_MUST_USE ro_status ro_op_expm1(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: logarithm to base 2 */
RO_API RO_MUST_USE ro_status ro_op_log2(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* x: 2 to the power of x */
RO_API RO_MUST_USE ro_status ro_op_exp2(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out);

/* y, x: the angle of (x, y); x repeats */
RO_API RO_MUST_USE ro_status ro_op_atan2(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *x,
        ro_tensor *out);

/* x, y: x to the power of y; y repeats */
RO_API RO_MUST_USE ro_status ro_op_pow(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *y,
        ro_tensor *out);

/* step i32: normally distributed numbers, different in each step (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    float mean;
    float std; /* required */
} ro_op_normal_at_attrs;
RO_API RO_MUST_USE ro_status ro_op_normal_at(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_normal_at_attrs *attrs, ro_tensor *out);

/* step i32: numbers between low and high, different in each step (out->shape is declared) */
typedef struct {
    int64_t seed;
    int64_t stream;
    float low; /* required */
    float high; /* required */
} ro_op_uniform_at_attrs;
RO_API RO_MUST_USE ro_status ro_op_uniform_at(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_uniform_at_attrs *attrs, ro_tensor *out);

/* x any, ids i32: elements of each line at the places `ids` */
typedef struct {
    int64_t axis; /* required */
} ro_op_take_along_attrs;
RO_API RO_MUST_USE ro_status ro_op_take_along(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *ids, const ro_op_take_along_attrs *attrs, ro_tensor *out);

/* x f32 or i32, ids i32, rows f32 or i32: x with `rows` put at the places `ids` of each line, in order */
typedef struct {
    int64_t axis; /* required */
    int64_t kind; /* required */
} ro_op_put_along_attrs;
RO_API RO_MUST_USE ro_status ro_op_put_along(ro_ctx *ctx, const ro_tensor *x,
        const ro_tensor *ids, const ro_tensor *rows, const ro_op_put_along_attrs *attrs,
        ro_tensor *out);

/* x f32 or i32: indices that sort each line */
typedef struct {
    int64_t axis; /* required */
    int64_t descending;
} ro_op_argsort_attrs;
RO_API RO_MUST_USE ro_status ro_op_argsort(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_argsort_attrs *attrs, ro_tensor *out);

/* x f32 or i32: running totals of each line */
typedef struct {
    int64_t axis; /* required */
    int64_t kind; /* required */
} ro_op_running_attrs;
RO_API RO_MUST_USE ro_status ro_op_running(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_running_attrs *attrs, ro_tensor *out);

/* x i32: sum of each line of integers */
typedef struct {
    int64_t axis; /* required */
} ro_op_isum_attrs;
RO_API RO_MUST_USE ro_status ro_op_isum(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_isum_attrs *attrs, ro_tensor *out);

/* clang-format on */

#ifdef __cplusplus
}
#endif
#endif
