/* Exponentials of scores, SPEC.md section 8. */
#ifndef REPOPS_CPU_SOFTMAX_H
#define REPOPS_CPU_SOFTMAX_H

#include "repops/cpu/elements/functions.h"

RO_INLINE int is_minus_infinity(float x) {
    return ro_to_bits(x) == RO_MINUS_INFINITY_BITS;
}

RO_INLINE void clear(float *out, int64_t count) {
    memset(out, 0, (size_t)count * sizeof *out);
}

RO_INLINE void combine(float *restrict o, float a, float b, const float *restrict ac,
                       int64_t width) {
    for (int64_t d = 0; d < width; d++)
        o[d] = ro_fma(o[d], a, b * ac[d]);
}

RO_INLINE void scale_row(float *o, float scale, int64_t width) {
    for (int64_t d = 0; d < width; d++)
        o[d] = ro_canon(o[d] * scale);
}

#endif
