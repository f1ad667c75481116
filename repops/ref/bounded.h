/* Private to repops/ref: elements of free operators with bounds of their errors, SPEC.md section
 * 14.5. Formulas are those of the kernels (repops/free), evaluated in one way. */
#ifndef RO_REF_BOUNDED_H
#define RO_REF_BOUNDED_H

#include "repops/free/approx.h"
#include "repops/ref/ref.h"

/* The bound holds for all orders, up to rounding in itself. */
typedef approx ro_bounded_fn(const ro_call *call, int64_t e, const ro_access *in);

ro_bounded_fn ro_bounded_attn_av;
ro_bounded_fn ro_bounded_arithmetic, ro_bounded_single, ro_bounded_function, ro_bounded_bn_running,
    ro_bounded_adamw, ro_bounded_adamw_w, ro_bounded_sgd, ro_bounded_rope;
ro_bounded_fn ro_bounded_reduce, ro_bounded_columns, ro_bounded_sum_axis,
    ro_bounded_repeat_heads_grad;
ro_bounded_fn ro_bounded_ln_rstd, ro_bounded_layernorm, ro_bounded_norm_dx, ro_bounded_rmsnorm,
    ro_bounded_softmax, ro_bounded_log_softmax, ro_bounded_softmax_grad, ro_bounded_xent,
    ro_bounded_xent_grad;
ro_bounded_fn ro_bounded_attn_exp, ro_bounded_attn_prob, ro_bounded_attn_dscore, ro_bounded_attn_l,
    ro_bounded_attn_out;
ro_bounded_fn ro_bounded_avg_pool2d, ro_bounded_pool2d_grad, ro_bounded_bn_mean,
    ro_bounded_bn_sqdev, ro_bounded_bn_dgamma, ro_bounded_bn_merge_mean, ro_bounded_bn_merge_sqdev,
    ro_bounded_batchnorm, ro_bounded_bn_dx;

/* The way of the reference: no contraction, Horner's scheme. */
static const order ro_plain = {0, 0};

/* Element `index` of input `input`, as a number. */
RO_INLINE approx input_at(const ro_access *in, int input, int64_t index) {
    return ap_exact((real)loadf(in, input, index));
}

RO_INLINE approx attr_at(const ro_call *call, int index) {
    return ap_exact((real)attrf(call, index));
}

/* ---- sums: terms in the order of SPEC, one after the other, from +0 ---- */

typedef struct {
    real sum, size;
    uint64_t terms;
} bounded_sum;

/* `excess`: how far the error of the term, in roundings over the number of terms, may exceed what
 * sum_of says of all. */
RO_INLINE void add_excess(bounded_sum *s, real term, real excess) {
    const real size = ap_abs(term);
    s->sum = s->sum + term;
    s->size = s->size + (size > 0 ? size * (1 + excess) : size);
    s->terms++;
}

RO_INLINE void add_term(bounded_sum *s, real term) {
    add_excess(s, term, 0);
}

/* The sum of terms with `roundings` each. */
RO_INLINE approx sum_of(const bounded_sum *s, double roundings) {
    return (approx){s->sum, sum_error((int64_t)s->terms, roundings) * s->size};
}

/* ---- folds: the steps of ro_ref_step, with the same terms each ---- */

typedef void ro_bounded_step_fn(const ro_call *call, int64_t e, int64_t step, bounded_sum *sum,
                                const ro_access *in);
typedef approx ro_bounded_finish_fn(const ro_call *call, const bounded_sum *sum);

ro_bounded_step_fn ro_bounded_matmul_step, ro_bounded_conv_step, ro_bounded_scatter_step;
ro_bounded_finish_fn ro_bounded_matmul, ro_bounded_plain_sum;

#endif
