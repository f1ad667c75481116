/* Rounding of binary64 numbers to b bits of binary32, SPEC.md sections 14.2 and 14.3. It is
 * branch-free, so that loops are vectorised. */
#ifndef REPOPS_ROUNDING_H
#define REPOPS_ROUNDING_H

#include <string.h>

#include "repops/src/math.h"

RO_INLINE uint64_t ro_bits64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RO_INLINE double ro_from_bits64(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the power of two of |x|, clamped to [2^-126, 2^130]: below, the grid is that of
 * subnormals; above, everything rounds to infinity. A NaN gives 2^130. */
RO_INLINE double ro_binade(double x) {
    const int64_t low = (INT64_C(1023) - 126) << 52, high = (INT64_C(1023) + 130) << 52;
    int64_t power = (int64_t)(ro_bits64(x) & UINT64_C(0x7ff0000000000000));
    power = power < low ? low : power; /* with integers, as compilers do not vectorise fmax */
    power = power > high ? high : power;
    return ro_from_bits64((uint64_t)power);
}

/* Returns the distance of neighbours on the grid of `bits` bits, relative to their binade. */
RO_INLINE double ro_grid(int bits) {
    return ro_from_bits64((uint64_t)(1023 - (bits - 9)) << 52);
}

/* Returns 1.5 * 2^52 * ro_grid(bits), which added and subtracted rounds x in [1, 2) to the grid. */
RO_INLINE double ro_magic(int bits) {
    return 1.5 * 0x1p52 * ro_grid(bits);
}

/* Rounds x with the `magic` of ro_magic. The result is not canonical: a NaN keeps its payload. */
RO_INLINE float ro_round_any(double x, double magic) {
    const double shift = ro_binade(x) * magic;
    const double y = (x + shift) - shift;
    const uint64_t sign = UINT64_C(1) << 63;
    return (float)ro_from_bits64((ro_bits64(y) & ~sign) | (ro_bits64(x) & sign));
}

/* Returns a number's place on the grid: neighbours have neighbouring places, -0 before +0. */
RO_INLINE int64_t ro_place(float x, int bits) {
    const int64_t magnitude = (int64_t)((ro_to_bits(x) & 0x7fffffffu) >> (32 - bits));
    return ro_to_bits(x) >> 31 ? -1 - magnitude : magnitude;
}

RO_INLINE float ro_at_place(int64_t place, int bits) {
    const uint32_t magnitude = (uint32_t)(place < 0 ? -1 - place : place);
    return ro_from_bits(magnitude << (32 - bits) | (place < 0 ? UINT32_C(1) << 31 : 0));
}

#endif
