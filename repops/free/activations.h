/* Formulas of functions of one element and of their gradients, SPEC.md section 6. */
#ifndef REPOPS_FREE_ACTIVATIONS_H
#define REPOPS_FREE_ACTIVATIONS_H

#include "repops/free/functions.h"

/* ---- functions ---- */

/* The relative error comes from rounding the root and the quotient. */
RO_INLINE approx rsqrt_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_relative(1 / ap_sqrt_of((real)o.a[i]), 3);
}

RO_INLINE approx exp_of(operands o, int64_t i, order how) {
    return ap_relative(free_exp((real)o.a[i], how), RO_EXP_ROUNDINGS);
}

RO_INLINE approx log_of(operands o, int64_t i, order how) {
    return ap_relative(free_log((real)o.a[i], how), RO_LOG_ROUNDINGS);
}

RO_INLINE approx tanh_of(operands o, int64_t i, order how) {
    return ap_relative(free_tanh((real)o.a[i], how), RO_TANH_ROUNDINGS);
}

RO_INLINE approx erf_of(operands o, int64_t i, order how) {
    return ap_relative(free_erf((real)o.a[i], how), RO_ERF_ROUNDINGS);
}

RO_INLINE approx sigmoid_of(operands o, int64_t i, order how) {
    return ap_logistic(at(o.a, i), how).p;
}

/* Limits x to where the functions below and their slopes have reached their limits in every type,
 * since an infinity times a factor of 0 would be a NaN. A NaN remains a NaN. */
#define RO_FAR 1000

RO_INLINE approx from_below(const float *x, int64_t i) {
    return ap_exact(x[i] < -RO_FAR ? (real)-RO_FAR : (real)x[i]);
}

RO_INLINE approx from_both_sides(const float *x, int64_t i) {
    return x[i] > RO_FAR ? ap_exact((real)RO_FAR) : from_below(x, i);
}

RO_INLINE approx silu_of(operands o, int64_t i, order how) {
    const approx x = from_below(o.a, i);
    return ap_mul(x, ap_logistic(x, how).p);
}

RO_INLINE approx gelu_erf_of(operands o, int64_t i, order how) {
    const approx x = from_below(o.a, i);
    return ap_mul(x, ap_normal_cdf(x, how));
}

/* Computes 1 + c x^2 for c > 0. Its error is two roundings of the product, which is smaller than
 * the sum, and one of the sum. */
RO_INLINE approx ap_one_and_square(real c, real x, order o) {
    return ap_relative(free_mul_add(c, x * x, 1, o.contract), 3);
}

/* Computes twice the argument v of GELU's tanh, as 0.5 (1 + tanh(v)) is the logistic function of 2
 * v. */
RO_INLINE approx gelu_argument(approx x, order o) {
    const approx w = ap_one_and_square((real)RO_GELU_C1, x.v, o);
    return ap_mul(ap_mul(ap_exact(2 * (real)RO_GELU_C0), x), w);
}

RO_INLINE approx gelu_of(operands o, int64_t i, order how) {
    const approx x = from_below(o.a, i);
    return ap_mul(x, ap_logistic(gelu_argument(x, how), how).p);
}

/* ---- gradients: dy times a slope ---- */

RO_INLINE approx tanh_grad_of(operands o, int64_t i, order how) {
    const approx y = at(o.a, i);
    return ap_mul(at(o.b, i), ap_mul_add(ap_negative(y), y, ap_exact(1), how));
}

RO_INLINE approx sigmoid_grad_of(operands o, int64_t i, order how) {
    const approx y = at(o.a, i);
    (void)how;
    return ap_mul(at(o.b, i), ap_mul(y, ap_sub(ap_exact(1), y)));
}

RO_INLINE approx erf_grad_of(operands o, int64_t i, order how) {
    const approx x = at(o.a, i), e = ap_exp(ap_negative(ap_mul(x, x)), how);
    return ap_mul(at(o.b, i), ap_mul(ap_exact((real)0x1.20dd76p0), e));
}

RO_INLINE approx silu_grad_of(operands o, int64_t i, order how) {
    const approx x = from_both_sides(o.a, i);
    const logistic s = ap_logistic(x, how);
    return ap_mul(at(o.b, i), ap_mul(s.p, ap_mul_add(x, s.q, ap_exact(1), how)));
}

RO_INLINE approx gelu_erf_grad_of(operands o, int64_t i, order how) {
    const approx x = from_both_sides(o.a, i);
    const approx half_square = ap_mul(ap_exact((real)-0.5), ap_mul(x, x));
    const approx xg = ap_mul(x, ap_exp(half_square, how));
    const approx density = ap_exact((real)0x1.988454p-2);
    return ap_mul(at(o.b, i), ap_mul_add(xg, density, ap_normal_cdf(x, how), how));
}

/* With t = tanh: 0.5 (1 + t) = p and 1 - t^2 = 4 p q, so the slope is p + 2 x p q v. */
RO_INLINE approx gelu_grad_of(operands o, int64_t i, order how) {
    const approx x = from_both_sides(o.a, i);
    const logistic s = ap_logistic(gelu_argument(x, how), how);
    const approx w = ap_one_and_square((real)(3.0f * RO_GELU_C1), x.v, how);
    const approx v = ap_mul(ap_exact(2 * (real)RO_GELU_C0), w);
    const approx change = ap_mul(ap_mul(x, v), s.q);
    return ap_mul(at(o.b, i), ap_mul_add(s.p, change, s.p, how));
}

#endif
