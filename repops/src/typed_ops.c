/* Typed calls (repops/typed.h): `make operators` writes this file from
 * repops/src/operators.def. */
#include "repops/operators.h"
#include "repops/src/typed.h"

/* clang-format off */

ro_status ro_op_fill(ro_ctx *ctx, const ro_op_fill_attrs *attrs, ro_tensor *out) {
    static const ro_op_fill_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->value),
    };
    return ro_typed_call(ctx, RO_OP_FILL, 0, NULL, attr, out);
}

ro_status ro_op_normal(ro_ctx *ctx, const ro_op_normal_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "normal", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        ro_attr_f32(attrs->mean),
        ro_attr_f32(attrs->std),
    };
    return ro_typed_call(ctx, RO_OP_NORMAL, 0, NULL, attr, out);
}

ro_status ro_op_read_batch(ro_ctx *ctx, const ro_tensor *data, int32_t count,
        const ro_tensor *step, const ro_op_read_batch_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "read_batch", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        attrs->batch,
        attrs->first,
        attrs->shift,
    };
    return ro_typed_row(ctx, RO_OP_READ_BATCH, count, data, &step, attr, out);
}

ro_status ro_op_embedding(ro_ctx *ctx, const ro_tensor *table, const ro_tensor *ids,
        ro_tensor *out) {
    const ro_tensor *const in[] = {table, ids};
    return ro_typed_call(ctx, RO_OP_EMBEDDING, 2, in, NULL, out);
}

ro_status ro_op_embedding_grad(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *ids,
        ro_tensor *out) {
    const ro_tensor *const in[] = {dy, ids};
    return ro_typed_call(ctx, RO_OP_EMBEDDING_GRAD, 2, in, NULL, out);
}

ro_status ro_op_split_heads(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_split_heads_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "split_heads", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->parts != 0 ? attrs->parts : 1,
        attrs->part,
        attrs->heads,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SPLIT_HEADS, 1, in, attr, out);
}

ro_status ro_op_join_heads(ro_ctx *ctx, const ro_tensor *x, int32_t count, ro_tensor *out) {
    return ro_typed_row(ctx, RO_OP_JOIN_HEADS, count, x, NULL, NULL, out);
}

ro_status ro_op_concat(ro_ctx *ctx, const ro_tensor *x, int32_t count, ro_tensor *out) {
    return ro_typed_row(ctx, RO_OP_CONCAT, count, x, NULL, NULL, out);
}

ro_status ro_op_iota(ro_ctx *ctx, ro_tensor *out) {
    return ro_typed_call(ctx, RO_OP_IOTA, 0, NULL, NULL, out);
}

ro_status ro_op_transpose(ro_ctx *ctx, const ro_tensor *x, const ro_op_transpose_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "transpose", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->d0,
        attrs->d1,
        attrs->d2,
        attrs->d3,
        attrs->d4,
        attrs->d5,
        attrs->d6,
        attrs->d7,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_TRANSPOSE, 1, in, attr, out);
}

ro_status ro_op_slice(ro_ctx *ctx, const ro_tensor *x, const ro_op_slice_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "slice", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->start,
        attrs->length,
        attrs->step != 0 ? attrs->step : 1,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SLICE, 1, in, attr, out);
}

ro_status ro_op_pad(ro_ctx *ctx, const ro_tensor *x, const ro_op_pad_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_pad_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->before,
        attrs->after,
        attrs->step != 0 ? attrs->step : 1,
        ro_attr_f32(attrs->value),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_PAD, 1, in, attr, out);
}

ro_status ro_op_gather(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *ids,
        const ro_op_gather_attrs *attrs, ro_tensor *out) {
    static const ro_op_gather_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x, ids};
    return ro_typed_call(ctx, RO_OP_GATHER, 2, in, attr, out);
}

ro_status ro_op_concat_axis(ro_ctx *ctx, const ro_tensor *x, int32_t count,
        const ro_op_concat_axis_attrs *attrs, ro_tensor *out) {
    static const ro_op_concat_axis_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    return ro_typed_row(ctx, RO_OP_CONCAT_AXIS, count, x, NULL, attr, out);
}

ro_status ro_op_cast(ro_ctx *ctx, const ro_tensor *x, const ro_op_cast_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "cast", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->dtype,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_CAST, 1, in, attr, out);
}

ro_status ro_op_cast_stochastic(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *step,
        const ro_op_cast_stochastic_attrs *attrs, ro_tensor *out) {
    static const ro_op_cast_stochastic_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
    };
    const ro_tensor *const in[] = {x, step};
    return ro_typed_call(ctx, RO_OP_CAST_STOCHASTIC, 2, in, attr, out);
}

ro_status ro_op_add(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_ADD, 2, in, NULL, out);
}

ro_status ro_op_div_const(ro_ctx *ctx, const ro_tensor *x, const ro_op_div_const_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "div_const", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->divisor),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_DIV_CONST, 1, in, attr, out);
}

ro_status ro_op_gelu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_GELU, 1, in, NULL, out);
}

ro_status ro_op_gelu_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy, ro_tensor *out) {
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_GELU_GRAD, 2, in, NULL, out);
}

ro_status ro_op_relu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_RELU, 1, in, NULL, out);
}

ro_status ro_op_relu_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy, ro_tensor *out) {
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_RELU_GRAD, 2, in, NULL, out);
}

