/* Arithmetic and elementary functions with one exact meaning. SPEC.md sections 1 and 2.
 *
 * Shared by the reference and every kernel. Branch-free with literal coefficients, so that
 * compilers vectorise loops over arrays. */
#ifndef RO_MATH_H
#define RO_MATH_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#include "repops/repops.h"
#include "repops/src/inline.h"

/* The compilers name the parts of -ffast-math as far as these macros go; the Makefile turns all of
 * them off. */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||     \
    defined(__NO_SIGNED_ZEROS__) || __FINITE_MATH_ONLY__ > 0
#error "repops cannot be built with -ffast-math or parts of it: SPEC.md section 1"
#endif
#if FLT_EVAL_METHOD != 0
#error "repops needs float expressions evaluated in float (on x86: SSE): SPEC.md section 1"
#endif

#define RO_MINUS_INFINITY_BITS UINT32_C(0xff800000)

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

/* SPEC 1: the final store of arithmetic operators. */
RO_INLINE float ro_canon(float x) {
    return x != x ? ro_from_bits(RO_QNAN_BITS) : x;
}

#if defined(__CUDACC__)
#define RO_SOFT RO_INLINE
#else
#define RO_SOFT static inline __attribute__((unused))
#endif

/* Without hardware fma: the product of two floats is exact in double; the sum is rounded to odd, so
 * that the second rounding, to float, is the only one that counts (Boldo & Melquiond, 2008). */
