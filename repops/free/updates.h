/* Formulas of updates of parameters, SPEC.md section 9. */
#ifndef REPOPS_FREE_UPDATES_H
#define REPOPS_FREE_UPDATES_H

#include "repops/free/approx.h"

/* p: clip; q: beta; r: 1 - beta. */
RO_INLINE approx adamw_m_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.q, at(o.a, i), ap_mul(o.r, ap_mul(at(o.b, i), o.p)), how);
}

RO_INLINE approx adamw_v_of(operands o, int64_t i, order how) {
    const approx g = ap_mul(at(o.b, i), o.p);
    return ap_mul_add(o.q, at(o.a, i), ap_mul(o.r, ap_mul(g, g)), how);
}

/* p: c1; q: c2; r: -lr; s: eps; t: decay. The root halves the error of v / c2. */
RO_INLINE approx adamw_w_of(operands o, int64_t i, order how) {
    const approx w = at(o.a, i), root = ap_relative(ap_sqrt_of((real)o.c[i] / o.q.v), 2);
    const approx m = ap_relative(ap_unless_infinite(root.v, (real)o.b[i] / o.p.v), 1);
    const approx sum = ap_add(root, o.s);
    /* A sum of two terms >= 0: its error is the root's roundings and the sum's own. */
    const approx u = o.s.v >= 0 ? ap_div(m, ap_relative(sum.v, 3)) : ap_div(m, sum);
    return ap_mul_add(o.r, ap_mul_add(o.t, w, u, how), w, how);
}

/* p: clip; q: momentum; r: decay. */
RO_INLINE approx decayed(approx g, approx w, operands o, order how) {
    return ap_mul_add(o.r, w, ap_mul(g, o.p), how);
}

RO_INLINE approx sgd_m_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.q, at(o.a, i), decayed(at(o.b, i), at(o.c, i), o, how), how);
}

/* s: -lr. */
RO_INLINE approx sgd_w_of(operands o, int64_t i, order how) {
    return ap_mul_add(o.s, at(o.b, i), at(o.a, i), how);
}

RO_INLINE approx sgd_nesterov_of(operands o, int64_t i, order how) {
    const approx w = at(o.a, i), d = decayed(at(o.c, i), w, o, how);
    const approx m = ap_mul_add(o.q, at(o.b, i), d, how);
    return ap_either_sign(ap_mul_add(o.s, m, w, how), m, o.s);
}

#endif
