/* Exponents and integers of lines, for the engines of AVX-512. */
#ifndef REPOPS_CPU_FIXED_VECTORS_H
#define REPOPS_CPU_FIXED_VECTORS_H

#include "repops/cpu/gemm/fixed_lines.h"

#if defined(RO_ISA_avx512)

enum {
    FIXED_AHEAD = 12
}; /* prefetch distance in steps of b, each of which may lie in another page */

/* The exponents (SPEC.md section 3.5) of 16 lanes, as in src/fixed.h, and how many bits their
 * integers have. */
typedef struct {
    __m512i exponent, bits;
    __mmask16 finite;
} scales;

RO_INLINE scales scales_of(__m512i most, int bits) {
    const __m512i field = _mm512_srli_epi32(_mm512_add_epi32(most, _mm512_set1_epi32(0x1ffff)), 23);
    return (scales){
        _mm512_sub_epi32(_mm512_max_epi32(field, _mm512_set1_epi32(1)), _mm512_set1_epi32(126)),
        _mm512_set1_epi32(bits), _mm512_cmplt_epu32_mask(most, _mm512_set1_epi32(0x7f800000))};
}

/* Stores what 1 in each lane's integers stands for: NaN if the lane is not finite. */
RO_INLINE void store_powers(scales s, double *power) {
    const __m512i e =
        _mm512_sub_epi32(_mm512_add_epi32(s.exponent, _mm512_set1_epi32(1024)), s.bits);
    const __m512d nan = _mm512_set1_pd(__builtin_nan(""));
    for (int h = 0; h < 2; h++) {
        const __m256i half = h ? _mm512_extracti64x4_epi64(e, 1) : _mm512_castsi512_si256(e);
        const __m512d p = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepi32_epi64(half), 52));
        _mm512_storeu_pd(power + 8 * h, _mm512_mask_mov_pd(nan, (__mmask8)(s.finite >> 8 * h), p));
    }
}

RO_INLINE __m512i magnitude(__m512 x) {
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/* Converts to integers; lanes that are not finite become 0. Scaling is exact, or the integer is
 * 0. */
RO_INLINE __m512i integers(__m512 x, scales s) {
    const __m512i one = _mm512_set1_epi32(1);
    const __m512 by =
        _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_sub_epi32(s.bits, one), s.exponent));
    return _mm512_maskz_cvtps_epi32(s.finite, _mm512_scalef_ps(x, by));
}

/* ---- 8 bits: which lines get 16 ---- */

/* Returns the magnitudes from which a number counts as large, as in src/fixed.h. */
RO_INLINE __m512i limits(scales s) {
    const __m512i e = s.exponent;
    const __m512i below =
        _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_add_epi32(e, _mm512_set1_epi32(143)));
    const __mmask16 normal = _mm512_cmpgt_epi32_mask(e, _mm512_set1_epi32(-121));
    return _mm512_mask_slli_epi32(below, normal, _mm512_add_epi32(e, _mm512_set1_epi32(121)), 23);
}

RO_INLINE scales with_two_digits(scales s, __mmask16 lanes) {
    s.bits = _mm512_mask_mov_epi32(s.bits, lanes, _mm512_set1_epi32(RO_FIXED_16));
    return s;
}

RO_INLINE __mmask16 two_digits(scales s) {
    return _mm512_cmpgt_epi32_mask(s.bits, _mm512_set1_epi32(RO_FIXED_8));
}

/* Returns whether most of a line's numbers are small, zeros aside. In most lines so many are large
 * that zeros need not be counted. */
RO_INLINE int is_uneven(const float *x, int64_t steps, __m512i limit) {
    int large = 0, numbers = 0;
    for (int64_t k = 0; k < steps; k += VW)
        large += __builtin_popcount(
            _mm512_cmpge_epu32_mask(magnitude(numbers_at(x + k, steps - k)), limit));
    if (2 * large >= steps)
        return 0;
    for (int64_t k = 0; k < steps; k += VW) {
        const __m512i size = magnitude(numbers_at(x + k, steps - k));
        numbers += __builtin_popcount(_mm512_test_epi32_mask(size, size));
    }
    return numbers > 2 * large;
}

RO_INLINE __mmask16 uneven_columns(const side_by_side *c, int64_t col, __m512i limit) {
    const __m512i one = _mm512_set1_epi32(1);
    __m512i large = _mm512_setzero_si512(), numbers = large;
    for (int64_t k = 0; k < c->steps; k++) {
        const __mmask16 more = _mm512_cmpge_epu32_mask(magnitude(step_of(c, k, col)), limit);
        large = _mm512_mask_add_epi32(large, more, large, one);
    }
    large = _mm512_add_epi32(large, large);
    if (!_mm512_cmplt_epi32_mask(large, _mm512_set1_epi32((int)c->steps)))
        return 0;
    for (int64_t k = 0; k < c->steps; k++) {
        const __m512i size = magnitude(step_of(c, k, col));
        numbers = _mm512_mask_add_epi32(numbers, _mm512_test_epi32_mask(size, size), numbers, one);
    }
    return _mm512_cmpgt_epi32_mask(numbers, large);
}

/* Returns the scales of one line, in all lanes, and stores its power. */
RO_INLINE scales line_scales(const float *x, int64_t steps, int bits, double *power) {
    __m512i most = _mm512_setzero_si512();
    double powers[VW];
    for (int64_t k = 0; k < steps; k += VW)
        most = _mm512_max_epu32(most, magnitude(numbers_at(x + k, steps - k)));
    scales s = scales_of(_mm512_set1_epi32((int)_mm512_reduce_max_epu32(most)), bits);
    if (bits == RO_FIXED_8 && s.finite && is_uneven(x, steps, limits(s)))
        s = with_two_digits(s, s.finite);
    store_powers(s, powers);
    *power = powers[0];
    return s;
}

RO_INLINE scales column_scales(const side_by_side *c, int64_t col, int bits, double *power) {
    __m512i most = _mm512_setzero_si512();
    for (int64_t k = 0; k < c->steps; k++) {
        const float *ahead = c->x + min_i64(k + FIXED_AHEAD, c->steps - 1) * c->step;
        __builtin_prefetch(ahead + min_i64(col, c->cols - 1));
        __builtin_prefetch(ahead + min_i64(col + VW, c->cols - 1));
        most = _mm512_max_epu32(most, magnitude(step_of(c, k, col)));
    }
    scales s = scales_of(most, bits);
    if (bits == RO_FIXED_8)
        s = with_two_digits(s, s.finite & uneven_columns(c, col, limits(s)));
    store_powers(s, power);
    return s;
}

#endif

#endif
