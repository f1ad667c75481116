/* Random words of Philox (SPEC.md section 10), for several blocks side by side. */
#ifndef REPOPS_CPU_PHILOX_H
#define REPOPS_CPU_PHILOX_H

#include "repops/cpu/isa.h"
#include "repops/src/philox.h"

typedef struct {
    uint64_t seed;
    uint32_t step, stream;
} philox;

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

/* A block has a 64-bit lane in each register. Its word is the lower half; the product ignores the
 * upper half, so that no shuffles are needed. */
#if defined(RO_ISA_avx512)

typedef __m512i words;
enum { PHILOX_BLOCKS = 8 };
#define MM(name) _mm512_##name
RO_INLINE words words_xor3(words a, words b, words c) {
    return _mm512_ternarylogic_epi64(a, b, c, 0x96);
}
/* Returns numbers of blocks, in the order from which words_store puts them in sequence. */
RO_INLINE words words_count(uint64_t first) {
    return _mm512_add_epi64(_mm512_set1_epi64((int64_t)first),
                            _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7));
}
/* Returns words of a and b in turn. */
RO_INLINE words words_pair(words a, words b) {
    return _mm512_mask_shuffle_epi32(a, 0xaaaa, b, _MM_PERM_CCAA);
}
RO_INLINE void words_store(uint32_t *out, words a, words b) {
    _mm512_storeu_si512(out, _mm512_unpacklo_epi64(a, b));
    _mm512_storeu_si512(out + 16, _mm512_unpackhi_epi64(a, b));
}

#else

typedef __m256i words;
enum { PHILOX_BLOCKS = 4 };
#define MM(name) _mm256_##name
RO_INLINE words words_xor3(words a, words b, words c) {
    return _mm256_xor_si256(_mm256_xor_si256(b, c), a);
}
RO_INLINE words words_count(uint64_t first) {
    return _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first), _mm256_setr_epi64x(0, 2, 1, 3));
}
RO_INLINE words words_pair(words a, words b) {
    return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
}
RO_INLINE void words_store(uint32_t *out, words a, words b) {
    _mm256_storeu_si256((__m256i *)out, _mm256_unpacklo_epi64(a, b));
    _mm256_storeu_si256((__m256i *)(out + 8), _mm256_unpackhi_epi64(a, b));
}

#endif

RO_INLINE void philox_blocks(philox p, uint64_t first, uint32_t *word) {
    const words m0 = MM(set1_epi32)((int)RO_PHILOX_M0), m1 = MM(set1_epi32)((int)RO_PHILOX_M1);
    words w0 = words_count(first), w1 = MM(srli_epi64)(w0, 32);
    words w2 = MM(set1_epi32)((int)p.step), w3 = MM(set1_epi32)((int)p.stream);
    uint32_t key0 = (uint32_t)p.seed, key1 = (uint32_t)(p.seed >> 32);
    for (int round = 0; round < 10; round++) {
        const words a = MM(mul_epu32)(w0, m0), b = MM(mul_epu32)(w2, m1);
        w0 = words_xor3(MM(srli_epi64)(b, 32), w1, MM(set1_epi32)((int)key0));
        w2 = words_xor3(MM(srli_epi64)(a, 32), w3, MM(set1_epi32)((int)key1));
        w1 = b, w3 = a;
        key0 += RO_PHILOX_KEY0, key1 += RO_PHILOX_KEY1;
    }
    words_store(word, words_pair(w0, w1), words_pair(w2, w3));
}

#undef MM

#else

/* Compilers vectorise these loops over blocks. */
enum { PHILOX_BLOCKS = 16 };

RO_INLINE void philox_blocks(philox p, uint64_t first, uint32_t *restrict word) {
    uint32_t part[4][PHILOX_BLOCKS];
    for (int j = 0; j < PHILOX_BLOCKS; j++) {
        uint32_t block[4];
        ro_philox_block(p.seed, first + (uint64_t)j, p.step, p.stream, block);
        part[0][j] = block[0];
        part[1][j] = block[1];
        part[2][j] = block[2];
        part[3][j] = block[3];
    }
    for (int j = 0; j < PHILOX_BLOCKS; j++)
        for (int w = 0; w < 4; w++)
            word[4 * j + w] = part[w][j];
}

#endif

/* Stores word w of block first + j at word[4 j + w], for all j < blocks. Writes whole groups of
 * PHILOX_BLOCKS blocks. */
RO_INLINE void philox_words(philox p, uint64_t first, int64_t blocks, uint32_t *word) {
    for (int64_t j = 0; j < blocks; j += PHILOX_BLOCKS)
        philox_blocks(p, first + (uint64_t)j, word + 4 * j);
}

#endif
