/* Arithmetic of fixed products: SPEC.md section 3.5. The reference, the scalar kernel and CUDA
 * share it; vector kernels compute the same in their own way. */
#ifndef RO_FIXED_H
#define RO_FIXED_H

#include "repops/src/math.h"

enum {
    RO_FIXED_NONE = 1 << 16, /* in place of an exponent: one of the numbers is not finite */
};

/* Returns whether a fixed product may have integers of so many bits. */
RO_INLINE int ro_fixed_has(int64_t bits) {
    return bits == RO_FIXED_8 || bits == RO_FIXED_16 || bits == RO_FIXED_24;
}

/* Returns the exponent of a chunk; `most` is the bits (without sign) of its largest magnitude. The
 * mantissa may be up to 127/128 of the next power of two: above that, adding 2^17 - 1 to the bits
 * carries into the exponent. */
RO_INLINE int ro_fixed_exponent(uint32_t most) {
    const int field = (int)((most + 0x1ffffu) >> 23);
    return most >= RO_INFINITY_BITS ? RO_FIXED_NONE : (field > 1 ? field : 1) - 126;
}

/* Returns the bits of 2^(exponent - 6), which may be subnormal: in a chunk with this exponent,
 * numbers of smaller magnitude count as small. */
RO_INLINE uint32_t ro_fixed_small(int exponent) {
    return exponent >= -120 ? (uint32_t)(exponent + 121) << 23 : 1u << (exponent + 143);
}

/* Returns the bits of the integers of one line (a row of a or column of b) in a chunk, where
 * `count` numbers are not 0 and `small` of these are small. A line of mostly small numbers gets 16
 * bits instead of 8. */
RO_INLINE int ro_fixed_line_bits(int bits, int small, int count) {
    return bits == RO_FIXED_8 && 2 * small > count ? RO_FIXED_16 : bits;
}

/* Returns the integer nearest to x 2^(bits - 1 - exponent), ties to even; x is finite and its
 * chunk's exponent is `exponent`. x is m 2^(field - 150), so that m loses `lost` bits. */
RO_INLINE int32_t ro_fixed_integer(float x, int bits, int exponent) {
    const uint32_t word = ro_to_bits(x);
    const int stored = (int)(word >> 23 & 255), field = stored > 1 ? stored : 1;
    const uint32_t m = (word & 0x7fffffu) | (stored > 0 ? 0x800000u : 0u);
    const int more = 151 - bits + exponent - field;
    const int lost = more < 26 ? more : 26; /* losing 26 bits or more leaves nothing */
    const uint32_t near = (m + (1u << (lost - 1)) - 1 + (m >> lost & 1)) >> lost;
    return word >> 31 ? -(int32_t)near : (int32_t)near;
}

RO_INLINE double ro_fixed_power(int exponent) {
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Returns sum * power, rounded once; |sum| < 2^54, and the product is a normal binary64 number or
 * NaN. binary64 cannot hold an odd sum of 54 bits: such a sum is replaced by the neighbour whose
 * half is odd, so that the later rounding to f32 does not take it for a tie. Engines that keep
 * powers as binary64 use it; the values are those of ro_fixed_rounded. */
RO_INLINE float ro_fixed_value(int64_t sum, double power) {
    const int64_t even = (sum | (sum & 1) * 2) & ~INT64_C(1), limit = INT64_C(1) << 53;
    return (float)((double)(sum >= limit || sum <= -limit ? even : sum) * power);
}

/* Returns sum * 2^power, rounded once, with integers alone; |sum| < 2^62. Converting the sum to
 * float gives its exponent, or the next one if it rounds up to a power of two; both lead to the
 * same result. */
RO_INLINE float ro_fixed_rounded(int64_t sum, int power) {
    const uint64_t m = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    const int first = (int)(ro_to_bits((float)sum) >> 23 & 255) - 150 + power;
    const int last = first > -149 ? first : -149; /* exponent of the result's last bit */
    const int lost = last - power;
    uint64_t kept = 0;
    if (m == 0)
        return 0.0f;
    if (lost <= 0)
        kept = m << -lost;
    else if (lost < 63)
        kept = (m + (UINT64_C(1) << (lost - 1)) - 1 + (m >> lost & 1)) >> lost;
    const uint64_t word = ((uint64_t)(last + 149) << 23) + kept;
    const uint32_t bits = word < RO_INFINITY_BITS ? (uint32_t)word : RO_INFINITY_BITS;
    return ro_from_bits(sum < 0 ? bits | 0x80000000u : bits);
}

/* Returns what a chunk adds to the total; a and b are the exponents of its operands, and `bits` is
 * the sum of their integers' bits. */
RO_INLINE float ro_fixed_term(int64_t sum, int bits, int a, int b) {
    if (a == RO_FIXED_NONE || b == RO_FIXED_NONE)
        return RO_F32_NAN;
    return ro_fixed_rounded(sum, a + b - (bits - 2));
}

#endif