ro_status ro_op_leaky_relu(ro_ctx *ctx, const ro_tensor *x, const ro_op_leaky_relu_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "leaky_relu", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->slope),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_LEAKY_RELU, 1, in, attr, out);
}

ro_status ro_op_leaky_relu_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        const ro_op_leaky_relu_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "leaky_relu_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->slope),
    };
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_LEAKY_RELU_GRAD, 2, in, attr, out);
}

ro_status ro_op_soft_shrink(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_soft_shrink_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "soft_shrink", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->lambd),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SOFT_SHRINK, 1, in, attr, out);
}

ro_status ro_op_soft_shrink_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        const ro_op_soft_shrink_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "soft_shrink_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->lambd),
    };
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_SOFT_SHRINK_GRAD, 2, in, attr, out);
}

ro_status ro_op_max(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_MAX, 2, in, NULL, out);
}

ro_status ro_op_min(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_MIN, 2, in, NULL, out);
}

ro_status ro_op_abs(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ABS, 1, in, NULL, out);
}

ro_status ro_op_compare(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_compare_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "compare", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kind,
    };
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_COMPARE, 2, in, attr, out);
}

ro_status ro_op_where(ro_ctx *ctx, const ro_tensor *c, const ro_tensor *a, const ro_tensor *b,
        ro_tensor *out) {
    const ro_tensor *const in[] = {c, a, b};
    return ro_typed_call(ctx, RO_OP_WHERE, 3, in, NULL, out);
}

ro_status ro_op_iadd(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_IADD, 2, in, NULL, out);
}

ro_status ro_op_dropout(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *step,
        const ro_op_dropout_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "dropout", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        attrs->threshold,
        ro_attr_f32(attrs->scale),
    };
    const ro_tensor *const in[] = {x, step};
    return ro_typed_call(ctx, RO_OP_DROPOUT, 2, in, attr, out);
}

ro_status ro_op_mul(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_MUL, 2, in, NULL, out);
}

ro_status ro_op_sub(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_SUB, 2, in, NULL, out);
}

ro_status ro_op_div(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b, ro_tensor *out) {
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_DIV, 2, in, NULL, out);
}

ro_status ro_op_scale(ro_ctx *ctx, const ro_tensor *x, const ro_op_scale_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "scale", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->factor),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SCALE, 1, in, attr, out);
}

ro_status ro_op_exp(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_EXP, 1, in, NULL, out);
}

ro_status ro_op_log(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_LOG, 1, in, NULL, out);
}

ro_status ro_op_sqrt(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SQRT, 1, in, NULL, out);
}

ro_status ro_op_rsqrt(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_RSQRT, 1, in, NULL, out);
}

ro_status ro_op_matmul(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_matmul_attrs *attrs, ro_tensor *out) {
    static const ro_op_matmul_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->batch_dims,
        attrs->trans,
        ro_attr_f32(attrs->alpha != 0 ? attrs->alpha : 1),
        attrs->chunk != 0 ? attrs->chunk : RO_DOT_CHUNK,
        attrs->mask,
        attrs->window,
    };
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_MATMUL, 2, in, attr, out);
}

ro_status ro_op_matmul_fixed(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_matmul_fixed_attrs *attrs, ro_tensor *out) {
    static const ro_op_matmul_fixed_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->batch_dims,
        attrs->trans,
        ro_attr_f32(attrs->alpha != 0 ? attrs->alpha : 1),
        attrs->bits != 0 ? attrs->bits : RO_FIXED_24,
    };
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_MATMUL_FIXED, 2, in, attr, out);
}

ro_status ro_op_reduce_sum(ro_ctx *ctx, const ro_tensor *x, const ro_op_reduce_sum_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_reduce_sum_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_REDUCE_SUM, 1, in, attr, out);
}

ro_status ro_op_reduce_max(ro_ctx *ctx, const ro_tensor *x, const ro_op_reduce_max_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_reduce_max_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_REDUCE_MAX, 1, in, attr, out);
}

ro_status ro_op_reduce_dot(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_reduce_dot_attrs *attrs, ro_tensor *out) {
    static const ro_op_reduce_dot_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(a),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_REDUCE_DOT, 2, in, attr, out);
}

ro_status ro_op_reduce_sqdev(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *mean,
        const ro_op_reduce_sqdev_attrs *attrs, ro_tensor *out) {
    static const ro_op_reduce_sqdev_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {x, mean};
    return ro_typed_call(ctx, RO_OP_REDUCE_SQDEV, 2, in, attr, out);
}

ro_status ro_op_reduce_expsum(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_op_reduce_expsum_attrs *attrs, ro_tensor *out) {
    static const ro_op_reduce_expsum_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {x, m};
    return ro_typed_call(ctx, RO_OP_REDUCE_EXPSUM, 2, in, attr, out);
}

ro_status ro_op_reduce_ln_gx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *gamma,
        const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd,
        const ro_op_reduce_ln_gx_attrs *attrs, ro_tensor *out) {
    static const ro_op_reduce_ln_gx_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(dy),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {dy, gamma, x, mean, rstd};
    return ro_typed_call(ctx, RO_OP_REDUCE_LN_GX, 5, in, attr, out);
}

ro_status ro_op_sum_rows(ro_ctx *ctx, const ro_tensor *x, const ro_op_sum_rows_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_sum_rows_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SUM_ROWS, 1, in, attr, out);
}

ro_status ro_op_ln_dgamma(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_op_ln_dgamma_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_ln_dgamma_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(dy),
    };
    const ro_tensor *const in[] = {dy, x, mean, rstd};
    return ro_typed_call(ctx, RO_OP_LN_DGAMMA, 4, in, attr, out);
}

