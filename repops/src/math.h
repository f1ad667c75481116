/* Arithmetic and elementary functions with one exact meaning, SPEC.md sections 1 and 2, shared by
 * the reference and every kernel. They are branch-free with literal coefficients, so that compilers
 * vectorise loops over arrays. */
#ifndef RO_MATH_H
#define RO_MATH_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "repops/repops.h"
#include "repops/src/inline.h"

/* These macros detect only some parts of -ffast-math; the Makefile turns all parts off. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    defined(__NO_SIGNED_ZEROS__) || __FINITE_MATH_ONLY__ > 0
#error "repops cannot be built with -ffast-math or parts of it: SPEC.md section 1"
#endif
#if FLT_EVAL_METHOD != 0
#error "repops needs float expressions evaluated in float (on x86: SSE): SPEC.md section 1"
#endif

#define RO_MINUS_INFINITY_BITS UINT32_C(0xff800000)
#define RO_INFINITY_BITS       UINT32_C(0x7f800000)
#define RO_F32_MAX             0x1.fffffep127f
#define RO_F32_INFINITY        __builtin_inff()
#define RO_F32_NAN             __builtin_nanf("")

RO_INLINE float ro_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

RO_INLINE uint32_t ro_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Replaces any NaN by the canonical one (SPEC 1), as arithmetic operators do when they store. */
RO_INLINE float ro_canon(float x) {
    return x != x ? ro_from_bits(RO_QNAN_BITS) : x;
}

#if defined(__CUDACC__)
#define RO_SOFT RO_INLINE
#else
#define RO_SOFT static inline __attribute__((unused))
#endif

/* Computes fma without hardware support. The product of two floats is exact in double; the sum is
 * rounded to odd, so that only the second rounding, to float, matters (Boldo & Melquiond, 2008). */
RO_SOFT float ro_fma_soft(float a, float b, float c) {
    double p = (double)a * (double)b, z = (double)c;
    double s = p + z;
    double bb = s - p;
    double e = (p - (s - bb)) + (z - bb);
    int64_t bits;
    memcpy(&bits, &s, sizeof bits);
    /* for an infinity or NaN, e is NaN, and both comparisons are false */
    if ((e > 0 || e < 0) && !(bits & 1))
        bits += (e > 0) == (s > 0) ? 1 : -1;
    memcpy(&s, &bits, sizeof s);
    return (float)s;
}

RO_INLINE float ro_fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#elif defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || defined(__s390x__)
    return __builtin_fmaf(a, b, c);
#else
    return ro_fma_soft(a, b, c);
#endif
}

RO_INLINE float ro_sqrt(float x) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(x);
#else
    return __builtin_sqrtf(x);
#endif
}

/* SPEC 3.2. */
RO_INLINE float ro_max(float a, float b) {
    float m = b > a ? b : a;
    m = a == 0 && b == 0 ? ro_from_bits(ro_to_bits(a) & ro_to_bits(b)) : m;
    return a != a || b != b ? ro_from_bits(RO_QNAN_BITS) : m;
}

/* SPEC 6, `compare`: whether the relation `kind` holds between a and b. */
#define RO_HOLDS(kind, a, b)                                                                       \
    ((kind) == RO_EQUAL       ? (a) == (b)                                                         \
     : (kind) == RO_NOT_EQUAL ? (a) != (b)                                                         \
     : (kind) == RO_LESS      ? (a) < (b)                                                          \
     : (kind) == RO_AT_MOST   ? (a) <= (b)                                                         \
     : (kind) == RO_GREATER   ? (a) > (b)                                                          \
                              : (a) >= (b))

/* ---- what functions.h requires, for a float ---- */

RO_INLINE float ro_set1(float c) {
    return c;
}

RO_INLINE float ro_add(float a, float b) {
    return a + b;
}

RO_INLINE float ro_sub(float a, float b) {
    return a - b;
}

RO_INLINE float ro_mul(float a, float b) {
    return a * b;
}

RO_INLINE float ro_div(float a, float b) {
    return a / b;
}

RO_INLINE float ro_neg(float a) {
    return -a;
}

/* SPEC 6. */
RO_INLINE float ro_min(float a, float b) {
    return ro_neg(ro_max(ro_neg(a), ro_neg(b)));
}

RO_INLINE float ro_abs(float x) {
    return ro_from_bits(ro_to_bits(x) & UINT32_C(0x7fffffff));
}

RO_INLINE float ro_minus_abs(float x) {
    return ro_from_bits(ro_to_bits(x) | UINT32_C(0x80000000));
}

RO_INLINE float ro_cut_above(float x, float c) {
    return x < c ? x : c;
}

RO_INLINE float ro_cut_below(float x, float c) {
    return x > c ? x : c;
}

RO_INLINE float ro_if_ge(float a, float b, float y, float n) {
    return a >= b ? y : n;
}

RO_INLINE float ro_with_sign(float y, float x) {
    return ro_from_bits(ro_to_bits(y) | (ro_to_bits(x) & UINT32_C(0x80000000)));
}

