/* Values with bounds of their errors: running error analysis (Wilkinson, 1986; Higham, "Accuracy
 * and Stability of Numerical Algorithms", section 3.3). Each function computes as the profile says
 * and adds the bound for the way with the most roundings, so that it holds for all of them. Bounds
 * that nobody reads cost nothing: the functions are inlined.
 *
 * |fl(x) - x| <= u |fl(x)|, and underflow is out of reach: the inputs are f32, the type f64. */
#ifndef REPOPS_FREE_APPROX_H
#define REPOPS_FREE_APPROX_H

#include "repops/free/real.h"

/* |v - exact| <= e, in binary64; in binary32 e means nothing. */
typedef struct {
    real v;
    double e;
} approx;

/* What of a profile formulas depend on; constants where the call is inlined. */
typedef struct {
    int contract, estrin;
} order;

RO_INLINE real ap_abs(real x) {
#if defined(RO_IS_f32)
    return __builtin_fabsf(x);
#else
    return __builtin_fabs(x);
#endif
}

RO_INLINE real ap_sqrt_of(real x) {
#if defined(RO_IS_f32)
    return __builtin_sqrtf(x);
#else
    return __builtin_sqrt(x);
#endif
}

RO_INLINE double ap_size(real x) {
    return (double)ap_abs(x);
}

RO_INLINE approx ap_exact(real v) {
    return (approx){v, 0};
}

/* v has a relative error of at most k roundings. */
RO_INLINE approx ap_relative(real v, double k) {
    return (approx){v, k * RO_UNIT * ap_size(v)};
}

RO_INLINE approx ap_negative(approx a) {
    return (approx){-a.v, a.e};
}

RO_INLINE approx ap_add(approx a, approx b) {
    const real v = a.v + b.v;
    return (approx){v, a.e + b.e + RO_UNIT * ap_size(v)};
}

RO_INLINE approx ap_sub(approx a, approx b) {
    return ap_add(a, ap_negative(b));
}

/* The error of the exact product of two approximations. */
RO_INLINE double ap_product_error(approx a, approx b) {
    return ap_size(a.v) * b.e + a.e * (ap_size(b.v) + b.e);
}

RO_INLINE approx ap_mul(approx a, approx b) {
    const real v = a.v * b.v;
    return (approx){v, ap_product_error(a, b) + RO_UNIT * ap_size(v)};
}

/* a * b + c; where that is two roundings, both. */
RO_INLINE approx ap_mul_add(approx a, approx b, approx c, order o) {
    const real v = free_mul_add(a.v, b.v, c.v, o.contract);
    return (approx){v, ap_product_error(a, b) + c.e + RO_UNIT * (ap_size(a.v * b.v) + ap_size(v))};
}

/* Whether another profile may give it the other sign. The reference's values lie between those of
 * two profiles: what may change signs for the reference may do so for kernels. */
RO_INLINE int ap_may_change_sign(approx a) {
    return ap_size(a.v) < RO_SIGN_REACH * a.e;
}

/* y, in which a is multiplied by b: 0 times an a whose sign a rounding decides is a zero of either
 * sign. Formulas say it of sums alone: other factors have their sign, the functions too, as no f32
 * number is that near to a zero of theirs. */
RO_INLINE approx ap_either_sign(approx y, approx a, approx b) {
    y.e += b.v == 0 && ap_may_change_sign(a) ? 0x1p-1000 : 0;
    return y;
}

RO_INLINE approx ap_div(approx a, approx b) {
    const real v = a.v / b.v;
    const double least = ap_size(b.v) - b.e, size = ap_size(v);
    const double e = least > 0 ? (a.e + size * b.e) / least : __builtin_inf();
    return (approx){v, e + RO_UNIT * size};
}

/* b is exact. */
RO_INLINE approx ap_div_exact(approx a, real b) {
    const real v = a.v / b;
    return (approx){v, a.e / ap_size(b) + RO_UNIT * ap_size(v)};
}

/* The error of a sum of n terms that have themselves `term` roundings each, over the sum of their
 * magnitudes: SPEC 14.3. */
RO_INLINE double sum_error(int64_t n, double term) {
    return ((double)n + 2 + term) * RO_UNIT;
}

/* ---- formulas of one element ---- */

/* Tensors, advanced to the element i = 0, and what is the same for all elements. */
typedef struct {
    const float *a, *b, *c, *d, *e, *f, *g;
    approx p, q, r, s, t;
} operands;

typedef approx formula(operands o, int64_t i, order how);

RO_INLINE approx at(const float *x, int64_t i) {
    return ap_exact((real)x[i]);
}

#endif