ro_status ro_op_ln_rstd(ro_ctx *ctx, const ro_tensor *ss, const ro_op_ln_rstd_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "ln_rstd", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->n,
        ro_attr_f32(attrs->eps),
    };
    const ro_tensor *const in[] = {ss};
    return ro_typed_call(ctx, RO_OP_LN_RSTD, 1, in, attr, out);
}

ro_status ro_op_layernorm(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *mean,
        const ro_tensor *rstd, const ro_tensor *gamma, const ro_tensor *beta, ro_tensor *out) {
    const ro_tensor *const in[] = {x, mean, rstd, gamma, beta};
    return ro_typed_call(ctx, RO_OP_LAYERNORM, 5, in, NULL, out);
}

ro_status ro_op_ln_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *gamma,
        const ro_tensor *x, const ro_tensor *mean, const ro_tensor *rstd, const ro_tensor *sg,
        const ro_tensor *sgx, ro_tensor *out) {
    const ro_tensor *const in[] = {dy, gamma, x, mean, rstd, sg, sgx};
    return ro_typed_call(ctx, RO_OP_LN_DX, 7, in, NULL, out);
}

ro_status ro_op_xent(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m, const ro_tensor *l,
        const ro_tensor *ids, ro_tensor *out) {
    const ro_tensor *const in[] = {x, m, l, ids};
    return ro_typed_call(ctx, RO_OP_XENT, 4, in, NULL, out);
}

ro_status ro_op_xent_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, const ro_tensor *ids, const ro_tensor *dloss, ro_tensor *out) {
    const ro_tensor *const in[] = {x, m, l, ids, dloss};
    return ro_typed_call(ctx, RO_OP_XENT_GRAD, 5, in, NULL, out);
}

ro_status ro_op_attn_max(ro_ctx *ctx, const ro_tensor *s, const ro_op_attn_max_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_attn_max_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->causal,
        attrs->window,
    };
    const ro_tensor *const in[] = {s};
    return ro_typed_call(ctx, RO_OP_ATTN_MAX, 1, in, attr, out);
}

ro_status ro_op_attn_exp(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *mc,
        const ro_op_attn_exp_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_exp_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->causal,
        attrs->window,
    };
    const ro_tensor *const in[] = {s, mc};
    return ro_typed_call(ctx, RO_OP_ATTN_EXP, 2, in, attr, out);
}

ro_status ro_op_attn_av(ro_ctx *ctx, const ro_tensor *ex, const ro_tensor *v,
        const ro_op_attn_av_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_av_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->causal,
        attrs->window,
    };
    const ro_tensor *const in[] = {ex, v};
    return ro_typed_call(ctx, RO_OP_ATTN_AV, 2, in, attr, out);
}

ro_status ro_op_attn_l(ro_ctx *ctx, const ro_tensor *mc, const ro_tensor *lc, ro_tensor *out) {
    const ro_tensor *const in[] = {mc, lc};
    return ro_typed_call(ctx, RO_OP_ATTN_L, 2, in, NULL, out);
}

ro_status ro_op_attn_out(ro_ctx *ctx, const ro_tensor *mc, const ro_tensor *ac,
        const ro_tensor *l, ro_tensor *out) {
    const ro_tensor *const in[] = {mc, ac, l};
    return ro_typed_call(ctx, RO_OP_ATTN_OUT, 3, in, NULL, out);
}

ro_status ro_op_attn_prob(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *m,
        const ro_tensor *l, const ro_op_attn_prob_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_prob_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->causal,
        attrs->window,
    };
    const ro_tensor *const in[] = {s, m, l};
    return ro_typed_call(ctx, RO_OP_ATTN_PROB, 3, in, attr, out);
}

ro_status ro_op_attn_dscore(ro_ctx *ctx, const ro_tensor *p, const ro_tensor *dp,
        const ro_tensor *delta, const ro_op_attn_dscore_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_dscore_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->causal,
        attrs->window,
    };
    const ro_tensor *const in[] = {p, dp, delta};
    return ro_typed_call(ctx, RO_OP_ATTN_DSCORE, 3, in, attr, out);
}

ro_status ro_op_repeat_heads(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_repeat_heads_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "repeat_heads", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->times,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_REPEAT_HEADS, 1, in, attr, out);
}

ro_status ro_op_repeat_heads_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_op_repeat_heads_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "repeat_heads_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->times,
    };
    const ro_tensor *const in[] = {dy};
    return ro_typed_call(ctx, RO_OP_REPEAT_HEADS_GRAD, 1, in, attr, out);
}

ro_status ro_op_attn_max_at(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *first,
        const ro_op_attn_max_at_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_max_at_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->window,
    };
    const ro_tensor *const in[] = {s, first};
    return ro_typed_call(ctx, RO_OP_ATTN_MAX_AT, 2, in, attr, out);
}

ro_status ro_op_attn_exp_at(ro_ctx *ctx, const ro_tensor *s, const ro_tensor *mc,
        const ro_tensor *first, const ro_op_attn_exp_at_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_exp_at_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->window,
    };
    const ro_tensor *const in[] = {s, mc, first};
    return ro_typed_call(ctx, RO_OP_ATTN_EXP_AT, 3, in, attr, out);
}

