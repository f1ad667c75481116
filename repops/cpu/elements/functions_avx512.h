/* The vector operations in AVX-512 that functions need beyond those of isa.h. Included by wide.h
 * alone. */
#ifndef REPOPS_CPU_FUNCTIONS_AVX512_H
#define REPOPS_CPU_FUNCTIONS_AVX512_H

#include "repops/cpu/isa.h"
#include "repops/cpu/elements/functions_x86.h"

RO_INLINE vf bits512(uint32_t bits) {
    return _mm512_castsi512_ps(_mm512_set1_epi32((int)bits));
}
RO_INLINE vf vf_abs(vf x) {
    return _mm512_and_ps(x, bits512(0x7fffffff));
}
RO_INLINE vf vf_minus_abs(vf x) {
    return _mm512_or_ps(x, bits512(0x80000000));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return _mm512_min_ps(x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return _mm512_max_ps(x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), n, y);
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return _mm512_or_ps(y, _mm512_and_ps(x, bits512(0x80000000)));
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits512(RO_QNAN_BITS));
}
RO_INLINE vf vf_scale(vf y, vf t) {
    return _mm512_scalef_ps(y, vf_sub(t, vf_set1(0x1.8p23f)));
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    return vf_scale(y, t);
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const __m512i k = _mm512_slli_epi32(_mm512_castps_si512(t), 23);
    const vf s = _mm512_castsi512_ps(_mm512_add_epi32(k, _mm512_set1_epi32(127 << 23)));
    return vf_fma(p, s, s);
}
/* The mask of the exponent's bits is also -inf, which log needs: so one constant takes one
 * register, the last that is free. */
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const __m512i u = _mm512_castps_si512(x);
    const vf mask = vf_set1(ro_from_bits(RO_MINUS_INFINITY_BITS));
    const vf d = _mm512_castsi512_ps(_mm512_sub_epi32(u, _mm512_set1_epi32(0x3f2aaaab)));
    const __m512i e = _mm512_castps_si512(_mm512_and_ps(d, mask));
    *m = _mm512_castsi512_ps(_mm512_sub_epi32(u, e));
    return _mm512_cvtepi32_ps(e);
}
/* A mask of lanes for which a condition holds. */
typedef __mmask16 vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return _mm512_cmp_ps_mask(vf_abs(x), vf_set1(most), _CMP_LE_OQ);
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return _mm512_cmp_ps_mask(x, vf_set1(c), _CMP_LT_OQ);
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return lanes == 0xffff;
}
/* Returns x in `lanes`, and +0 elsewhere. */
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return _mm512_maskz_mov_ps(lanes, x);
}
/* Returns whether all lanes of a and b are positive normal numbers. */
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
    const __m512i least = _mm512_min_epi32(x, y), most = _mm512_max_epi32(x, y);
    const __mmask16 low = _mm512_cmpgt_epi32_mask(least, _mm512_set1_epi32(0x007fffff));
    return (low & _mm512_cmplt_epi32_mask(most, _mm512_set1_epi32(0x7f800000))) == 0xffff;
}
/* Computes the maximum of SPEC.md section 3.2. x86 returns the second operand if both are zeros or
 * one is a NaN; in all other cases the two results are equal. */
RO_INLINE vf vf_max(vf a, vf b) {
    const vf m = _mm512_and_ps(_mm512_max_ps(a, b), _mm512_max_ps(b, a));
    return _mm512_mask_mov_ps(m, _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), bits512(RO_QNAN_BITS));
}
/* Returns the largest lane. No lane is a NaN; a result of zero may have either sign. */
RO_INLINE float vf_most(vf x) {
    return most8(_mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1)));
}

#endif
