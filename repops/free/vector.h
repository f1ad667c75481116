/* Vectors of `real`. */
#ifndef REPOPS_FREE_VECTOR_H
#define REPOPS_FREE_VECTOR_H

#include "repops/free/gemm.h"

typedef real vr __attribute__((vector_size(FREE_VECTOR)));
typedef real vr_anywhere
    __attribute__((vector_size(FREE_VECTOR), aligned(sizeof(real)), may_alias));

typedef __typeof__((vr){0} > (vr){0}) vr_mask;

RO_INLINE vr broadcast(real x) {
#if defined(RO_ISA_avx512) && defined(RO_IS_f64)
    return (vr)_mm512_set1_pd(x);
#elif defined(RO_ISA_avx512)
    return (vr)_mm512_set1_ps(x);
#elif defined(RO_ISA_avx2) && defined(RO_IS_f64)
    return (vr)_mm256_set1_pd(x);
#elif defined(RO_ISA_avx2)
    return (vr)_mm256_set1_ps(x);
#elif defined(RO_IS_f64)
    return (vr){x, x};
#else
    return (vr){x, x, x, x};
#endif
}

RO_INLINE vr load(const real *p) {
    return *(const vr_anywhere *)(const void *)p;
}

RO_INLINE void store(real *p, vr x) {
    *(vr_anywhere *)(void *)p = x;
}

RO_INLINE vr vector_abs(vr x) {
    const vr_mask sign = (vr_mask)broadcast((real)-0.0);
    return (vr)((vr_mask)x & ~sign);
}

#endif