ro_status ro_op_attn_av_at(ro_ctx *ctx, const ro_tensor *ex, const ro_tensor *v,
        const ro_tensor *first, const ro_op_attn_av_at_attrs *attrs, ro_tensor *out) {
    static const ro_op_attn_av_at_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->window,
    };
    const ro_tensor *const in[] = {ex, v, first};
    return ro_typed_call(ctx, RO_OP_ATTN_AV_AT, 3, in, attr, out);
}

ro_status ro_op_lr_schedule(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_lr_schedule_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "lr_schedule", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kind,
        ro_attr_f32(attrs->base),
        ro_attr_f32(attrs->min),
        attrs->warmup,
        attrs->total,
    };
    const ro_tensor *const in[] = {step};
    return ro_typed_call(ctx, RO_OP_LR_SCHEDULE, 1, in, attr, out);
}

ro_status ro_op_bias_correction(ro_ctx *ctx, const ro_tensor *c,
        const ro_op_bias_correction_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "bias_correction", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->beta),
    };
    const ro_tensor *const in[] = {c};
    return ro_typed_call(ctx, RO_OP_BIAS_CORRECTION, 1, in, attr, out);
}

ro_status ro_op_clip_scale(ro_ctx *ctx, const ro_tensor *sumsq,
        const ro_op_clip_scale_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "clip_scale", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->max_norm),
    };
    const ro_tensor *const in[] = {sumsq};
    return ro_typed_call(ctx, RO_OP_CLIP_SCALE, 1, in, attr, out);
}

ro_status ro_op_adamw_m(ro_ctx *ctx, const ro_tensor *m, const ro_tensor *g,
        const ro_tensor *clip, const ro_op_adamw_m_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "adamw_m", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->beta),
    };
    const ro_tensor *const in[] = {m, g, clip};
    return ro_typed_call(ctx, RO_OP_ADAMW_M, 3, in, attr, out);
}

ro_status ro_op_adamw_v(ro_ctx *ctx, const ro_tensor *v, const ro_tensor *g,
        const ro_tensor *clip, const ro_op_adamw_v_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "adamw_v", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->beta),
    };
    const ro_tensor *const in[] = {v, g, clip};
    return ro_typed_call(ctx, RO_OP_ADAMW_V, 3, in, attr, out);
}

ro_status ro_op_adamw_w(ro_ctx *ctx, const ro_tensor *w, const ro_tensor *m, const ro_tensor *v,
        const ro_tensor *c1, const ro_tensor *c2, const ro_tensor *lr,
        const ro_op_adamw_w_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "adamw_w", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->eps),
        ro_attr_f32(attrs->decay),
    };
    const ro_tensor *const in[] = {w, m, v, c1, c2, lr};
    return ro_typed_call(ctx, RO_OP_ADAMW_W, 6, in, attr, out);
}

ro_status ro_op_sgd_m(ro_ctx *ctx, const ro_tensor *m, const ro_tensor *g, const ro_tensor *w,
        const ro_tensor *clip, const ro_op_sgd_m_attrs *attrs, ro_tensor *out) {
    static const ro_op_sgd_m_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->momentum),
        ro_attr_f32(attrs->decay),
    };
    const ro_tensor *const in[] = {m, g, w, clip};
    return ro_typed_call(ctx, RO_OP_SGD_M, 4, in, attr, out);
}

ro_status ro_op_sgd_w(ro_ctx *ctx, const ro_tensor *w, const ro_tensor *m, const ro_tensor *lr,
        ro_tensor *out) {
    const ro_tensor *const in[] = {w, m, lr};
    return ro_typed_call(ctx, RO_OP_SGD_W, 3, in, NULL, out);
}

ro_status ro_op_sgd_nesterov(ro_ctx *ctx, const ro_tensor *w, const ro_tensor *m,
        const ro_tensor *g, const ro_tensor *clip, const ro_tensor *lr,
        const ro_op_sgd_nesterov_attrs *attrs, ro_tensor *out) {
    static const ro_op_sgd_nesterov_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->momentum),
        ro_attr_f32(attrs->decay),
    };
    const ro_tensor *const in[] = {w, m, g, clip, lr};
    return ro_typed_call(ctx, RO_OP_SGD_NESTEROV, 5, in, attr, out);
}

ro_status ro_op_tanh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_TANH, 1, in, NULL, out);
}

ro_status ro_op_erf(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ERF, 1, in, NULL, out);
}

ro_status ro_op_sigmoid(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SIGMOID, 1, in, NULL, out);
}

ro_status ro_op_silu(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SILU, 1, in, NULL, out);
}

ro_status ro_op_gelu_erf(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_GELU_ERF, 1, in, NULL, out);
}

ro_status ro_op_tanh_grad(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *dy, ro_tensor *out) {
    const ro_tensor *const in[] = {y, dy};
    return ro_typed_call(ctx, RO_OP_TANH_GRAD, 2, in, NULL, out);
}

ro_status ro_op_erf_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy, ro_tensor *out) {
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_ERF_GRAD, 2, in, NULL, out);
}

ro_status ro_op_sigmoid_grad(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *dy,
        ro_tensor *out) {
    const ro_tensor *const in[] = {y, dy};
    return ro_typed_call(ctx, RO_OP_SIGMOID_GRAD, 2, in, NULL, out);
}

ro_status ro_op_silu_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy, ro_tensor *out) {
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_SILU_GRAD, 2, in, NULL, out);
}

ro_status ro_op_gelu_erf_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        ro_tensor *out) {
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_GELU_ERF_GRAD, 2, in, NULL, out);
}

