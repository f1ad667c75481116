/* Elementary functions of vectors, and loops over arrays: SPEC.md sections 2 and 6. They are
 * written in intrinsics because gcc 12 compiles the clamps of math.h badly, and does not use
 * vscalefps. */
#ifndef REPOPS_CPU_FUNCTIONS_H
#define REPOPS_CPU_FUNCTIONS_H

#include "repops/cpu/elements/wide.h"

/* ---- loops. The output may be an input. ---- */

/* Constants that all elements share. */
typedef struct {
    float a, b, c;
} constants;

/* Compute elements of the output from elements of one input or of two. */
typedef wide function1(wide x, constants s);
typedef wide function2(wide x, wide y, constants s);

RO_INLINE void map(function1 *f, constants s, const float *x, int64_t n, float *out) {
    const int64_t whole = n / WIDE * WIDE, left = n - whole;
    WIDE_SAME_INDEX
    for (int64_t i = 0; i < whole; i += WIDE) {
        fetch_ahead(x + i);
        wide_store(out + i, f(wide_load(x + i), s));
    }
    if (left)
        wide_store_n(out + whole, f(wide_load_n(x + whole, left), s), left);
}

/* ahead: whether to prefetch, for functions with much arithmetic. It makes the others a fifth
 * slower on arrays in the third-level cache. */
RO_INLINE void map2(function2 *f, constants s, const float *x, const float *y, int64_t n,
                    float *out, int ahead) {
    const int64_t whole = n / WIDE * WIDE, left = n - whole;
    WIDE_SAME_INDEX
    for (int64_t i = 0; i < whole; i += WIDE) {
        if (ahead)
            fetch_ahead(x + i), fetch_ahead(y + i);
        wide_store(out + i, f(wide_load(x + i), wide_load(y + i), s));
    }
    if (left)
        wide_store_n(out + whole, f(wide_load_n(x + whole, left), wide_load_n(y + whole, left), s),
                     left);
}

/* exp(x - a) */
RO_INLINE wide exp_minus(wide x, constants s) {
    return fast_exp(wide_sub(x, wide_set1(s.a)));
}

/* exp(x - y) */
RO_INLINE wide exp_difference(wide x, wide y, constants s) {
    (void)s;
    return fast_exp(wide_sub(x, y));
}

/* exp(x - a) * b */
RO_INLINE wide exp_scaled(wide x, constants s) {
    return wide_canon(wide_mul(exp_minus(x, s), wide_set1(s.b)));
}

#endif
