/* Formulas of softmax and cross-entropy, SPEC.md section 7.2, and of attention, section 8. */
#ifndef REPOPS_FREE_PROBABILITIES_H
#define REPOPS_FREE_PROBABILITIES_H

#include "repops/free/functions.h"

/* p: the maximum */
RO_INLINE approx attn_exp_of(operands o, int64_t i, order how) {
    return ap_exp(ap_sub(at(o.a, i), o.p), how);
}

/* p: m[r]; q: 1 / l[r]. */
RO_INLINE approx softmax_of(operands o, int64_t i, order how) {
    return ap_mul(attn_exp_of(o, i, how), o.q);
}

/* r: dloss[r]. */
RO_INLINE approx xent_grad_of(operands o, int64_t i, order how) {
    return ap_mul(softmax_of(o, i, how), o.r);
}

/* The gradient at the label's element. */
RO_INLINE approx xent_grad_hit(operands o, int64_t i, order how) {
    const approx d = ap_sub(softmax_of(o, i, how), ap_exact(1));
    return ap_either_sign(ap_mul(d, o.r), d, o.r);
}

RO_INLINE approx softmax_grad_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_mul(at(o.a, i), ap_sub(at(o.b, i), o.p));
}

/* q: log(l[r]). */
RO_INLINE approx log_softmax_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_sub(ap_sub(at(o.a, i), o.p), o.q);
}

RO_INLINE approx log_softmax_grad_of(operands o, int64_t i, order how) {
    return ap_mul_add(ap_negative(ap_exp(at(o.a, i), how)), o.p, at(o.b, i), how);
}

RO_INLINE approx inverse(approx x) {
    return ap_relative(1 / x.v, 1);
}

RO_INLINE approx log_at(approx x, order o) {
    return ap_relative(free_log(x.v, o), RO_LOG_ROUNDINGS);
}

RO_INLINE approx xent_of(approx x, approx m, approx l, order o) {
    return ap_sub(log_at(l, o), ap_sub(x, m));
}

#endif
