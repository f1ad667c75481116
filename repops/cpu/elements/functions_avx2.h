/* The vector operations in AVX2 that functions need beyond those of isa.h. Included by wide.h
 * alone. */
#ifndef REPOPS_CPU_FUNCTIONS_AVX2_H
#define REPOPS_CPU_FUNCTIONS_AVX2_H

#include "repops/cpu/isa.h"
#include "repops/cpu/elements/functions_x86.h"

RO_INLINE vf bits256(uint32_t bits) {
    return _mm256_castsi256_ps(_mm256_set1_epi32((int)bits));
}
RO_INLINE vf vf_abs(vf x) {
    return _mm256_and_ps(x, bits256(0x7fffffff));
}
RO_INLINE vf vf_minus_abs(vf x) {
    return _mm256_or_ps(x, bits256(0x80000000));
}
RO_INLINE vf vf_cut_above(vf x, vf c) {
    return _mm256_min_ps(x, c);
}
RO_INLINE vf vf_cut_below(vf x, vf c) {
    return _mm256_max_ps(x, c);
}
RO_INLINE vf vf_if_ge(vf a, vf b, vf y, vf n) {
    return _mm256_blendv_ps(n, y, _mm256_cmp_ps(a, b, _CMP_GE_OQ));
}
RO_INLINE vf vf_with_sign(vf y, vf x) {
    return _mm256_or_ps(y, _mm256_and_ps(x, bits256(0x80000000)));
}
RO_INLINE vf vf_unless_nan(vf x, vf y) {
    return _mm256_blendv_ps(y, bits256(RO_QNAN_BITS), _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
/* Returns k * 2^23, where the lowest bits of t hold k. */
RO_INLINE __m256i exponent(vf t) {
    return _mm256_slli_epi32(_mm256_castps_si256(t), 23);
}
/* Returns 2^(k + n); k is already shifted to the exponent's bits, and offset is (127 + n) << 23. */
RO_INLINE vf power(__m256i k, __m256i offset) {
    return _mm256_castsi256_ps(_mm256_add_epi32(k, offset));
}
/* Returns y * 2^k as a product with two factors, as in math.h; the sign of k chooses which. */
RO_INLINE vf vf_scale(vf y, vf t) {
    const __m256i k = exponent(t);
    const vf sign = _mm256_castsi256_ps(k);
    const vf offset = _mm256_blendv_ps(bits256((127 - 64) << 23), bits256((127u + 64) << 23), sign);
    const vf rest = _mm256_blendv_ps(vf_set1(0x1p64f), vf_set1(0x1p-64f), sign);
    return vf_mul(vf_mul(y, power(k, _mm256_castps_si256(offset))), rest);
}
RO_INLINE vf vf_scale_down(vf y, vf t) {
    const vf most = power(exponent(t), _mm256_set1_epi32((int)((127u + 64) << 23)));
    return vf_mul(vf_mul(y, most), vf_set1(0x1p-64f));
}
RO_INLINE vf vf_scale_sum(vf p, vf t) {
    const vf s = power(exponent(t), _mm256_set1_epi32(127 << 23));
    return vf_fma(p, s, s);
}
RO_INLINE vf vf_log_split(vf x, vf *m) {
    const __m256i u = _mm256_castps_si256(x);
    const __m256i e = _mm256_and_si256(_mm256_sub_epi32(u, _mm256_set1_epi32(0x3f2aaaab)),
                                       _mm256_set1_epi32((int)0xff800000));
    *m = _mm256_castsi256_ps(_mm256_sub_epi32(u, e));
    return _mm256_cvtepi32_ps(e);
}
typedef __m256i vf_lanes;
RO_INLINE vf_lanes vf_within(vf x, float most) {
    return _mm256_castps_si256(_mm256_cmp_ps(vf_abs(x), vf_set1(most), _CMP_LE_OQ));
}
RO_INLINE vf_lanes vf_below(vf x, float c) {
    return _mm256_castps_si256(_mm256_cmp_ps(x, vf_set1(c), _CMP_LT_OQ));
}
RO_INLINE int vf_every(vf_lanes lanes) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(lanes)) == 0xff;
}
RO_INLINE vf vf_only(vf_lanes lanes, vf x) {
    return _mm256_and_ps(_mm256_castsi256_ps(lanes), x);
}
RO_INLINE int vf_positive_normal(vf a, vf b) {
    const __m256i x = _mm256_castps_si256(a), y = _mm256_castps_si256(b);
    const __m256i least = _mm256_min_epi32(x, y), most = _mm256_max_epi32(x, y);
    const __m256i low = _mm256_cmpgt_epi32(least, _mm256_set1_epi32(0x007fffff));
    const __m256i high = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), most);
    return _mm256_movemask_epi8(_mm256_and_si256(low, high)) == -1;
}
RO_INLINE vf vf_max(vf a, vf b) {
    const vf m = _mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a));
    return _mm256_blendv_ps(m, bits256(RO_QNAN_BITS), _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
}
RO_INLINE float vf_most(vf x) {
    return most8(x);
}

#endif
