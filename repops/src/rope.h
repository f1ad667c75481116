/* Angles of the rotary position embedding, computed with integers only. SPEC.md section 13. */
#ifndef RO_ROPE_H
#define RO_ROPE_H

#include <stdint.h>

#include "repops/repops.h"
#include "repops/src/inline.h"
#include "repops/src/wide_product.h"
#include "repops/op_attention.h"

/* Returns log2(base) with 56 fractional bits; `base` is the bits of an f32 of at least 1. */
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

/* Returns base^(-i / half) / (2 pi), in turns per position, in units of 2^-64; `log` is
 * ro_rope_log(base). */
RO_INLINE uint64_t ro_rope_frequency(uint64_t log, uint64_t half, uint64_t i) {
    const uint64_t x = i * (log / half) + i * (log % half) / half;
    const uint64_t t = ro_mul_high(x << 8, UINT64_C(0xb17217f7d1cf79ac)); /* ln 2 */
    uint64_t e = UINT64_C(1) << 62;
    for (uint64_t j = 20; j > 0; j--)
        e = (UINT64_C(1) << 62) - ro_mul_high(t, e) / j;
    return ro_mul_high(2 * e, UINT64_C(0x517cc1b727220a95)) >> (x >> 56); /* 1 / pi */
}

/* Returns floor(f / factor), f below 2^62; `factor` is the bits of an f32 in [1, 2^32). */
RO_INLINE uint64_t ro_rope_divided(uint64_t f, uint32_t factor) {
    const uint64_t m = (factor & UINT32_C(0x7fffff)) | UINT32_C(0x800000);
    return ((f / m << 23) + (f % m << 23) / m) >> ((factor >> 23) - 127);
}

/* Returns an f32 in [2^-8, 2^14), given its bits, in units of 2^-32: exact. */
RO_INLINE uint64_t ro_rope_fixed(uint32_t x) {
    const uint64_t m = (x & UINT32_C(0x7fffff)) | UINT32_C(0x800000);
    return m << ((x >> 23) - 127 + 9);
}

/* The scaling attributes of a call of rope_turns. */
typedef struct {
    int kind;
    uint32_t factor, low, high; /* bits of f32 numbers */
    uint64_t original;
} ro_rope_scaling;

/* Scales frequency f. v is the turns within the original context length, in units of 2^-32. The
 * division is done 16 bits at a time. */
RO_INLINE uint64_t ro_rope_scaled(const ro_rope_scaling *s, uint64_t f) {
    if (s->kind == RO_ROPE_PLAIN)
        return f;
    const uint64_t divided = ro_rope_divided(f, s->factor);
    if (s->kind == RO_ROPE_LINEAR)
        return divided;
    const uint64_t low = ro_rope_fixed(s->low), apart = ro_rope_fixed(s->high) - low;
    const uint64_t v = ro_mul_high(s->original << 32, f);
    if (v < low || v - low >= apart)
        return v < low ? divided : f;
    const uint64_t first = (v - low) << 16;
    const uint64_t smooth = first / apart << 16 | (first % apart << 16) / apart;
    return divided + ro_mul_high(smooth << 32, f - divided);
}

RO_INLINE ro_rope_scaling ro_rope_scaling_of(const ro_call *call) {
    const ro_rope_scaling s = {
        (int)call->attr[RO_ROPE_TURNS_KIND], (uint32_t)call->attr[RO_ROPE_TURNS_FACTOR],
        (uint32_t)call->attr[RO_ROPE_TURNS_LOW], (uint32_t)call->attr[RO_ROPE_TURNS_HIGH],
        (uint64_t)call->attr[RO_ROPE_TURNS_ORIGINAL]};
    return s;
}

/* Returns the frequency of a pair from its two words in a tensor of turns. */
RO_INLINE uint64_t ro_rope_words(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

/* Returns the argument of sin_turn and cos_turn. A negative position turns the other way. */
RO_INLINE uint32_t ro_rope_turn(uint64_t frequency, int64_t position) {
    return (uint32_t)(((uint64_t)position * frequency + (UINT64_C(1) << 39)) >> 40);
}

#endif