ro_status ro_op_softmax(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m, const ro_tensor *l,
        ro_tensor *out) {
    const ro_tensor *const in[] = {x, m, l};
    return ro_typed_call(ctx, RO_OP_SOFTMAX, 3, in, NULL, out);
}

ro_status ro_op_softmax_grad(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *dy,
        const ro_tensor *d, ro_tensor *out) {
    const ro_tensor *const in[] = {y, dy, d};
    return ro_typed_call(ctx, RO_OP_SOFTMAX_GRAD, 3, in, NULL, out);
}

ro_status ro_op_log_softmax(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, ro_tensor *out) {
    const ro_tensor *const in[] = {x, m, l};
    return ro_typed_call(ctx, RO_OP_LOG_SOFTMAX, 3, in, NULL, out);
}

ro_status ro_op_log_softmax_grad(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *dy,
        const ro_tensor *s, ro_tensor *out) {
    const ro_tensor *const in[] = {y, dy, s};
    return ro_typed_call(ctx, RO_OP_LOG_SOFTMAX_GRAD, 3, in, NULL, out);
}

ro_status ro_op_xent_ignore(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, const ro_tensor *ids, const ro_op_xent_ignore_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "xent_ignore", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->ignore,
    };
    const ro_tensor *const in[] = {x, m, l, ids};
    return ro_typed_call(ctx, RO_OP_XENT_IGNORE, 4, in, attr, out);
}

ro_status ro_op_xent_ignore_grad(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m,
        const ro_tensor *l, const ro_tensor *ids, const ro_tensor *dloss,
        const ro_op_xent_ignore_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "xent_ignore_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->ignore,
    };
    const ro_tensor *const in[] = {x, m, l, ids, dloss};
    return ro_typed_call(ctx, RO_OP_XENT_IGNORE_GRAD, 5, in, attr, out);
}

ro_status ro_op_kept(ro_ctx *ctx, const ro_tensor *ids, const ro_op_kept_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "kept", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->ignore,
    };
    const ro_tensor *const in[] = {ids};
    return ro_typed_call(ctx, RO_OP_KEPT, 1, in, attr, out);
}

ro_status ro_op_sum_axis(ro_ctx *ctx, const ro_tensor *x, const ro_op_sum_axis_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_sum_axis_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SUM_AXIS, 1, in, attr, out);
}

ro_status ro_op_max_axis(ro_ctx *ctx, const ro_tensor *x, const ro_op_max_axis_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_max_axis_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_MAX_AXIS, 1, in, attr, out);
}

ro_status ro_op_argmax(ro_ctx *ctx, const ro_tensor *x, const ro_op_argmax_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_argmax_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ARGMAX, 1, in, attr, out);
}

ro_status ro_op_max_grad(ro_ctx *ctx, const ro_tensor *at, const ro_tensor *dy,
        const ro_op_max_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "max_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->count,
    };
    const ro_tensor *const in[] = {at, dy};
    return ro_typed_call(ctx, RO_OP_MAX_GRAD, 2, in, attr, out);
}

ro_status ro_op_expand(ro_ctx *ctx, const ro_tensor *x, const ro_op_expand_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "expand", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->count,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_EXPAND, 1, in, attr, out);
}

ro_status ro_op_rmsnorm(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *rstd,
        const ro_tensor *gamma, ro_tensor *out) {
    const ro_tensor *const in[] = {x, rstd, gamma};
    return ro_typed_call(ctx, RO_OP_RMSNORM, 3, in, NULL, out);
}

ro_status ro_op_rms_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *gamma,
        const ro_tensor *x, const ro_tensor *rstd, const ro_tensor *sgx, ro_tensor *out) {
    const ro_tensor *const in[] = {dy, gamma, x, rstd, sgx};
    return ro_typed_call(ctx, RO_OP_RMS_DX, 5, in, NULL, out);
}

ro_status ro_op_reduce_rms_gx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *gamma,
        const ro_tensor *x, const ro_tensor *rstd, const ro_op_reduce_rms_gx_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_reduce_rms_gx_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(dy),
        attrs->block != 0 ? attrs->block : RO_REDUCE_BLOCK,
    };
    const ro_tensor *const in[] = {dy, gamma, x, rstd};
    return ro_typed_call(ctx, RO_OP_REDUCE_RMS_GX, 4, in, attr, out);
}

ro_status ro_op_rms_dgamma(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *x,
        const ro_tensor *rstd, const ro_op_rms_dgamma_attrs *attrs, ro_tensor *out) {
    static const ro_op_rms_dgamma_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(dy),
    };
    const ro_tensor *const in[] = {dy, x, rstd};
    return ro_typed_call(ctx, RO_OP_RMS_DGAMMA, 3, in, attr, out);
}

ro_status ro_op_conv2d(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *w,
        const ro_op_conv2d_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
    };
    const ro_tensor *const in[] = {x, w};
    return ro_typed_call(ctx, RO_OP_CONV2D, 2, in, attr, out);
}

ro_status ro_op_conv2d_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *w,
        const ro_op_conv2d_dx_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_dx_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
    };
    const ro_tensor *const in[] = {dy, w};
    return ro_typed_call(ctx, RO_OP_CONV2D_DX, 2, in, attr, out);
}

ro_status ro_op_conv2d_dw(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        const ro_op_conv2d_dw_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_dw_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
    };
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_CONV2D_DW, 2, in, attr, out);
}

