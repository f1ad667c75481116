/* Elementary functions in `real`; polynomials are evaluated as the profile says. They have no
 * branches, so that loops over them are vectorised. Coefficients: interpolation at Chebyshev nodes,
 * in 200 bits.
 *
 * Bounds are in roundings (relative errors of 2^-53, half an ulp at most). test_free_functions
 * tests them for every profile; the largest errors that it finds are some 60 % of them. */
#ifndef REPOPS_FREE_FUNCTIONS_H
#define REPOPS_FREE_FUNCTIONS_H

#include "repops/free/approx.h"

enum {
    RO_EXP_ROUNDINGS = 3,
    RO_LOG_ROUNDINGS = 5,
    RO_TANH_ROUNDINGS = 8,
    RO_ERF_ROUNDINGS = 8,
    RO_TAIL_ROUNDINGS = 16
};

#if defined(RO_IS_f32)
typedef uint32_t real_word;
/* e^x is computed as 2^(k + EXP_SHIFT) times 2, since 2^128 is out of range. */
enum { FRACTION_BITS = 23, BIAS = 127, EXP_SHIFT = -1 };
#define REAL(f32_value, f64_value) f32_value##f
#else
typedef uint64_t real_word;
enum { FRACTION_BITS = 52, BIAS = 1023, EXP_SHIFT = 0 };
#define REAL(f32_value, f64_value) f64_value
#endif

#define REAL_INFINITY ((real)__builtin_inf())
#define REAL_NAN      ((real)__builtin_nan(""))

