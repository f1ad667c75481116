/* Formulas of operators along an axis: put_along, sorting and running totals, SPEC.md sections 5
 * and 6.1. The reference, the CPU kernels and CUDA share them. */
#ifndef RO_ALONG_H
#define RO_ALONG_H

#include "repops/src/wide_functions.h"

/* ---- put_along ---- */

RO_INLINE uint32_t ro_put_number(int kind, uint32_t was, uint32_t is) {
    const int32_t a = (int32_t)was, b = (int32_t)is;
    switch (kind) {
    case RO_PUT_LAST: return is;
    case RO_PUT_SUM: return was + is;
    case RO_PUT_PRODUCT: return was * is;
    case RO_PUT_MAX: return a > b ? was : is;
    default: return a < b ? was : is;
    }
}

RO_INLINE uint32_t ro_put_float(int kind, uint32_t was, uint32_t is) {
    const float a = ro_from_bits(was), b = ro_from_bits(is);
    switch (kind) {
    case RO_PUT_LAST: return is;
    case RO_PUT_SUM: return ro_to_bits(ro_canon(a + b));
    case RO_PUT_PRODUCT: return ro_to_bits(ro_canon(a * b));
    case RO_PUT_MAX: return ro_to_bits(ro_canon(ro_max(a, b)));
    default: return ro_to_bits(ro_canon(-ro_max(-a, -b)));
    }
}

RO_INLINE uint32_t ro_put(int dtype, int kind, uint32_t was, uint32_t is) {
    return dtype == RO_F32 ? ro_put_float(kind, was, is) : ro_put_number(kind, was, is);
}

/* ---- orders ---- */

/* Maps elements to unsigned numbers of the same order: -0 is +0, and every NaN is the largest. */
RO_INLINE uint32_t ro_sort_key(int dtype, int descending, uint32_t bits) {
    const uint32_t sign = UINT32_C(1) << 31, size = bits & ~sign;
    const uint32_t of_float = size > 0x7f800000 ? UINT32_MAX
                              : size == 0       ? sign
                              : bits & sign     ? ~bits
                                                : bits | sign;
    const uint32_t key = dtype == RO_F32 ? of_float : bits ^ sign;
    return descending ? ~key : key;
}

/* ---- running totals ---- */

enum { RO_RUN_CHUNK = 256 };

/* The neutral element, with which a total begins. */
RO_INLINE double ro_run_start(int kind) {
    return kind == RO_RUNNING_SUM ? 0.0 : kind == RO_RUNNING_PRODUCT ? 1.0 : -RO_INF64;
}

/* log(exp(a) + exp(b)). */
RO_INLINE double ro_log_sum(double a, double b) {
    const double high = a > b ? a : b, low = a > b ? b : a;
    const double sum = high + ro_log1p_64(ro_exp64(low - high));
    const int plain = high < RO_INF64 && low > -RO_INF64;
    return a != a || b != b ? RO_NAN64 : plain ? sum : high;
}

RO_INLINE double ro_join(int kind, double a, double b) {
    const double y = kind == RO_RUNNING_SUM       ? a + b
                     : kind == RO_RUNNING_PRODUCT ? a * b
                                                  : ro_log_sum(a, b);
    return y != y ? RO_NAN64 : y;
}

RO_INLINE uint32_t ro_run_number(int kind, uint32_t a, uint32_t b) {
    return kind == RO_RUNNING_SUM ? a + b : a * b;
}

#endif
