/* The maximum of an array, SPEC.md section 3.2. */
#ifndef REPOPS_CPU_MAX_H
#define REPOPS_CPU_MAX_H

#include "repops/cpu/elements/functions.h"

/* Returns the maximum of an array whose maximum is a zero: +0 if it has one, else -0. */
static __attribute__((unused)) float largest_zero(const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (ro_to_bits(x[i]) == 0)
            return 0.0f;
    return -0.0f;
}

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2) || defined(RO_ISA_neon)

/* The maximum so far, in each lane. */
typedef struct {
    vf most, nan; /* nan: 1 in lanes that had a NaN */
} maximum;

RO_INLINE maximum with_larger(maximum m, vf x) {
    const vf least = vf_set1(ro_from_bits(RO_MINUS_INFINITY_BITS));
    return (maximum){vf_cut_below(x, m.most), vf_if_ge(x, least, m.nan, vf_set1(1.0f))};
}

/* Returns the maximum. It does not depend on the order, except for the sign of a zero. */
RO_INLINE float max_of(const float *x, int64_t n) {
    enum { CHAINS = 4 };
    maximum m[CHAINS];
    int64_t i = 0;
    RO_UNROLL
    for (int k = 0; k < CHAINS; k++)
        m[k] = (maximum){vf_set1(ro_from_bits(RO_MINUS_INFINITY_BITS)), vf_set1(0.0f)};
    for (; i + CHAINS * VW <= n; i += CHAINS * VW) {
        RO_UNROLL
        for (int k = 0; k < CHAINS; k++)
            m[k] = with_larger(m[k], vf_load(x + i + k * VW));
    }
    for (; i + VW <= n; i += VW)
        m[0] = with_larger(m[0], vf_load(x + i));
    RO_UNROLL
    for (int k = 1; k < CHAINS; k++)
        m[0] = (maximum){vf_cut_below(m[k].most, m[0].most), vf_add(m[0].nan, m[k].nan)};
    float most = vf_most(m[0].most);
    int nan = vf_most(m[0].nan) > 0;
    for (; i < n; i++) {
        most = ro_cut_below(x[i], most);
        nan |= x[i] != x[i];
    }
    if (nan)
        return ro_from_bits(RO_QNAN_BITS);
    return most == 0 ? largest_zero(x, n) : most;
}

#else

/* Finds the maximum of integers in the order of floats, with -0 below +0: compilers vectorise this.
 * NaNs are detected separately. */
RO_INLINE float max_of(const float *x, int64_t n) {
    int32_t most = (int32_t)UINT32_C(0x807fffff); /* -inf */
    uint32_t largest = 0;                         /* largest magnitude, to detect NaNs */
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = ro_to_bits(x[i]), magnitude = bits & UINT32_C(0x7fffffff);
        const int32_t sign = (int32_t)bits >> 31;
        const int32_t key = (int32_t)(bits ^ ((uint32_t)sign & UINT32_C(0x7fffffff)));
        most = key > most ? key : most;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest > UINT32_C(0x7f800000))
        return ro_from_bits(RO_QNAN_BITS);
    return ro_from_bits((uint32_t)most ^ ((uint32_t)(most >> 31) & UINT32_C(0x7fffffff)));
}

#endif

#endif
