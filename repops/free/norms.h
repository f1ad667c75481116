/* Formulas of layer norm and RMS norm except their sums, SPEC.md sections 7.1 and 7.3, and of batch
 * norm, section 12.3. */
#ifndef REPOPS_FREE_NORMS_H
#define REPOPS_FREE_NORMS_H

#include "repops/free/approx.h"

RO_INLINE approx normal_of(approx x, approx mean, approx rstd) {
    return ap_mul(ap_sub(x, mean), rstd);
}

RO_INLINE approx ln_rstd_of(operands o, int64_t i, order how) {
    const approx mean = ap_div_exact(at(o.a, i), o.p.v), square = ap_add(mean, o.q);
    (void)how;
    /* An error E of the square becomes E / (2 root) if it is small, and at most E / root if it is
     * large. */
    const real root = ap_sqrt_of(square.v);
    const approx r = {root, ap_error(square) / ap_size(root), 1, 0};
    return ap_div(ap_exact(ap_unless_infinite(square.v, 1)), r);
}

RO_INLINE approx layernorm_of(operands o, int64_t i, order how) {
    const approx xh = normal_of(at(o.a, i), o.p, o.q);
    return ap_mul_add(xh, at(o.b, i), at(o.c, i), how);
}

/* p, q: mean and rstd; r, s: sg / n and sgx / n. */
RO_INLINE approx ln_dx_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.a, i), at(o.b, i)), xh = normal_of(at(o.c, i), o.p, o.q);
    const approx d = ap_mul_add(ap_negative(xh), o.s, ap_sub(g, o.r), how);
    return ap_either_sign(ap_mul(o.q, d), d, o.q);
}

RO_INLINE approx rmsnorm_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_mul(ap_mul(at(o.a, i), o.q), at(o.b, i));
}

RO_INLINE approx rms_dx_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.a, i), at(o.b, i)), xh = ap_mul(at(o.c, i), o.q);
    const approx d = ap_mul_add(ap_negative(xh), o.s, g, how);
    return ap_either_sign(ap_mul(o.q, d), d, o.q);
}

/* ---- batch norm ---- */

/* b to e: mean, rstd, gamma, beta. */
RO_INLINE approx batchnorm_of(operands o, int64_t i, order how) {
    const approx xh = normal_of(at(o.a, i), at(o.b, i), at(o.c, i));
    return ap_mul_add(xh, at(o.d, i), at(o.e, i), how);
}

/* a: dy; b: x; c to g: mean, rstd, gamma, dbeta, dgamma; p: 1 / n. */
RO_INLINE approx bn_dx_of(operands o, int64_t i, order how) {
    const approx rstd = at(o.d, i), xh = normal_of(at(o.b, i), at(o.c, i), rstd);
    const approx dy = ap_sub(at(o.a, i), ap_mul(at(o.f, i), o.p));
    const approx slope = ap_mul(at(o.g, i), o.p);
    const approx d = ap_mul_add(ap_negative(xh), slope, dy, how), scale = ap_mul(at(o.e, i), rstd);
    return ap_either_sign(ap_mul(scale, d), d, scale);
}

/* p: momentum; q: divisor. */
RO_INLINE approx bn_running_of(operands o, int64_t i, order how) {
    const approx r = at(o.a, i), v = ap_div_exact(at(o.b, i), o.q.v);
    return ap_mul_add(o.p, ap_sub(v, r), r, how);
}

#endif
