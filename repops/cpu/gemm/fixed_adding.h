/* Sums of packed words of 16 bits, for the checks (fixed_check.h) of engines with such words. All
 * sums are modulo 2^32. */
#ifndef REPOPS_CPU_FIXED_ADDING_H
#define REPOPS_CPU_FIXED_ADDING_H

#include "repops/cpu/gemm/fixed_lines.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

#if defined(RO_ISA_avx512)
typedef __m512i vi;
#define VI(name)       _mm512_##name
#define VI_LOAD(p)     _mm512_loadu_si512(p)
#define VI_STORE(p, x) _mm512_storeu_si512(p, x)
#define VI_ZERO        _mm512_setzero_si512()
#else
typedef __m256i vi;
#define VI(name)       _mm256_##name
#define VI_LOAD(p)     _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define VI_STORE(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define VI_ZERO        _mm256_setzero_si256()
#endif

/* An engine may define FIXED_DOT, an instruction for these sums, and FIXED_DOT_TARGET, which
 * enables it. */
#ifndef FIXED_DOT
#define FIXED_DOT(sum, x, y) VI(add_epi32)(sum, VI(madd_epi16)(x, y))
#define FIXED_DOT_TARGET
#endif

RO_INLINE void add_vector_to(uint32_t *to, vi x) {
    VI_STORE(to, VI(add_epi32)(VI_LOAD(to), x));
}

/* Multiplies a sum by the odd factor of its part: 1, 2^8 + 1, 2^16 + 1. */
RO_INLINE vi weighted(vi sum, int part) {
    return part == 0 ? sum : VI(add_epi32)(sum, VI(slli_epi32)(sum, 8 * part));
}

/* Adds words of rows, which lie RO_DOT_CHUNK apart, to the sum of each step. */
RO_INLINE void add_words(const int16_t *a, int64_t rows, int64_t steps, uint32_t *sum) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < steps; k++)
            sum[k] += (uint32_t)(int32_t)a[i * RO_DOT_CHUNK + k];
}

/* Returns the sum of a plane of b, read as words of 32 bits: a pair of steps each. */
RO_INLINE uint32_t words_of_plane(const int16_t *b, int64_t pairs) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < pairs * FIXED_COLS; i++) {
        uint32_t two;
        memcpy(&two, b + 2 * i, sizeof two);
        sum += two;
    }
    return sum;
}

RO_INLINE uint32_t sum_lanes(vi x) {
    uint32_t lane[VW], sum = 0;
    VI_STORE(lane, x);
    for (int i = 0; i < VW; i++)
        sum += lane[i];
    return sum;
}

/* For each column of a plane of b, adds the products of its words with a's sums, times the part's
 * factor, to `out`. `more`, if not NULL, is a plane to add to b first. A sum of 32 bits is split
 * into words. Returns what words_of_plane returns. */
FIXED_DOT_TARGET RO_INLINE uint32_t add_columns(const int16_t *b, const int16_t *more,
                                                int64_t pairs, int part, const uint32_t *sum,
                                                uint32_t *out) {
    int16_t low[RO_DOT_CHUNK], high[RO_DOT_CHUNK];
    vi l[2] = {VI_ZERO, VI_ZERO}, h[2] = {VI_ZERO, VI_ZERO}, words = VI_ZERO;
    for (int64_t k = 0; k < 2 * pairs; k++) {
        low[k] = (int16_t)sum[k];
        high[k] = (int16_t)((sum[k] - (uint32_t)(int32_t)low[k]) >> 16);
    }
    for (int64_t k = 0; k < pairs; k++, b += 2 * FIXED_COLS) {
        int32_t of_low, of_high;
        memcpy(&of_low, low + 2 * k, sizeof of_low);
        memcpy(&of_high, high + 2 * k, sizeof of_high);
        const vi x = VI(set1_epi32)(of_low), y = VI(set1_epi32)(of_high);
        RO_UNROLL
        for (int v = 0; v < 2; v++) {
            vi w = VI_LOAD(b + 2 * VW * v);
            words = VI(add_epi32)(words, w);
            if (more)
                w = VI(add_epi16)(w, VI_LOAD(more + 2 * FIXED_COLS * k + 2 * VW * v));
            l[v] = FIXED_DOT(l[v], x, w);
            h[v] = FIXED_DOT(h[v], y, w);
        }
    }
    for (int v = 0; v < 2; v++)
        add_vector_to(out + VW * v, weighted(VI(add_epi32)(l[v], VI(slli_epi32)(h[v], 16)), part));
    return sum_lanes(words);
}

/* Does what add_columns does for integers of 16 bits. One plane of b is multiplied with both parts
 * of a, so the parts' sums are combined first. */
FIXED_DOT_TARGET RO_INLINE uint32_t add_columns_of_both(const int16_t *b, int64_t pairs,
                                                        const uint32_t sum[][RO_DOT_CHUNK],
                                                        uint32_t *out) {
    uint32_t both[RO_DOT_CHUNK];
    for (int64_t k = 0; k < 2 * pairs; k++)
        both[k] = sum[0][k] + sum[1][k] + (sum[1][k] << 8);
    return add_columns(b, NULL, pairs, 0, both, out);
}

#endif

#endif
