/* Packs a b of 16-bit elements into a panel of f32, laid out like those of gemm_pack.h. */
#ifndef REPOPS_CPU_GEMM_PACK_WORDS_H
#define REPOPS_CPU_GEMM_PACK_WORDS_H

#include "repops/cpu/gemm/gemm_words.h"

/* A panel of NR columns to pack; see panel in gemm_pack.h. */
typedef struct {
    const uint16_t *from;
    int64_t lane_step, k_step; /* one of them is 1 */
    int64_t lanes, k;
} word_panel;

RO_INLINE void pack_word_rows(const word_panel *s, const int dtype, float *to) {
    for (int64_t p = 0; p < s->k; p++, to += NR) {
        widen_line(dtype, s->from + p * s->k_step, s->lanes, to);
        for (int64_t i = s->lanes; i < NR; i++)
            to[i] = 0.0f;
    }
}

/* Packs `lanes` lanes from lane i on and `steps` steps from step p on. */
RO_INLINE void pack_words_one_by_one(const word_panel *s, const int dtype, int64_t i, int64_t lanes,
                                     int64_t p, int64_t steps, float *to) {
    for (int64_t q = p; q < p + steps; q++)
        for (int64_t j = i; j < i + lanes; j++)
            to[q * NR + j] =
                j < s->lanes ? number_of_word(dtype, s->from[j * s->lane_step + q]) : 0.0f;
}

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

RO_INLINE void pack_word_columns(const word_panel *s, const int dtype, float *to) {
    /* AVX2 has no vector conversion of f16 here */
    const int whole = dtype == RO_BF16 || VW == 16;
    for (int64_t i = 0; i < NR; i += VW)
        for (int64_t p = 0; p < s->k; p += WORD_STEPS) {
            vf r[VW];
            if (!whole || i + VW > s->lanes || p + WORD_STEPS > s->k) {
                pack_words_one_by_one(s, dtype, i, VW, p, min_i64(WORD_STEPS, s->k - p), to);
                continue;
            }
            load_words_transposed(s->from + i * s->lane_step + p, s->lane_step, r);
            RO_UNROLL
            for (int q = 0; q < WORD_STEPS; q++)
                vf_store(to + (p + q) * NR + i, widened(dtype, q % 2, r[q / 2]));
        }
}

#else

RO_INLINE void pack_word_columns(const word_panel *s, const int dtype, float *to) {
    pack_words_one_by_one(s, dtype, 0, NR, 0, s->k, to);
}

#endif

static void pack_words(const word_panel *s, int dtype, float *to) {
    if (s->lane_step == 1 && dtype == RO_BF16)
        pack_word_rows(s, RO_BF16, to);
    else if (s->lane_step == 1)
        pack_word_rows(s, RO_F16, to);
    else if (dtype == RO_BF16)
        pack_word_columns(s, RO_BF16, to);
    else
        pack_word_columns(s, RO_F16, to);
}

#endif
