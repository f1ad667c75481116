/* An application of an operator with generated data, for tests of backends and repops-conform.
 *
 * All data comes from one integer formula: word i of input t under seed s is mix(s + t * 2^40 + i),
 * where mix is the finaliser of SplitMix64 (Steele et al., 2014) applied to its argument times the
 * golden-ratio constant. Class and type turn a word into an element, see case_f32 and case_fill. */
#ifndef REPOPS_TOOLS_OP_DATA_H
#define REPOPS_TOOLS_OP_DATA_H

#include "repops/repops.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CASE_INPUTS = 8 };

typedef enum {
    DATA_NORMAL,
    DATA_WIDE,    /* all exponents */
    DATA_SPECIAL, /* one in 8 is a NaN, an infinity, a zero, an extreme or a subnormal */
    DATA_RARE,    /* one in 512 is: sums are not all NaN */
    DATA_TINY,    /* many products underflow */
    DATA_ZERO,    /* +0 and -0 */
    DATA_MASKED,  /* mostly -inf */
    DATA_END
} data_class;

typedef struct {
    ro_call call;
    ro_shape in[CASE_INPUTS];
    void *data[CASE_INPUTS];
    void *out;
    int64_t ids; /* i32 inputs are in [-2, ids + 2); 0: any 32 bits */
} op_case;

static inline uint64_t case_word(uint64_t seed, int input, int64_t i) {
    uint64_t z = (seed + ((uint64_t)input << 40) + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint32_t case_special(uint64_t h) {
    static const uint32_t list[] = {
        0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001,
        0xff923456, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x7f7fffff,
        0xff7fffff, 0x3f800000, 0xbf800000, 0x42b17218, 0xc2d00000, 0x33800000,
    };
    return list[h % (sizeof list / sizeof list[0])];
}

/* Sign: bit 63. Exponent: from bits 32 to 62. Fraction: bits 0 to 22. */
static inline uint32_t case_f32(uint64_t h, data_class class) {
    const uint32_t sign = (uint32_t)(h >> 63) << 31, fraction = h & 0x7fffff;
    const uint32_t e = (uint32_t)(h >> 32) & 0x7fffffff;
    const uint32_t normal = sign | (120 + e % 12) << 23 | fraction;
    switch (class) {
    case DATA_WIDE: return sign | e % 255 << 23 | fraction;
    case DATA_SPECIAL: return e % 8 == 0 ? case_special(h & 0xffff) : normal;
    case DATA_RARE: return e % 512 == 0 ? case_special(h & 0xffff) : normal;
    case DATA_TINY: return sign | e % 80 << 23 | fraction;
    case DATA_ZERO: return sign;
    case DATA_MASKED: return e % 4 == 0 ? normal : 0xff800000;
    default: return normal;
    }
}

/* Returns an element of 16 bits like an f32 of the class: bf16 is its upper half, f16 has as much
 * of its exponent and fraction as fits. */
static inline uint16_t case_half(uint64_t h, data_class class, int dtype) {
    const uint32_t x = case_f32(h, class), sign = x >> 16 & 0x8000, fraction = x >> 13 & 0x3ff;
    const int exponent = (int)(x >> 23 & 0xff) - (127 - 15);
    if (dtype == RO_BF16)
        return (uint16_t)(x >> 16);
    if (exponent > 30)
        return (uint16_t)(sign | (exponent == 255 - (127 - 15) ? 0x7c00 : 0x7800) | fraction);
    return (uint16_t)(sign | (exponent > 0 ? (uint32_t)exponent << 10 : 0) | fraction);
}

static inline uint32_t case_i32(uint64_t h, int64_t ids) {
    return ids ? (uint32_t)(h % (uint64_t)(ids + 4)) - 2
               : (uint32_t)(h % 8 ? h >> 8 & 0xfff : h >> 8);
}

/* 0 if there is no memory. */
static inline int case_fill(op_case *c, uint64_t seed, data_class class) {
    for (int t = 0; t < c->call.input_count; t++) {
        const int64_t count = ro_shape_numel(&c->in[t]);
        c->data[t] = malloc((size_t)count * ro_dtype_size(c->in[t].dtype) + 1); /* count may be 0 */
        if (!c->data[t])
            return 0;
        for (int64_t i = 0; i < count; i++) {
            const uint64_t h = case_word(seed, t, i);
            switch (c->in[t].dtype) {
            case RO_F32: ((uint32_t *)c->data[t])[i] = case_f32(h, class); break;
            case RO_I32: ((uint32_t *)c->data[t])[i] = case_i32(h, c->ids); break;
            case RO_U8:
            case RO_I8: ((uint8_t *)c->data[t])[i] = (uint8_t)h; break;
            case RO_BF16:
            case RO_F16: ((uint16_t *)c->data[t])[i] = case_half(h, class, c->in[t].dtype); break;
            default: ((uint16_t *)c->data[t])[i] = (uint16_t)h; break;
            }
        }
    }
    c->out = malloc((size_t)ro_shape_numel(&c->call.output) * 4 + 1);
    return c->out != NULL;
}

static inline size_t case_out_bytes(const op_case *c) {
    return (size_t)ro_shape_numel(&c->call.output) * ro_dtype_size(c->call.output.dtype);
}

/* Element e of the output, as the reference gives it. */
static inline uint32_t case_out(const op_case *c, int64_t e) {
    switch (ro_dtype_size(c->call.output.dtype)) {
    case 1: return ((const uint8_t *)c->out)[e];
    case 2: return ((const uint16_t *)c->out)[e];
    default: return ((const uint32_t *)c->out)[e];
    }
}

static inline void case_free(op_case *c) {
    for (int t = 0; t < c->call.input_count; t++)
        free(c->data[t]);
    free(c->out);
}

#endif