RO_INLINE float ro_unless_nan(float x, float y) {
    return x != x ? ro_from_bits(RO_QNAN_BITS) : y;
}

/* Returns 2^(k + offset) for t = k + 0x1.8p23: its low bits are k, and the shift drops the rest. */
RO_INLINE float ro_pow2(float t, int32_t offset) {
    return ro_from_bits((ro_to_bits(t) << 23) + ((uint32_t)(offset + 127) << 23));
}

/* Multiplies by 2^k in two steps: the first product is normal and exact; only the second rounds. */
RO_INLINE float ro_scale(float y, float t) {
    const int down = t < 0x1.8p23f;
    return y * ro_pow2(t, down ? 64 : -64) * (down ? 0x1p-64f : 0x1p64f);
}

RO_INLINE float ro_scale_down(float y, float t) {
    return y * ro_pow2(t, 64) * 0x1p-64f;
}

RO_INLINE float ro_scale_sum(float p, float t) {
    const float s = ro_pow2(t, 0);
    return ro_fma(p, s, s);
}

RO_INLINE float ro_log_split(float x, float *m) {
    const uint32_t u = ro_to_bits(x);
    const uint32_t e = (u - UINT32_C(0x3f2aaaab)) & UINT32_C(0xff800000);
    *m = ro_from_bits(u - e);
    return (float)(int32_t)e;
}

#define RO_GELU_C0 0x1.988454p-1f
#define RO_GELU_C1 0x1.6e4e26p-5f
#define RO_F       float
#define RO_OF(x)   ro_##x
#include "repops/src/functions.h"
#undef RO_F
#undef RO_OF

/* ---- scalars only ---- */

/* SPEC 2.6. */
RO_INLINE float ro_rsqrt(float x) {
    return ro_canon(1.0f / ro_sqrt(x));
}

/* Computes the sine or cosine by reducing to the nearest quadrant, then by polynomials on [-pi/4,
 * pi/4). k / 2^24 is a fraction of a turn. */
RO_INLINE float ro_sin_quadrant(float x) {
    float z = x * x;
    float p = 0x1.6cd878p-19f;
    p = ro_fma(p, z, -0x1.a00f9ep-13f);
    p = ro_fma(p, z, 0x1.111100p-7f);
    p = ro_fma(p, z, -0x1.555556p-3f);
    return ro_fma(x * z, p, x);
}

RO_INLINE float ro_cos_quadrant(float x) {
    float z = x * x;
    float p = 0x1.98e616p-16f;
    p = ro_fma(p, z, -0x1.6c06dcp-10f);
    p = ro_fma(p, z, 0x1.55553cp-5f);
    p = ro_fma(p, z, -0x1p-1f);
    return ro_fma(z, p, 1.0f);
}

/* SPEC 2.4: sin(2 pi k / 2^24); only the low 24 bits of k count. */
RO_INLINE float ro_sin_turn(uint32_t k) {
    k &= UINT32_C(0xffffff);
    uint32_t quadrant = (k + (UINT32_C(1) << 21)) >> 22;
    int32_t rest = (int32_t)k - (int32_t)(quadrant << 22);
    float x = (float)rest * 0x1.921fb6p-22f;
    float y = quadrant & 1 ? ro_cos_quadrant(x) : ro_sin_quadrant(x);
    return quadrant & 2 ? -y : y;
}

RO_INLINE float ro_cos_turn(uint32_t k) {
    return ro_sin_turn(k + (UINT32_C(1) << 22));
}

/* SPEC 7.1: ln_rstd. NaN if the variance overflowed, since 1 / inf would make the row +0. */
RO_INLINE float ro_rstd(float ss, float n, float eps) {
    const float v = ss / n + eps;
    return ro_canon(v < RO_F32_INFINITY ? 1.0f / ro_sqrt(v) : RO_F32_NAN);
}

/* SPEC 9: clip_scale. NaN if the norm overflowed, since 1 / inf would make the update +0. */
RO_INLINE float ro_clip_scale(float sumsq, float most) {
    const float n = ro_sqrt(sumsq);
    return ro_canon(!(n > most) ? 1.0f : n < RO_F32_INFINITY ? most / n : RO_F32_NAN);
}

/* The scalars of adamw_w; m_scale is 1 / c1 and v_scale is 1 / c2. */
typedef struct {
    float m_scale, v_scale, lr, eps, decay;
} ro_adamw_scalars;

/* SPEC 9: adamw_w. Returns NaN if v overflowed, since the quotient would be 0. */
RO_INLINE float ro_adamw_w(float w, float m, float v, ro_adamw_scalars s) {
    const float root = ro_sqrt(v * s.v_scale), u = (m * s.m_scale) / (root + s.eps);
    const float change = root < RO_F32_INFINITY ? u : RO_F32_NAN;
    return ro_canon(ro_fma(-s.lr, ro_fma(s.decay, w, change), w));
}

#endif
