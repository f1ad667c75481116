/* Conversions of the 16-bit element types, SPEC.md section 1: bf16 and f16 (binary16). They are
 * branch-free, so that compilers vectorise loops over arrays. */
#ifndef RO_HALF_H
#define RO_HALF_H

#include "repops/src/math.h"

enum {
    RO_BF16_QNAN = 0x7fc0,
    RO_F16_QNAN = 0x7e00,
    RO_F16_BIAS = 127 - 15, /* from exponents of f16 to those of f32 */
};

/* Returns the canonical NaN of a floating-point type; 0 for integer types. */
RO_INLINE uint32_t ro_nan_of(int dtype) {
    return dtype == RO_F32    ? RO_QNAN_BITS
           : dtype == RO_BF16 ? (uint32_t)RO_BF16_QNAN
           : dtype == RO_F16  ? (uint32_t)RO_F16_QNAN
                              : 0;
}

/* ---- to f32: exact, with canonical NaNs ---- */

RO_INLINE float ro_from_bf16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    return ro_from_bits((bits & UINT32_C(0x7fffffff)) > RO_INFINITY_BITS ? RO_QNAN_BITS : bits);
}

/* Converts subnormals through an integer: multiplying a subnormal f32 would be slow. */
RO_INLINE float ro_from_f16(uint16_t x) {
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, m = x & 0x7fffu;
    const uint32_t subnormal = ro_to_bits((float)(int32_t)m * 0x1p-24f);
    const uint32_t normal = (m << 13) + ((uint32_t)RO_F16_BIAS << 23);
    const uint32_t finite = m < 0x400 ? subnormal : normal;
    const uint32_t bits = sign | (m == 0x7c00 ? RO_INFINITY_BITS : finite);
    return ro_from_bits(m > 0x7c00 ? RO_QNAN_BITS : bits);
}

/* Returns an element of a floating-point type, given its bits, as f32. */
RO_INLINE float ro_number_of(int dtype, uint32_t bits) {
    return dtype == RO_BF16  ? ro_from_bf16((uint16_t)bits)
           : dtype == RO_F16 ? ro_from_f16((uint16_t)bits)
                             : ro_from_bits(bits);
}

/* ---- from f32: round to nearest even ---- */

/* A carry out of the fraction goes into the exponent, up to that of infinity. */
RO_INLINE uint16_t ro_to_bf16(float x) {
    const uint32_t bits = ro_to_bits(x);
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? (uint32_t)RO_BF16_QNAN : rounded);
}

/* Rounds to one of the two neighbours: away from zero if `part`, 16 random bits, plus the dropped
 * bits of x gives a carry. A number that bf16 represents has no dropped bits and stays itself. */
RO_INLINE uint16_t ro_to_bf16_at_random(float x, uint32_t part) {
    const uint32_t rounded = (ro_to_bits(x) + part) >> 16;
    return (uint16_t)(x != x ? (uint32_t)RO_BF16_QNAN : rounded);
}

/* Adding a number below 2^-14 to 0.5, whose last place is 2^-24, rounds it as a subnormal f16. From
 * 65520 on, halfway between 65504 and 2^16, the result is infinite. */
RO_INLINE uint16_t ro_to_f16(float x) {
    const uint32_t bits = ro_to_bits(x), m = bits & UINT32_C(0x7fffffff);
    const uint32_t sign = bits >> 16 & 0x8000;
    const uint32_t subnormal = ro_to_bits(ro_from_bits(m) + 0.5f) - ro_to_bits(0.5f);
    const uint32_t normal = (m - ((uint32_t)RO_F16_BIAS << 23) + 0xfff + (m >> 13 & 1)) >> 13;
    const uint32_t finite = m < UINT32_C(0x38800000) ? subnormal : normal;
    const uint32_t rounded = m >= UINT32_C(0x477ff000) ? UINT32_C(0x7c00) : finite;
    return (uint16_t)(x != x ? (uint32_t)RO_F16_QNAN : sign | rounded);
}

#endif