RO_INLINE real_word word_of(real x) {
    real_word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RO_INLINE real real_of(real_word bits) {
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RO_INLINE real with_sign(real x, real sign) {
    const real_word bit = (real_word)1 << (8 * sizeof(real_word) - 1);
    return real_of((word_of(x) & ~bit) | (word_of(sign) & bit));
}

/* ---- polynomials, c[0] + c[1] x + ... ---- */

RO_INLINE real poly4(const real *c, real x, real x2, order o) {
    const real high = free_mul_add(c[3], x, c[2], o.contract);
    if (o.estrin)
        return free_mul_add(high, x2, free_mul_add(c[1], x, c[0], o.contract), o.contract);
    return free_mul_add(free_mul_add(high, x, c[1], o.contract), x, c[0], o.contract);
}

/* p * x^4 + poly4(c, x) and p * x^8 + poly8(c, x). */
RO_INLINE real onto4(real p, const real *c, real x, real x2, real x4, order o) {
    if (o.estrin)
        return free_mul_add(p, x4, poly4(c, x, x2, o), o.contract);
    p = free_mul_add(p, x, c[3], o.contract);
    p = free_mul_add(p, x, c[2], o.contract);
    p = free_mul_add(p, x, c[1], o.contract);
    return free_mul_add(p, x, c[0], o.contract);
}

RO_INLINE real onto8(real p, const real *c, real x, real x2, real x4, order o) {
    if (o.estrin)
        return free_mul_add(p, x4 * x4, onto4(poly4(c + 4, x, x2, o), c, x, x2, x4, o), o.contract);
    return onto4(onto4(p, c + 4, x, x2, x4, o), c, x, x2, x4, o);
}

RO_INLINE real poly8(const real *c, real x, real x2, real x4, order o) {
    return onto4(poly4(c + 4, x, x2, o), c, x, x2, x4, o);
}

/* ---- exp ---- */

/* Returns 2^(k + offset); k is in the low bits of a float, to which a magic number was added. */
RO_INLINE real power_of(real k, int offset) {
    return real_of((word_of(k) << FRACTION_BITS) + ((real_word)(BIAS + offset) << FRACTION_BITS));
}

/* Splits e^x into 2^k (1 + p), for results that are normal numbers. */
RO_INLINE real exp_parts(real x, real *k, order o) {
#if defined(RO_IS_f32)
    static const real c[6] = {0x1p-1f,       0x1.555556p-3f,  0x1.5554eap-5f,
                              0x1.1110ep-7f, 0x1.6d4324p-10f, 0x1.a124f2p-13f};
#else
    static const real c[10] = {0x1.0000000000001p-1,  0x1.5555555555556p-3,  0x1.5555555553d63p-5,
                               0x1.11111111109b3p-7,  0x1.6c16c1788bd90p-10, 0x1.a01a01a7c41d5p-13,
                               0x1.a019b90d2ae7ap-16, 0x1.71de0dae63bb3p-19, 0x1.289185613a3d6p-22,
                               0x1.af38a9b0ec855p-26};
#endif
    const real magic = REAL(0x1.8p23, 0x1.8p52);
    const real t = free_mul_add(x, REAL(0x1.715476p0, 0x1.71547652b82fep0), magic, o.contract);
    const real n = t - magic; /* x / ln 2, rounded: its product with ln 2's high part is exact */
    real r = free_mul_add(n, REAL(-0x1.62e4p-1, -0x1.62e42fefap-1), x, o.contract);
    r = free_mul_add(n, REAL(-0x1.7f7d1cp-20, -0x1.cf79abc9e3b3ap-40), r, o.contract);
    const real r2 = r * r, r4 = r2 * r2;
#if defined(RO_IS_f32)
    const real q = onto4(free_mul_add(c[5], r, c[4], o.contract), c, r, r2, r4, o);
#else
    const real q = onto8(free_mul_add(c[9], r, c[8], o.contract), c, r, r2, r4, o);
#endif
    *k = t;
    return free_mul_add(r2, q, r, o.contract);
}

/* +0 below -500 and infinite above 500 (in binary32: -86.5 and 88.8), SPEC 14.3. An f32 result is
 * far from these, so no product with it in a formula over- or underflows in binary64. */
RO_INLINE real free_exp(real x, order o) {
    real k;
    const real p = exp_parts(x, &k, o);
    const real s = power_of(k, EXP_SHIFT);
    real y = free_mul_add(p, s, s, o.contract);
    y = EXP_SHIFT != 0 ? y + y : y;
    y = x > REAL(88.8, 500.0) ? REAL_INFINITY : y;
    return x < REAL(-86.5, -500.0) ? 0 : y;
}

/* Errors of arguments in range are small, so they cause proportional errors of e^x. */
RO_INLINE approx ap_exp(approx x, order o) {
    const real v = free_exp(x.v, o);
    const double from_x = v > 0 ? (double)v * (1.001 * ap_error(x)) : 0;
    return ap_is_exact(x) ? ap_relative(v, RO_EXP_ROUNDINGS)
                          : (approx){v, from_x, RO_EXP_ROUNDINGS, 0};
}

/* ---- log ---- */

RO_INLINE real free_log(real x, order o) {
#if defined(RO_IS_f32)
    static const real c[4] = {0x1.555556p-1f, 0x1.9999ecp-2f, 0x1.245c28p-2f, 0x1.ddd4dap-3f};
    const int tiny = x < 0x1p-126f;
    const real_word u = word_of(tiny ? x * 0x1p24f : x), half_root = UINT32_C(0x3f3504f3);
    const real shift = tiny ? 0x1p23f + 127 + 24 : 0x1p23f + 127, exponent_of = 0x1p23f;
#else
    static const real c[8] = {0x1.5555555555555p-1, 0x1.9999999999a39p-2, 0x1.2492492476a1ap-2,
                              0x1.c71c7201a55d7p-3, 0x1.745cf8e4bba1bp-3, 0x1.3b1c3c1c81c8fp-3,
                              0x1.0fbde0f4ad17bp-3, 0x1.0c0aff044a970p-3};
    const real_word u = word_of(x), half_root = UINT64_C(0x3fe6a09e667f3bcd);
    const real shift = 0x1p52 + 1023, exponent_of = 0x1p52;
#endif
    /* x = 2^n (1 + f), 1 + f from the root of 1/2 to that of 2 */
    const real_word k = (u - half_root + ((real_word)BIAS << FRACTION_BITS)) >> FRACTION_BITS;
    const real n = real_of(word_of(exponent_of) | k) - shift;
    const real f = real_of(u - ((k - BIAS) << FRACTION_BITS)) - 1;
    /* log(1 + f) = 2 artanh(s) = f - s (f - s^2 R(s^2)), s = f / (2 + f) */
    const real s = f / (2 + f), z = s * s, z2 = z * z;
#if defined(RO_IS_f32)
    const real r = z * poly4(c, z, z2, o);
#else
    const real r = z * poly8(c, z, z2, z2 * z2, o);
#endif
    const real low =
        free_mul_add(n, REAL(0x1.7f7d1cp-20, 0x1.cf79abc9e3b3ap-40), -(s * (f - r)), o.contract);
    real y = free_mul_add(n, REAL(0x1.62e4p-1, 0x1.62e42fefap-1), f + low, o.contract);
    y = x == 0 ? -REAL_INFINITY : y;
    y = x == REAL_INFINITY ? x : y;
    return x >= 0 ? y : REAL_NAN;
}

/* ---- tanh ---- */

/* Computes em / (em + 2) with em = e^2a - 1 = s p + (s - 1). */
RO_INLINE real free_tanh(real x, order o) {
    const real a = ap_abs(x);
    real k;
    const real p = exp_parts(a > 20 ? 40 : a + a, &k, o), s = power_of(k, 0);
    const real em = free_mul_add(p, s, s - 1, o.contract);
    return with_sign(em / (em + 2), x);
}

/* ---- erf ---- */

/* Returns e^(b^2) erfc(b) for 0 <= b <= 27 (in binary32: 10). */
RO_INLINE real scaled_tail(real b, order o) {
#if defined(RO_IS_f32)
    static const real c[12] = {0x1.12f21ep+0f,   -0x1.c44c48p-1f, 0x1.2e326ap-1f,
                               -0x1.3deb20p-2f,  0x1.e995eep-4f,  -0x1.b78b10p-6f,
                               -0x1.3dd06ap-10f, 0x1.8e0ca8p-9f,  -0x1.1ecf14p-11f,
                               -0x1.2c2a72p-12f, 0x1.9c1a68p-14f, 0x1.53f858p-15f};
#else
    static const real c[24] = {
        0x1.178842825349dp+0,   -0x1.eae02d0a1456bp-1,  0x1.78fecb4e81af6p-1,
        -0x1.f63dd81196153p-2,  0x1.1dc271189ea96p-2,   -0x1.0e3ea224bdeb2p-3,
        0x1.92618b78a2940p-5,   -0x1.9ac69565ffd9bp-7,  0x1.0290074b8c3aap-10,
        0x1.a0b759527df7dp-11,  -0x1.6d95312eac0fbp-12, 0x1.637a3ba4ffd75p-17,
        0x1.3a5686b9cf9b1p-15,  -0x1.2ac5fd502565dp-17, -0x1.b9a43efc0d539p-19,
        0x1.bca1dcd02c4e9p-20,  0x1.2ef0e3a25be74p-22,  -0x1.1b552023118e9p-22,
        -0x1.014d9be7e4a04p-25, 0x1.564957c69d159p-25,  0x1.78661e10ca3c0p-28,
        -0x1.3c179d6f2a88ep-28, -0x1.1a731870914aep-30, 0x1.74dffd1b98c8ep-34};
#endif
    const real middle = REAL(3.0, 3.75), r = 1 / (b + middle), t = (b - middle) * r;
    const real t2 = t * t, t4 = t2 * t2;
#if defined(RO_IS_f32)
    return r * onto8(poly4(c + 8, t, t2, o), c, t, t2, t4, o);
#else
    const real p = poly8(c + 16, t, t2, t4, o);
    return r * onto8(onto8(p, c + 8, t, t2, t4, o), c, t, t2, t4, o);
#endif
}

RO_INLINE real free_erf(real x, order o) {
#if defined(RO_IS_f32)
    static const real c[6] = {0x1.20dd74p+0f, -0x1.81268p-2f, 0x1.ce0ab2p-4f,
                              -0x1.b5b31p-6f, 0x1.428d76p-8f, -0x1.281efap-11f};
#else
    static const real c[12] = {
        0x1.20dd750429b6dp+0,   -0x1.812746b0379c1p-2,  0x1.ce2f21a040f66p-4,
        -0x1.b82ce31203772p-6,  0x1.565bccfa44156p-8,   -0x1.c02db0665e53dp-11,
        0x1.f9a2be4f731a1p-14,  -0x1.f4ca838adb73bp-17, 0x1.b981d78881a5dp-20,
        -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27,  -0x1.ac9585a44fe29p-31};
#endif
    const real a = ap_abs(x) > 6 ? 6 : ap_abs(x), z = a * a, z2 = z * z, z4 = z2 * z2;
#if defined(RO_IS_f32)
    const real small = a * onto4(free_mul_add(c[5], z, c[4], o.contract), c, z, z2, z4, o);
#else
    const real small = a * onto8(poly4(c + 8, z, z2, o), c, z, z2, z4, o);
#endif
    const real large = 1 - free_exp(-z, o) * scaled_tail(a, o);
    return with_sign(a < 1 ? small : large, x);
}

/* ---- functions of an approximation ---- */

/* p = 1 / (1 + e^-x) and q = 1 - p, each with a small relative error. */
typedef struct {
    approx p, q;
} logistic;

/* With e = e^-|x|: its 3 roundings change e / (1 + e) by 3 / (1 + e), and 1 / (1 + e) by less; with
 * those of the sum and the quotient that is 5. The derivative is p q, which a small error of x
 * changes little. */
RO_INLINE logistic ap_logistic(approx x, order o) {
    const real e = free_exp(-ap_abs(x.v), o), high = 1 / (1 + e), low = e / (1 + e);
    const double from_x = 1.01 * ap_error(x) * ((double)high * (double)low);
    const real p = x.v < 0 ? low : high, q = x.v < 0 ? high : low;
    if (ap_is_exact(x))
        return (logistic){ap_relative(p, 5), ap_relative(q, 5)};
    return (logistic){{p, from_x, 5, 0}, {q, from_x, 5, 0}};
}

/* Returns (1 + erf(x / sqrt 2)) / 2; the factor is the f32 number of SPEC 14.1. */
RO_INLINE approx ap_normal_cdf(approx x, order o) {
    const real z = (real)0x1.6a09e6p-1 * x.v; /* exact in binary64 */
    const real b = ap_abs(z) > REAL(10.0, 27.0) ? REAL(10.0, 27.0) : ap_abs(z);
    const approx e = ap_exp(ap_relative(-(b * b), 1), o);
    const approx half = ap_relative((real)0.5 * scaled_tail(b, o), RO_TAIL_ROUNDINGS);
    const approx tail = ap_mul(e, half), rest = ap_sub(ap_exact(1), tail);
    return x.v < 0 ? tail : rest;
}

#endif
