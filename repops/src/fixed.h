/* Numbers of a fixed product: SPEC.md section 3.5. The reference, the scalar kernel and CUDA share
 * them; vector kernels compute the same in their own way. */
#ifndef RO_FIXED_H
#define RO_FIXED_H

#include "repops/src/math.h"

enum {
    RO_FIXED_NONE = 1 << 16, /* in place of an exponent: one of the numbers is not finite */
};

/* Whether a fixed product may have integers of so many bits. */
RO_INLINE int ro_fixed_has(int64_t bits) {
    return bits == RO_FIXED_8 || bits == RO_FIXED_16 || bits == RO_FIXED_24;
}

/* The exponent of a chunk whose numbers have magnitudes up to the one with these bits (without the
 * sign). Its mantissa may be 127/128 of the next power of two: adding 2^17 - 1 to the bits carries
 * into their exponent beyond. */
RO_INLINE int ro_fixed_exponent(uint32_t most) {
    const int field = (int)((most + 0x1ffffu) >> 23);
    return most >= RO_INFINITY_BITS ? RO_FIXED_NONE : (field > 1 ? field : 1) - 126;
}

/* The bits of 2^(exponent - 6), perhaps a subnormal number: in a chunk with this exponent, numbers
 * of smaller magnitude are small. */
RO_INLINE uint32_t ro_fixed_small(int exponent) {
    return exponent >= -120 ? (uint32_t)(exponent + 121) << 23 : 1u << (exponent + 143);
}

/* The bits of a line's integers in a chunk, in which it has `count` numbers that are not 0, `small`
 * of them small. With 8 bits an uneven line has 16. */
RO_INLINE int ro_fixed_line_bits(int bits, int small, int count) {
    return bits == RO_FIXED_8 && 2 * small > count ? RO_FIXED_16 : bits;
}

/* The integer nearest to x 2^(bits - 1 - exponent), ties to even; x is finite and its chunk's
 * exponent is `exponent`. x is m 2^(field - 150), so that m has to lose `lost` bits. */
RO_INLINE int32_t ro_fixed_integer(float x, int bits, int exponent) {
    const uint32_t word = ro_to_bits(x);
    const int stored = (int)(word >> 23 & 255), field = stored > 1 ? stored : 1;
    const uint32_t m = (word & 0x7fffffu) | (stored > 0 ? 0x800000u : 0u);
    const int more = 151 - bits + exponent - field;
    const int lost = more < 26 ? more : 26; /* from 26 on nothing is left */
    const uint32_t near = (m + (1u << (lost - 1)) - 1 + (m >> lost & 1)) >> lost;
    return word >> 31 ? -(int32_t)near : (int32_t)near;
}

RO_INLINE double ro_fixed_power(int exponent) {
    const uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* sum * power, rounded once; |sum| < 2^54, and the product is a normal binary64 number or NaN. A
 * sum of 54 bits that is odd goes to the neighbour whose half is odd, which binary64 has: no later
 * rounding takes it for a tie. It gives the values of ro_fixed_rounded, to engines whose powers are
 * binary64. */
RO_INLINE float ro_fixed_value(int64_t sum, double power) {
    const int64_t even = (sum | (sum & 1) * 2) & ~INT64_C(1), limit = INT64_C(1) << 53;
    return (float)((double)(sum >= limit || sum <= -limit ? even : sum) * power);
}

/* sum * 2^power, rounded once, by integers alone; |sum| < 2^62. The exponent of the sum, taken as a
 * float, is its own or that of the power of two which it is rounded up to: the same comes out. */
RO_INLINE float ro_fixed_rounded(int64_t sum, int power) {
    const uint64_t m = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    const int first = (int)(ro_to_bits((float)sum) >> 23 & 255) - 150 + power;
    const int last = first > -149 ? first : -149; /* what the last bit of the result counts */
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

/* Returns what a chunk adds to the total; a and b are the exponents of its operands, and `bits`
 * those of both operands' integers, added. */
RO_INLINE float ro_fixed_term(int64_t sum, int bits, int a, int b) {
    if (a == RO_FIXED_NONE || b == RO_FIXED_NONE)
        return RO_F32_NAN;
    return ro_fixed_rounded(sum, a + b - (bits - 2));
}

#endif
