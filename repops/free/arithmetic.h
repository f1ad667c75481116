/* Formulas of arithmetic, SPEC.md section 6. Each is one correctly rounded operation whatever the
 * profile, so its value counts as exact (SPEC 14.3). */
#ifndef REPOPS_FREE_ARITHMETIC_H
#define REPOPS_FREE_ARITHMETIC_H

#include "repops/free/approx.h"

RO_INLINE approx add_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] + (real)o.b[i]);
}

RO_INLINE approx sub_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] - (real)o.b[i]);
}

RO_INLINE approx mul_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] * (real)o.b[i]);
}

RO_INLINE approx div_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] / (real)o.b[i]);
}

RO_INLINE approx div_const_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] / o.p.v);
}

RO_INLINE approx scale_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact((real)o.a[i] * o.p.v);
}

RO_INLINE approx sqrt_of(operands o, int64_t i, order how) {
    (void)how;
    return ap_exact(ap_sqrt_of((real)o.a[i]));
}

#endif