ro_status ro_op_conv2d_fixed(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *w,
        const ro_op_conv2d_fixed_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_fixed_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
        attrs->bits != 0 ? attrs->bits : RO_FIXED_24,
    };
    const ro_tensor *const in[] = {x, w};
    return ro_typed_call(ctx, RO_OP_CONV2D_FIXED, 2, in, attr, out);
}

ro_status ro_op_conv2d_fixed_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *w,
        const ro_op_conv2d_fixed_dx_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_fixed_dx_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
        attrs->bits != 0 ? attrs->bits : RO_FIXED_24,
    };
    const ro_tensor *const in[] = {dy, w};
    return ro_typed_call(ctx, RO_OP_CONV2D_FIXED_DX, 2, in, attr, out);
}

ro_status ro_op_conv2d_fixed_dw(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *dy,
        const ro_op_conv2d_fixed_dw_attrs *attrs, ro_tensor *out) {
    static const ro_op_conv2d_fixed_dw_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->stride_h != 0 ? attrs->stride_h : 1,
        attrs->stride_w != 0 ? attrs->stride_w : 1,
        attrs->pad_h,
        attrs->pad_w,
        attrs->dilation_h != 0 ? attrs->dilation_h : 1,
        attrs->dilation_w != 0 ? attrs->dilation_w : 1,
        attrs->groups != 0 ? attrs->groups : 1,
        attrs->bits != 0 ? attrs->bits : RO_FIXED_24,
    };
    const ro_tensor *const in[] = {x, dy};
    return ro_typed_call(ctx, RO_OP_CONV2D_FIXED_DW, 2, in, attr, out);
}

ro_status ro_op_max_pool2d(ro_ctx *ctx, const ro_tensor *x, const ro_op_max_pool2d_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "max_pool2d", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kernel_h,
        attrs->kernel_w,
        attrs->stride_h,
        attrs->stride_w,
        attrs->pad_h,
        attrs->pad_w,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_MAX_POOL2D, 1, in, attr, out);
}

ro_status ro_op_max_pool2d_index(ro_ctx *ctx, const ro_tensor *x,
        const ro_op_max_pool2d_index_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "max_pool2d_index", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kernel_h,
        attrs->kernel_w,
        attrs->stride_h,
        attrs->stride_w,
        attrs->pad_h,
        attrs->pad_w,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_MAX_POOL2D_INDEX, 1, in, attr, out);
}

ro_status ro_op_max_pool2d_grad(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *index,
        const ro_op_max_pool2d_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "max_pool2d_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kernel_h,
        attrs->kernel_w,
        attrs->stride_h,
        attrs->stride_w,
        attrs->pad_h,
        attrs->pad_w,
    };
    const ro_tensor *const in[] = {dy, index};
    return ro_typed_call(ctx, RO_OP_MAX_POOL2D_GRAD, 2, in, attr, out);
}

ro_status ro_op_avg_pool2d(ro_ctx *ctx, const ro_tensor *x, const ro_op_avg_pool2d_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "avg_pool2d", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kernel_h,
        attrs->kernel_w,
        attrs->stride_h,
        attrs->stride_w,
        attrs->pad_h,
        attrs->pad_w,
        attrs->count_pad,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_AVG_POOL2D, 1, in, attr, out);
}

ro_status ro_op_avg_pool2d_grad(ro_ctx *ctx, const ro_tensor *dy,
        const ro_op_avg_pool2d_grad_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "avg_pool2d_grad", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kernel_h,
        attrs->kernel_w,
        attrs->stride_h,
        attrs->stride_w,
        attrs->pad_h,
        attrs->pad_w,
        attrs->count_pad,
    };
    const ro_tensor *const in[] = {dy};
    return ro_typed_call(ctx, RO_OP_AVG_POOL2D_GRAD, 1, in, attr, out);
}

ro_status ro_op_bn_mean(ro_ctx *ctx, const ro_tensor *x, const ro_op_bn_mean_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_bn_mean_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_BN_MEAN, 1, in, attr, out);
}

ro_status ro_op_bn_sqdev(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *mean,
        const ro_op_bn_sqdev_attrs *attrs, ro_tensor *out) {
    static const ro_op_bn_sqdev_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(x),
    };
    const ro_tensor *const in[] = {x, mean};
    return ro_typed_call(ctx, RO_OP_BN_SQDEV, 2, in, attr, out);
}

ro_status ro_op_bn_merge_mean(ro_ctx *ctx, const ro_tensor *m,
        const ro_op_bn_merge_mean_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "bn_merge_mean", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(m),
        attrs->rows,
        attrs->per,
    };
    const ro_tensor *const in[] = {m};
    return ro_typed_call(ctx, RO_OP_BN_MERGE_MEAN, 1, in, attr, out);
}

ro_status ro_op_bn_merge_sqdev(ro_ctx *ctx, const ro_tensor *m, const ro_tensor *s,
        const ro_op_bn_merge_sqdev_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "bn_merge_sqdev", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(m),
        attrs->rows,
        attrs->per,
    };
    const ro_tensor *const in[] = {m, s};
    return ro_typed_call(ctx, RO_OP_BN_MERGE_SQDEV, 2, in, attr, out);
}

ro_status ro_op_batchnorm(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *mean,
        const ro_tensor *rstd, const ro_tensor *gamma, const ro_tensor *beta, ro_tensor *out) {
    const ro_tensor *const in[] = {x, mean, rstd, gamma, beta};
    return ro_typed_call(ctx, RO_OP_BATCHNORM, 5, in, NULL, out);
}

