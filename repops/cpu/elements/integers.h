/* Conversion of f32 numbers to integers, SPEC.md section 5. */
#ifndef REPOPS_CPU_INTEGERS_H
#define REPOPS_CPU_INTEGERS_H

#include "repops/cpu/isa.h"

/* Rounds toward zero and saturates at the ends of the range; NaN becomes 0. C does not define the
 * conversion of values outside of i32, so they never reach it. */
RO_INLINE int32_t integer_of(float x) {
    const float inside = x > -0x1p31f && x < 0x1p31f ? x : 0.0f;
    const int32_t end = x >= 0x1p31f ? INT32_MAX : x <= -0x1p31f ? INT32_MIN : 0;
    return (int32_t)inside + end;
}

/* Casts a vector. x86 converts NaN, and numbers outside of i32, to INT32_MIN. */
#if defined(RO_ISA_avx512)
RO_INLINE void store_integers(int32_t *out, vf x) {
    const __m512i y = _mm512_cvttps_epi32(x), most = _mm512_set1_epi32(INT32_MAX);
    const __mmask16 large = _mm512_cmp_ps_mask(x, vf_set1(0x1p31f), _CMP_GE_OQ);
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    _mm512_storeu_si512(out, _mm512_maskz_mov_epi32(number, _mm512_mask_mov_epi32(y, large, most)));
}
#elif defined(RO_ISA_avx2)
RO_INLINE void store_integers(int32_t *out, vf x) {
    const vf y = _mm256_castsi256_ps(_mm256_cvttps_epi32(x));
    const vf large = _mm256_cmp_ps(x, vf_set1(0x1p31f), _CMP_GE_OQ); /* to become INT32_MAX */
    vf_store((float *)out, _mm256_and_ps(_mm256_xor_ps(y, large), _mm256_cmp_ps(x, x, _CMP_ORD_Q)));
}
#elif defined(RO_ISA_neon)
RO_INLINE void store_integers(int32_t *out, vf x) {
    vst1q_s32(out, vcvtq_s32_f32(x));
}
#endif

RO_INLINE void integers_of(const float *x, int64_t n, int32_t *out) {
    int64_t i = 0;
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2) || defined(RO_ISA_neon)
    for (; i + VW <= n; i += VW)
        store_integers(out + i, vf_load(x + i));
#endif
    for (; i < n; i++)
        out[i] = integer_of(x[i]);
}

#endif