RO_SOFT float ro_fma_soft(float a, float b, float c) {
    double p = (double)a * (double)b, z = (double)c;
    double s = p + z;
    double bb = s - p;
    double e = (p - (s - bb)) + (z - bb);
    int64_t bits;
    memcpy(&bits, &s, sizeof bits);
    /* An infinity or NaN gives e = NaN: neither comparison holds. */
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

/* SPEC 2.1: returns p with exp(x) = 2^k (1 + p); k as the exponent's bits, k * 2^23 modulo 2^32.
 * The sum's low bits are k, and the others leave the word. */
RO_INLINE float ro_exp_core(float x, uint32_t *k) {
    float t = ro_fma(x, 0x1.715476p0f, 0x1.8p23f);
    *k = ro_to_bits(t) << 23;
    float n = t - 0x1.8p23f;
    float r = ro_fma(n, -0x1.62e400p-1f, x);
    r = ro_fma(n, -0x1.7f7d1cp-20f, r);
    float p = 0x1.a26762p-13f;
    p = ro_fma(p, r, 0x1.6d2ep-10f);
    p = ro_fma(p, r, 0x1.110ff2p-7f);
    p = ro_fma(p, r, 0x1.555502p-5f);
    p = ro_fma(p, r, 0x1.555556p-3f);
    p = ro_fma(p, r, 0x1p-1f);
    return ro_fma(r * r, p, r);
}

/* 2^(k + offset), of a k from ro_exp_core. */
RO_INLINE float ro_pow2(uint32_t k, int32_t offset) {
    return ro_from_bits(k + ((uint32_t)(offset + 127) << 23));
}

/* SPEC 2.1. A first factor that leaves a normal number is exact, so any two factors do: the second
 * one rounds. A NaN is cut off like a large number: that takes one instruction less. */
RO_INLINE float ro_exp(float x) {
    uint32_t k;
    float c = x < 90.0f ? x : 90.0f;
    c = c > -106.0f ? c : -106.0f;
    float y = ro_exp_core(c, &k) + 1.0f;
    float first = x < 0 ? ro_pow2(k, 64) : ro_pow2(k, -64);
    y = y * first * (x < 0 ? 0x1p-64f : 0x1p64f);
    return x != x ? ro_from_bits(RO_QNAN_BITS) : y;
}

/* SPEC 2.2, but a NaN gives any NaN. */
RO_INLINE float ro_tanh_any(float x) {
    uint32_t k;
    float a = ro_from_bits(ro_to_bits(x) & UINT32_C(0x7fffffff));
    float z = a * a;
    float p = 0x1.4d7b44p-9f;
    p = ro_fma(p, z, -0x1.1930dcp-7f);
    p = ro_fma(p, z, 0x1.65fc46p-6f);
    p = ro_fma(p, z, -0x1.ba21bep-5f);
    p = ro_fma(p, z, 0x1.111148p-3f);
    p = ro_fma(p, z, -0x1.555556p-2f);
    float small = ro_fma(a * z, p, a);
    float b = a < 10.0f ? a : 10.0f; /* a NaN too */
    float e = ro_exp_core(b + b, &k), s = ro_pow2(k, 0);
    float large = 1.0f - 2.0f / (ro_fma(e, s, s) + 1.0f);
    float y = a >= 0.6f ? large : small;
    return ro_from_bits(ro_to_bits(y) | (ro_to_bits(x) & UINT32_C(0x80000000)));
}

RO_INLINE float ro_tanh(float x) {
    return ro_canon(ro_tanh_any(x));
}

/* SPEC 2.3. */
RO_INLINE float ro_log(float x) {
    int tiny = x < 0x1p-126f;
    float c = tiny ? x * 0x1p25f : x;
    uint32_t u = ro_to_bits(c);
    uint32_t e = (u - UINT32_C(0x3f2aaaab)) & UINT32_C(0xff800000); /* e and n times 2^23 */
    float f = ro_from_bits(u - e) - 1.0f;
    float n = (float)(int32_t)e + (tiny ? -25 * 0x1p23f : 0.0f);
    float p = -0x1.04ff52p-3f;
    p = ro_fma(p, f, 0x1.132ee2p-3f);
    p = ro_fma(p, f, -0x1.f4c81p-4f);
    p = ro_fma(p, f, 0x1.211ab6p-3f);
    p = ro_fma(p, f, -0x1.558a74p-3f);
    p = ro_fma(p, f, 0x1.99addep-3f);
    p = ro_fma(p, f, -0x1.ffff74p-3f);
    p = ro_fma(p, f, 0x1.55554cp-2f);
    float z = f * f;
    float t = ro_fma(n, 0x1.7f7d1cp-43f, ro_fma(f * z, p, -0.5f * z));
    float r = ro_fma(n, 0x1.62e400p-24f, t + f);
    r = x == 0 ? ro_from_bits(UINT32_C(0xff800000)) : r;
    r = x > 0x1.fffffep127f ? x : r;
    return x >= 0 ? r : ro_from_bits(RO_QNAN_BITS);
}

/* SPEC 2.5, but a NaN gives any NaN. */
RO_INLINE float ro_erf_any(float x) {
    uint32_t k;
    float a = ro_from_bits(ro_to_bits(x) & UINT32_C(0x7fffffff));
    float z = a * a;
    float p = -0x1.44aba8p-11f;
    p = ro_fma(p, z, 0x1.499f5cp-8f);
    p = ro_fma(p, z, -0x1.b6ea32p-6f);
    p = ro_fma(p, z, 0x1.ce2036p-4f);
    p = ro_fma(p, z, -0x1.812702p-2f);
    p = ro_fma(p, z, 0x1.06eba6p-3f);
    float small = ro_fma(a, p, a);
    float b = a < 4.0f ? a : 4.0f; /* a NaN too */
    float q = 0x1.a58abp-13f;
    q = ro_fma(q, b, -0x1.95533ep-9f);
    q = ro_fma(q, b, 0x1.6f56ap-6f);
    q = ro_fma(q, b, -0x1.ab53fcp-4f);
    q = ro_fma(q, b, -0x1.460256p-1f);
    q = ro_fma(q, b, -0x1.20c072p0f);
    q = ro_fma(q, b, -0x1.17f666p-13f);
    float e = ro_exp_core(q, &k), s = ro_pow2(k, 0);
    float large = 1.0f - ro_fma(e, s, s);
    float y = a >= 0.875f ? large : small;
    return ro_from_bits(ro_to_bits(y) | (ro_to_bits(x) & UINT32_C(0x80000000)));
}

RO_INLINE float ro_erf(float x) {
    return ro_canon(ro_erf_any(x));
}

/* SPEC 2.6. */
RO_INLINE float ro_rsqrt(float x) {
    return ro_canon(1.0f / ro_sqrt(x));
}

/* SPEC 2.7. */
RO_INLINE float ro_sigmoid(float x) {
    uint32_t k;
    float a = ro_from_bits(ro_to_bits(x) | UINT32_C(0x80000000));
    float c = a > -106.0f ? a : -106.0f; /* a NaN too */
    float e = (ro_exp_core(c, &k) + 1.0f) * ro_pow2(k, 64) * 0x1p-64f;
    float y = (x < 0 ? e : 1.0f) / (1.0f + e);
    return x != x ? ro_from_bits(RO_QNAN_BITS) : y;
}

/* The turn's fraction is k / 2^24. Nearest quadrant, then polynomials on [-pi/4, pi/4). */
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

/* ---- formulas that the reference and kernels share ---- */

#define RO_GELU_C0 0x1.988454p-1f
#define RO_GELU_C1 0x1.6e4e26p-5f

/* SPEC 6: tanh(c0 x (1 + c1 x^2)). */
RO_INLINE float ro_gelu_tanh(float x) {
    float w = ro_fma(RO_GELU_C1, x * x, 1.0f);
    return ro_tanh_any((RO_GELU_C0 * x) * w);
}

RO_INLINE float ro_gelu(float x) {
    return (0.5f * x) * (1.0f + ro_gelu_tanh(x));
}

/* The factor of dy in gelu_grad. */
RO_INLINE float ro_gelu_slope(float x) {
    float t = ro_gelu_tanh(x), s = ro_fma(-t, t, 1.0f);
    float v = RO_GELU_C0 * ro_fma(3.0f * RO_GELU_C1, x * x, 1.0f);
    return ro_fma((0.5f * x) * s, v, 0.5f * (1.0f + t));
}

/* SPEC 6: the factors of dy in the operators of gradients. y: the function's result. */
RO_INLINE float ro_tanh_slope(float y) {
    return ro_fma(-y, y, 1.0f);
}

RO_INLINE float ro_erf_slope(float x) {
    return 0x1.20dd76p0f * ro_exp(-(x * x));
}

RO_INLINE float ro_sigmoid_slope(float y) {
    return y * (1.0f - y);
}

RO_INLINE float ro_silu(float x) {
    return x * ro_sigmoid(x);
}

RO_INLINE float ro_silu_slope(float x) {
    float s = ro_sigmoid(x);
    return s * ro_fma(x, 1.0f - s, 1.0f);
}

/* 0.5 (1 + erf(x / sqrt(2))). */
RO_INLINE float ro_normal_cdf(float x) {
    return 0.5f * (1.0f + ro_erf_any(0x1.6a09e6p-1f * x));
}

RO_INLINE float ro_gelu_erf(float x) {
    return x * ro_normal_cdf(x);
}

RO_INLINE float ro_gelu_erf_slope(float x) {
    float e = ro_exp(-0.5f * (x * x));
    return ro_fma(x * e, 0x1.988454p-2f, ro_normal_cdf(x));
}

/* SPEC 9: lr_schedule. attr: kind, base, min, warmup, total. */
RO_INLINE float ro_learning_rate(const int64_t *attr, int32_t step) {
    float base = ro_from_bits((uint32_t)attr[1]), low = ro_from_bits((uint32_t)attr[2]);
    int64_t warmup = attr[3], total = attr[4], s = step;
    if (s < 0)
        return 0.0f;
    if (s < warmup)
        return base * ((float)(s + 1) / (float)warmup);
    if (attr[0] == RO_LR_CONSTANT)
        return base;
    if (s >= total)
        return low;
    if (attr[0] == RO_LR_LINEAR)
        return ro_fma(low - base, (float)(s - warmup) / (float)(total - warmup), base);
    uint32_t turn = (uint32_t)(((s - warmup) << 23) / (total - warmup));
    return ro_fma(base - low, 0.5f * (1.0f + ro_cos_turn(turn)), low);
}

#endif
