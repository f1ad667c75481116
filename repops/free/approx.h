/* Values with bounds of their errors: running error analysis (Wilkinson, 1986; Higham, "Accuracy
 * and Stability of Numerical Algorithms", section 3.3). Each function computes as the profile says,
 * but adds the bound of the variant with the most roundings, so that it holds for all of them.
 * Unused bounds cost nothing, since the functions are inlined.
 *
 * |fl(x) - x| <= u |fl(x)|; underflow cannot occur, as the inputs are f32 and the type is f64.
 *
 * As long as numbers are only multiplied, roundings are counted: their number is a constant where
 * the call is inlined, and costs nothing. Terms of second order in u are left out: bounds are
 * enlarged in the end, by 2^-9 of them or more, far more than a few roundings. */
#ifndef REPOPS_FREE_APPROX_H
#define REPOPS_FREE_APPROX_H

#include "repops/free/real.h"

/* |v - exact| <= e + k u |v| in binary64; in binary32 e and k are not used. */
typedef struct {
    real v;
    double e;
    double k;
    int relative; /* whether e is 0 */
} approx;

/* The members of a profile that formulas depend on. They are constants where a call is inlined. */
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

/* Returns y, or a NaN if x overflowed: y / x would otherwise be 0 (SPEC 7.1 and 9). */
RO_INLINE real ap_unless_infinite(real x, real y) {
    return x < (real)__builtin_inf() ? y : (real)__builtin_nan("");
}

RO_INLINE double ap_size(real x) {
    return (double)ap_abs(x);
}

/* ---- bounds ----
 *
 * Parts that are 0 by `relative` or by k = 0 are left out of sums and products: 0 times an infinity
 * would be a NaN, and so no compiler may leave it out by itself. */

RO_INLINE double ap_total(double a, double b) {
#if defined(__CUDACC__)
    return a + b;
#else
    if (__builtin_constant_p(a) && a == 0)
        return b;
    return __builtin_constant_p(b) && b == 0 ? a : a + b;
#endif
}

RO_INLINE int ap_is_exact(approx a) {
    return a.relative && a.k == 0;
}

/* Returns k roundings of a number of size `size`. */
RO_INLINE double ap_roundings(double k, double size) {
    return k == 0 ? 0 : k * RO_UNIT * size;
}

/* Returns the error that a's part e causes when multiplied by a number of size `size`. */
RO_INLINE double ap_part(approx a, double size) {
    return a.relative ? 0 : a.e * size;
}

RO_INLINE double ap_error(approx a) {
    return ap_total(ap_part(a, 1), ap_roundings(a.k, ap_size(a.v)));
}

/* Returns the error that both parts e cause in a product. */
RO_INLINE double ap_product_error(approx a, approx b) {
    return ap_total(ap_part(b, ap_size(a.v)), ap_part(a, ap_total(ap_size(b.v), ap_part(b, 1))));
}

/* ---- operations ---- */

RO_INLINE approx ap_exact(real v) {
    return (approx){v, 0, 0, 1};
}

/* Makes an approx of v whose relative error is at most k roundings. */
RO_INLINE approx ap_relative(real v, double k) {
    return (approx){v, 0, k, 1};
}

RO_INLINE approx ap_negative(approx a) {
    a.v = -a.v;
    return a;
}

RO_INLINE approx ap_add(approx a, approx b) {
    return (approx){a.v + b.v, ap_total(ap_error(a), ap_error(b)), 1,
                    ap_is_exact(a) && ap_is_exact(b)};
}

RO_INLINE approx ap_sub(approx a, approx b) {
    return ap_add(a, ap_negative(b));
}

RO_INLINE approx ap_mul(approx a, approx b) {
    return (approx){a.v * b.v, ap_product_error(a, b), a.k + b.k + 1, a.relative && b.relative};
}

/* Computes a * b + c, and counts two roundings, for profiles that do not fuse them. */
RO_INLINE approx ap_mul_add(approx a, approx b, approx c, order o) {
    const real v = free_mul_add(a.v, b.v, c.v, o.contract);
    const double product = ap_roundings(a.k + b.k + 1, ap_size(a.v * b.v));
    return (approx){v, ap_total(ap_total(product, ap_product_error(a, b)), ap_error(c)), 1, 0};
}

/* Returns whether another profile may give the number the other sign. The reference's value is
 * between those of two profiles, so kernels report such a number wherever the reference does. */
RO_INLINE int ap_may_change_sign(approx a) {
    return ap_size(a.v) < RO_SIGN_REACH * ap_error(a);
}

/* Widens y, the product of a and b, to zeros of both signs if b is 0 and rounding may change the
 * sign of a. Only sums need this: with f32 arguments, no other factor or function comes so near to
 * zero. */
RO_INLINE approx ap_either_sign(approx y, approx a, approx b) {
    y.e += b.v == 0 && ap_may_change_sign(a) ? 0x1p-1000 : 0;
    y.relative = 0;
    return y;
}

RO_INLINE approx ap_div(approx a, approx b) {
    const real v = a.v / b.v;
    const double error = ap_error(b), least = ap_size(b.v) - error;
    if (a.relative && b.relative)
        return ap_relative(v, a.k + b.k + 1);
    const double e = least > 0 ? (ap_error(a) + ap_size(v) * error) / least : __builtin_inf();
    return (approx){v, e, 1, 0};
}

/* Divides by an exact b. */
RO_INLINE approx ap_div_exact(approx a, real b) {
    return (approx){a.v / b, a.relative ? 0 : a.e / ap_size(b), a.k + 1, a.relative};
}

/* Returns the error of a sum of n terms that have `term` roundings each, divided by the sum of
 * their magnitudes: SPEC 14.3. */
RO_INLINE double sum_error(int64_t n, double term) {
    return ((double)n + 2 + term) * RO_UNIT;
}

/* ---- formulas of one element ---- */

/* The operands of a formula: tensors from element i = 0 on, and numbers that all elements share. */
typedef struct {
    const float *a, *b, *c, *d, *e, *f, *g;
    approx p, q, r, s, t;
} operands;

typedef approx formula(operands o, int64_t i, order how);

RO_INLINE approx at(const float *x, int64_t i) {
    return ap_exact((real)x[i]);
}

#endif