ro_status ro_op_bn_dgamma(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_op_bn_dgamma_attrs *attrs,
        ro_tensor *out) {
    static const ro_op_bn_dgamma_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->cols ? attrs->cols : ro_last_of(dy),
    };
    const ro_tensor *const in[] = {dy, x, mean, rstd};
    return ro_typed_call(ctx, RO_OP_BN_DGAMMA, 4, in, attr, out);
}

ro_status ro_op_bn_dx(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *x,
        const ro_tensor *mean, const ro_tensor *rstd, const ro_tensor *gamma,
        const ro_tensor *dbeta, const ro_tensor *dgamma, ro_tensor *out) {
    const ro_tensor *const in[] = {dy, x, mean, rstd, gamma, dbeta, dgamma};
    return ro_typed_call(ctx, RO_OP_BN_DX, 7, in, NULL, out);
}

ro_status ro_op_bn_running(ro_ctx *ctx, const ro_tensor *r, const ro_tensor *v,
        const ro_op_bn_running_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "bn_running", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->momentum),
        ro_attr_f32(attrs->divisor != 0 ? attrs->divisor : 1),
    };
    const ro_tensor *const in[] = {r, v};
    return ro_typed_call(ctx, RO_OP_BN_RUNNING, 2, in, attr, out);
}

ro_status ro_op_read_images(ro_ctx *ctx, const ro_tensor *data, const ro_tensor *step,
        const ro_op_read_images_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "read_images", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        attrs->batch,
        attrs->first,
        attrs->record,
        attrs->offset,
        ro_attr_f32(attrs->scale),
        ro_attr_f32(attrs->shift),
    };
    const ro_tensor *const in[] = {data, step};
    return ro_typed_call(ctx, RO_OP_READ_IMAGES, 2, in, attr, out);
}

ro_status ro_op_read_labels(ro_ctx *ctx, const ro_tensor *data, const ro_tensor *step,
        const ro_op_read_labels_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "read_labels", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        attrs->batch,
        attrs->first,
        attrs->record,
        attrs->offset,
    };
    const ro_tensor *const in[] = {data, step};
    return ro_typed_call(ctx, RO_OP_READ_LABELS, 2, in, attr, out);
}

ro_status ro_op_reshape(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_RESHAPE, 1, in, NULL, out);
}

ro_status ro_op_gather_grad(ro_ctx *ctx, const ro_tensor *dy, const ro_tensor *ids,
        const ro_op_gather_grad_attrs *attrs, ro_tensor *out) {
    static const ro_op_gather_grad_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {dy, ids};
    return ro_typed_call(ctx, RO_OP_GATHER_GRAD, 2, in, attr, out);
}

ro_status ro_op_uniform(ro_ctx *ctx, const ro_op_uniform_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "uniform", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        ro_attr_f32(attrs->low),
        ro_attr_f32(attrs->high),
    };
    return ro_typed_call(ctx, RO_OP_UNIFORM, 0, NULL, attr, out);
}

ro_status ro_op_put_rows(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *rows,
        const ro_tensor *at, const ro_op_put_rows_attrs *attrs, ro_tensor *out) {
    static const ro_op_put_rows_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x, rows, at};
    return ro_typed_call(ctx, RO_OP_PUT_ROWS, 3, in, attr, out);
}

ro_status ro_op_permutation(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_permutation_attrs *attrs, ro_tensor *out) {
    static const ro_op_permutation_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
    };
    const ro_tensor *const in[] = {step};
    return ro_typed_call(ctx, RO_OP_PERMUTATION, 1, in, attr, out);
}

ro_status ro_op_rope_turns(ro_ctx *ctx, const ro_op_rope_turns_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "rope_turns", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        ro_attr_f32(attrs->base),
        attrs->kind,
        ro_attr_f32(attrs->factor),
        ro_attr_f32(attrs->low),
        ro_attr_f32(attrs->high),
        attrs->original,
    };
    return ro_typed_call(ctx, RO_OP_ROPE_TURNS, 0, NULL, attr, out);
}

ro_status ro_op_rope(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *position,
        const ro_tensor *turns, const ro_op_rope_attrs *attrs, ro_tensor *out) {
    static const ro_op_rope_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->pairs,
        attrs->inverse,
    };
    const ro_tensor *const in[] = {x, position, turns};
    return ro_typed_call(ctx, RO_OP_ROPE, 3, in, attr, out);
}

ro_status ro_op_weight(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *m, ro_tensor *out) {
    const ro_tensor *const in[] = {x, m};
    return ro_typed_call(ctx, RO_OP_WEIGHT, 2, in, NULL, out);
}

ro_status ro_op_top_k(ro_ctx *ctx, const ro_tensor *q, const ro_op_top_k_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "top_k", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->k,
    };
    const ro_tensor *const in[] = {q};
    return ro_typed_call(ctx, RO_OP_TOP_K, 1, in, attr, out);
}

ro_status ro_op_top_p(ro_ctx *ctx, const ro_tensor *q, const ro_op_top_p_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "top_p", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->p,
    };
    const ro_tensor *const in[] = {q};
    return ro_typed_call(ctx, RO_OP_TOP_P, 1, in, attr, out);
}

