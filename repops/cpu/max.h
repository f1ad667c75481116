/* The maximum of an array, SPEC.md section 3.2. */
#ifndef REPOPS_CPU_MAX_H
#define REPOPS_CPU_MAX_H

#include "repops/cpu/isa.h"

/* The maximum does not depend on the order, so it is taken over integers that are ordered as the
 * floats are, with -0 below +0: compilers vectorise that, and NaNs are noticed apart. */
RO_INLINE float max_of(const float *x, int64_t n) {
    int32_t most = (int32_t)UINT32_C(0x807fffff); /* -inf */
    uint32_t largest = 0;                         /* magnitude */
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
