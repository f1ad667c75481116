/* Exponents and integers, for the engines of AVX-512. */
#ifndef REPOPS_CPU_FIXED_VECTORS_H
#define REPOPS_CPU_FIXED_VECTORS_H

#include "repops/cpu/gemm/fixed_lines.h"

#if defined(RO_ISA_avx512)

enum { FIXED_AHEAD = 12 }; /* steps of b that are fetched ahead, as each may be a page of its own */

/* Exponents, SPEC.md section 3.5, of the largest magnitudes in 16 lanes, as in src/fixed.h. */
typedef struct {
    __m512i exponent;
    __mmask16 finite;
} scales;

RO_INLINE scales scales_of(__m512i most) {
    const __m512i field = _mm512_srli_epi32(_mm512_add_epi32(most, _mm512_set1_epi32(0x1ffff)), 23);
    return (scales){
        _mm512_sub_epi32(_mm512_max_epi32(field, _mm512_set1_epi32(1)), _mm512_set1_epi32(126)),
        _mm512_cmplt_epu32_mask(most, _mm512_set1_epi32(0x7f800000))};
}

/* Stores what an integer of each lane counts: NaN where the lane is not finite. */
RO_INLINE void store_powers(scales s, int bits, double *power) {
    const __m512i e = _mm512_sub_epi32(s.exponent, _mm512_set1_epi32(bits - 1 - 1023));
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

/* Numbers of lanes that are not finite become 0. Scaling is exact, or the integer is 0. */
RO_INLINE __m512i integers(__m512 x, scales s, int bits) {
    const __m512 by = _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_set1_epi32(bits - 1), s.exponent));
    return _mm512_maskz_cvtps_epi32(s.finite, _mm512_scalef_ps(x, by));
}

/* The scales of one line, in all lanes. */
RO_INLINE scales line_scales(const float *x, int64_t steps, int bits, double *power) {
    __m512i most = _mm512_setzero_si512();
    double powers[VW];
    for (int64_t k = 0; k < steps; k += VW)
        most = _mm512_max_epu32(most, magnitude(vf_load_n(x + k, steps - k)));
    const scales s = scales_of(_mm512_set1_epi32((int)_mm512_reduce_max_epu32(most)));
    store_powers(s, bits, powers);
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
    const scales s = scales_of(most);
    store_powers(s, bits, power);
    return s;
}

#endif

#endif
