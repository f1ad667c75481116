/* Angles of the rotary position embedding, from integers alone. SPEC.md section 13. */
#ifndef RO_ROPE_H
#define RO_ROPE_H

#include <stdint.h>

#include "repops/src/inline.h"

/* floor(a b / 2^64). */
RO_INLINE uint64_t ro_mul_high(uint64_t a, uint64_t b) {
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32);
    const uint64_t other = a0 * b1 + (uint32_t)middle;
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* log2(base), 56 bits of it below the point; `base` is the bits of an f32 of at least 1. */
RO_INLINE uint64_t ro_rope_log(uint32_t base) {
    uint64_t y = (uint64_t)((base & UINT32_C(0x7fffff)) | UINT32_C(0x800000)) << 40;
    uint64_t fraction = 0;
    for (int j = 0; j < 56; j++) {
        const uint64_t square = ro_mul_high(y, y), bit = square >> 63;
        y = bit ? square : 2 * square;
        fraction = 2 * fraction + bit;
    }
    return (uint64_t)((base >> 23) - 127) << 56 | fraction;
}

/* base^(-i / half) / (2 pi) turns per position, in units of 2^-64; `log` is ro_rope_log(base). */
RO_INLINE uint64_t ro_rope_frequency(uint64_t log, uint64_t half, uint64_t i) {
    const uint64_t x = i * (log / half) + i * (log % half) / half;
    const uint64_t t = ro_mul_high(x << 8, UINT64_C(0xb17217f7d1cf79ac)); /* ln 2 */
    uint64_t e = UINT64_C(1) << 62;
    for (uint64_t j = 20; j > 0; j--)
        e = (UINT64_C(1) << 62) - ro_mul_high(t, e) / j;
    return ro_mul_high(2 * e, UINT64_C(0x517cc1b727220a95)) >> (x >> 56); /* 1 / pi */
}

/* The argument of sin_turn and cos_turn. */
RO_INLINE uint32_t ro_rope_turn(uint64_t frequency, uint64_t position) {
    return (uint32_t)((position * frequency + (UINT64_C(1) << 39)) >> 40);
}

#endif