ro_status ro_op_keep_top(ro_ctx *ctx, const ro_tensor *q, const ro_tensor *cut, ro_tensor *out) {
    const ro_tensor *const in[] = {q, cut};
    return ro_typed_call(ctx, RO_OP_KEEP_TOP, 2, in, NULL, out);
}

ro_status ro_op_random_words(ro_ctx *ctx, const ro_tensor *key, const ro_tensor *position,
        const ro_op_random_words_attrs *attrs, ro_tensor *out) {
    static const ro_op_random_words_attrs zeros;
    attrs = attrs ? attrs : &zeros;
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
    };
    const ro_tensor *const in[] = {key, position};
    return ro_typed_call(ctx, RO_OP_RANDOM_WORDS, 2, in, attr, out);
}

ro_status ro_op_draw(ro_ctx *ctx, const ro_tensor *q, const ro_tensor *words, ro_tensor *out) {
    const ro_tensor *const in[] = {q, words};
    return ro_typed_call(ctx, RO_OP_DRAW, 2, in, NULL, out);
}

ro_status ro_op_integer(ro_ctx *ctx, const ro_tensor *a, const ro_tensor *b,
        const ro_op_integer_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "integer", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kind,
    };
    const ro_tensor *const in[] = {a, b};
    return ro_typed_call(ctx, RO_OP_INTEGER, 2, in, attr, out);
}

ro_status ro_op_round(ro_ctx *ctx, const ro_tensor *x, const ro_op_round_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "round", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->kind,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ROUND, 1, in, attr, out);
}

ro_status ro_op_sin(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SIN, 1, in, NULL, out);
}

ro_status ro_op_cos(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_COS, 1, in, NULL, out);
}

ro_status ro_op_tan(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_TAN, 1, in, NULL, out);
}

ro_status ro_op_asin(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ASIN, 1, in, NULL, out);
}

ro_status ro_op_acos(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ACOS, 1, in, NULL, out);
}

ro_status ro_op_atan(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ATAN, 1, in, NULL, out);
}

ro_status ro_op_sinh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_SINH, 1, in, NULL, out);
}

ro_status ro_op_cosh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_COSH, 1, in, NULL, out);
}

ro_status ro_op_asinh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ASINH, 1, in, NULL, out);
}

ro_status ro_op_acosh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ACOSH, 1, in, NULL, out);
}

ro_status ro_op_atanh(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ATANH, 1, in, NULL, out);
}

ro_status ro_op_log1p(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_LOG1P, 1, in, NULL, out);
}

ro_status ro_op_expm1(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_EXPM1, 1, in, NULL, out);
}

ro_status ro_op_log2(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_LOG2, 1, in, NULL, out);
}

ro_status ro_op_exp2(ro_ctx *ctx, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_EXP2, 1, in, NULL, out);
}

ro_status ro_op_atan2(ro_ctx *ctx, const ro_tensor *y, const ro_tensor *x, ro_tensor *out) {
    const ro_tensor *const in[] = {y, x};
    return ro_typed_call(ctx, RO_OP_ATAN2, 2, in, NULL, out);
}

ro_status ro_op_pow(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *y, ro_tensor *out) {
    const ro_tensor *const in[] = {x, y};
    return ro_typed_call(ctx, RO_OP_POW, 2, in, NULL, out);
}

ro_status ro_op_normal_at(ro_ctx *ctx, const ro_tensor *step, const ro_op_normal_at_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "normal_at", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        ro_attr_f32(attrs->mean),
        ro_attr_f32(attrs->std),
    };
    const ro_tensor *const in[] = {step};
    return ro_typed_call(ctx, RO_OP_NORMAL_AT, 1, in, attr, out);
}

ro_status ro_op_uniform_at(ro_ctx *ctx, const ro_tensor *step,
        const ro_op_uniform_at_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "uniform_at", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->seed,
        attrs->stream,
        ro_attr_f32(attrs->low),
        ro_attr_f32(attrs->high),
    };
    const ro_tensor *const in[] = {step};
    return ro_typed_call(ctx, RO_OP_UNIFORM_AT, 1, in, attr, out);
}

ro_status ro_op_take_along(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *ids,
        const ro_op_take_along_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "take_along", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x, ids};
    return ro_typed_call(ctx, RO_OP_TAKE_ALONG, 2, in, attr, out);
}

ro_status ro_op_put_along(ro_ctx *ctx, const ro_tensor *x, const ro_tensor *ids,
        const ro_tensor *rows, const ro_op_put_along_attrs *attrs, ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "put_along", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->kind,
    };
    const ro_tensor *const in[] = {x, ids, rows};
    return ro_typed_call(ctx, RO_OP_PUT_ALONG, 3, in, attr, out);
}

ro_status ro_op_argsort(ro_ctx *ctx, const ro_tensor *x, const ro_op_argsort_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "argsort", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->descending,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ARGSORT, 1, in, attr, out);
}

ro_status ro_op_running(ro_ctx *ctx, const ro_tensor *x, const ro_op_running_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "running", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
        attrs->kind,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_RUNNING, 1, in, attr, out);
}

ro_status ro_op_isum(ro_ctx *ctx, const ro_tensor *x, const ro_op_isum_attrs *attrs,
        ro_tensor *out) {
    if (!attrs)
        return ro_missing(ctx, "isum", "attrs");
    const int64_t attr[RO_MAX_ATTRS] = {
        attrs->axis,
    };
    const ro_tensor *const in[] = {x};
    return ro_typed_call(ctx, RO_OP_ISUM, 1, in, attr, out);
}

/* clang-format on */
