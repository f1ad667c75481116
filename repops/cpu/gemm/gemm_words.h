/* Widens elements of 16 bits to f32, which is exact. A NaN need not become canonical here: the
 * results of a product do. */
#ifndef REPOPS_CPU_GEMM_WORDS_H
#define REPOPS_CPU_GEMM_WORDS_H

#include "repops/cpu/gemm/gemm_pack.h"
#include "repops/src/half.h"

RO_INLINE float number_of_word(int dtype, uint16_t word) {
    return dtype == RO_F16 ? ro_from_f16(word) : ro_from_bits((uint32_t)word << 16);
}

/* ---- in the order of addresses ---- */

RO_INLINE vf load_numbers(int dtype, const uint16_t *p) {
#if defined(RO_ISA_avx512)
    const __m256i x = _mm256_loadu_si256((const void *)p);
    return dtype == RO_F16 ? _mm512_cvtph_ps(x)
                           : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
#else
    float number[VW];
    for (int i = 0; i < VW; i++)
        number[i] = number_of_word(dtype, p[i]);
    return vf_load(number);
#endif
}

RO_INLINE void widen_line(const int dtype, const uint16_t *restrict from, int64_t n,
                          float *restrict to) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        vf_store(to + i, load_numbers(dtype, from + i));
    for (; i < n; i++)
        to[i] = number_of_word(dtype, from[i]);
}

/* ---- pairs of neighbours, for transposing ---- */

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

enum { WORD_STEPS = 2 * VW }; /* elements in a line of VW words of 32 bits */

/* Returns one element of each word of 32 bits; `odd`: the one at the higher address. */
RO_INLINE vf widened(int dtype, int odd, vf word) {
#if defined(RO_ISA_avx512)
    const __m512i x = _mm512_castps_si512(word);
    if (dtype == RO_F16)
        return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(odd ? _mm512_srli_epi32(x, 16) : x));
    return _mm512_castsi512_ps(odd ? _mm512_and_si512(x, _mm512_set1_epi32(-0x10000))
                                   : _mm512_slli_epi32(x, 16));
#else
    const __m256i x = _mm256_castps_si256(word);
    (void)dtype;
    return _mm256_castsi256_ps(odd ? _mm256_and_si256(x, _mm256_set1_epi32(-0x10000))
                                   : _mm256_slli_epi32(x, 16));
#endif
}

RO_INLINE vf load_words(const uint16_t *p) {
#if defined(RO_ISA_avx512)
    return _mm512_loadu_ps((const void *)p);
#else
    return _mm256_loadu_ps((const void *)p);
#endif
}

/* Loads VW words of each of VW lines, `step` apart, transposed: r[q] holds word q of every line. */
RO_INLINE void load_words_transposed(const uint16_t *b, int64_t step, vf r[VW]) {
    RO_UNROLL
    for (int l = 0; l < VW; l++)
        r[l] = load_words(b + l * step);
    transpose(r);
}

#endif
#endif
