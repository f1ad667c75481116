/* Packs operands into panels, in which the elements of each k step are contiguous. */
#ifndef REPOPS_CPU_GEMM_PACK_H
#define REPOPS_CPU_GEMM_PACK_H

#include "repops/cpu/gemm/gemm.h"

#if defined(RO_ISA_avx512)

/* Transposes the 16 x 16 matrix whose rows are r: first within quarters of the vectors, then whole
 * quarters. */
RO_INLINE void transpose(vf r[VW]) {
    vf t[VW];
    RO_UNROLL
    for (int i = 0; i < VW; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    RO_UNROLL
    for (int i = 0; i < VW; i += 4) {
        RO_UNROLL
        for (int h = 0; h < 2; h++) {
            const __m512d lo = _mm512_castps_pd(t[i + h]), hi = _mm512_castps_pd(t[i + h + 2]);
            r[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi));
            r[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi));
        }
    }
    RO_UNROLL
    for (int q = 0; q < 4; q++) {
        t[q] = _mm512_shuffle_f32x4(r[q], r[q + 4], 0x88);
        t[q + 4] = _mm512_shuffle_f32x4(r[q], r[q + 4], 0xdd);
        t[q + 8] = _mm512_shuffle_f32x4(r[q + 8], r[q + 12], 0x88);
        t[q + 12] = _mm512_shuffle_f32x4(r[q + 8], r[q + 12], 0xdd);
    }
    RO_UNROLL
    for (int q = 0; q < 4; q++) {
        r[q] = _mm512_shuffle_f32x4(t[q], t[q + 8], 0x88);
        r[q + 4] = _mm512_shuffle_f32x4(t[q + 4], t[q + 12], 0x88);
        r[q + 8] = _mm512_shuffle_f32x4(t[q], t[q + 8], 0xdd);
        r[q + 12] = _mm512_shuffle_f32x4(t[q + 4], t[q + 12], 0xdd);
    }
}

#elif defined(RO_ISA_avx2)

RO_INLINE void transpose(vf r[VW]) {
    vf t[VW];
    RO_UNROLL
    for (int i = 0; i < VW; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    RO_UNROLL
    for (int i = 0; i < VW; i += 4) {
        RO_UNROLL
        for (int h = 0; h < 2; h++) {
            r[i + 2 * h] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0x44);
            r[i + 2 * h + 1] = _mm256_shuffle_ps(t[i + h], t[i + h + 2], 0xee);
        }
    }
    RO_UNROLL
    for (int q = 0; q < 4; q++) {
        t[q] = _mm256_permute2f128_ps(r[q], r[q + 4], 0x20);
        t[q + 4] = _mm256_permute2f128_ps(r[q], r[q + 4], 0x31);
    }
    RO_UNROLL
    for (int q = 0; q < VW; q++)
        r[q] = t[q];
}

#elif defined(RO_ISA_neon)

RO_INLINE void transpose(vf r[VW]) {
    const float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1]));
    const float64x2_t b = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    const float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3]));
    const float64x2_t d = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
    r[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    r[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    r[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    r[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

#else

RO_INLINE void transpose(vf r[VW]) {
    (void)r;
}

#endif

/* Loads VW rows, `step` apart, transposed: r[q] holds element q of every row. */
RO_INLINE void load_transposed(const float *b, int64_t step, vf r[VW]) {
    const float *at = b;
    RO_UNROLL
    for (int l = 0; l < VW; l++) {
        if (l % 4 == 0)
            at = whole_address(b + l * step);
        r[l] = vf_load(at + l % 4 * step);
    }
    transpose(r);
}

/* Loads four elements of VW rows, `step` apart, transposed: r[q] holds element q of every row. The
 * first half of the rows starts at low, the second at high, and so no shuffle has to cross the
 * halves of a vector. */
#if defined(RO_ISA_avx2)
RO_INLINE void load_quad(const float *low, const float *high, int64_t step, vf r[4]) {
    vf s[4], t[4];
    RO_UNROLL
    for (int l = 0; l < 4; l++) {
        const __m128 upper = _mm_loadu_ps(high + l * step);
        s[l] = _mm256_castps128_ps256(_mm_loadu_ps(low + l * step));
        s[l] = _mm256_insertf128_ps(s[l], upper, 1);
    }
    RO_UNROLL
    for (int l = 0; l < 4; l += 2) {
        t[l] = _mm256_unpacklo_ps(s[l], s[l + 1]);
        t[l + 1] = _mm256_unpackhi_ps(s[l], s[l + 1]);
    }
    RO_UNROLL
    for (int l = 0; l < 2; l++) {
        r[2 * l] = _mm256_shuffle_ps(t[l], t[l + 2], 0x44);
        r[2 * l + 1] = _mm256_shuffle_ps(t[l], t[l + 2], 0xee);
    }
}
#endif

/* A panel to pack: `lanes` rows of a or columns of b. Step p of lane i goes to to[p * width + i];
 * lanes from `lanes` to `width` are padded with +0. If width is no multiple of VW, it is below VW:
 * then each step's store runs into the next step, which is stored later, and the last one runs past
 * the panel. */
typedef struct {
    const float *from;
    int64_t lane_step, k_step; /* one of them is 1 */
    int64_t lanes, width, k;
} panel;

static void pack_rows(const panel *s, float *to) {
    for (int64_t p = 0; p < s->k; p++)
        for (int64_t i = 0; i < s->width; i += VW)
            vf_store(to + p * s->width + i, vf_load_n(s->from + p * s->k_step + i, s->lanes - i));
}

enum {
    PACK_TOGETHER = 16, /* panels packed together, as each step may be in a page of its own */
    PACK_AHEAD = 8,     /* prefetch distance in that case, in k steps */
};

/* Packs one step of `count` panels of a. `stored` floats of each may be written. */
RO_INLINE void pack_step(const panel *s, const float *from, int64_t count, int64_t stored,
                         float *to) {
    for (int64_t i = 0; i < count; i++, from += s->width, to += s->width * s->k) {
        RO_UNROLL
        for (int j = 0; j < MR; j += VW)
            vf_store_n(to + j, vf_load_n(from + j, s->width - j), stored - j);
    }
}

/* Packs `count` panels of a like *s, side by side in memory, step by step. The last step must not
 * store past its panel, since the next panel has its first steps already. */
static __attribute__((unused)) void pack_together(const panel *s, int64_t count, float *to) {
    const float *from = s->from;
    for (int64_t p = 1; p < s->k; p++, from += s->k_step, to += s->width) {
        for (int64_t i = 0; i < count * s->width; i += 16)
            __builtin_prefetch(from + i + PACK_AHEAD * s->k_step);
        pack_step(s, from, count, ceil_div(s->width, VW) * VW, to);
    }
    pack_step(s, from, count, s->width, to);
}

/* Packs VW lanes from lane i on and VW steps from step p on, or as many as exist. */
RO_INLINE void pack_square(const panel *s, int64_t i, int64_t p, float *to) {
    const int64_t steps = min_i64(VW, s->k - p), lanes = min_i64(VW, s->lanes - i);
    vf r[VW];
    for (int64_t j = 0; j < VW; j++)
        r[j] = j < lanes ? vf_load_n(s->from + (i + j) * s->lane_step + p, steps) : vf_set1(0.0f);
    transpose(r);
    for (int64_t j = 0; j < steps; j++)
        vf_store(to + (p + j) * s->width + i, r[j]);
}

RO_INLINE void pack_whole_square(const panel *s, int64_t i, int64_t p, float *to) {
    vf r[VW];
    load_transposed(s->from + i * s->lane_step + p, s->lane_step, r);
    to += p * s->width + i;
    RO_UNROLL
    for (int j = 0; j < VW; j++)
        vf_store(to + j * s->width, r[j]);
}

static void pack_transposed(const panel *s, float *to) {
    for (int64_t p = 0; p < s->k; p += VW)
        for (int64_t i = 0; i < s->width; i += VW) {
            if (p + VW <= s->k && i + VW <= s->lanes)
                pack_whole_square(s, i, p, to);
            else
                pack_square(s, i, p, to);
        }
}

static __attribute__((unused)) void pack(const panel *s, float *to) {
    if (s->lane_step == 1)
        pack_rows(s, to);
    else
        pack_transposed(s, to);
}

#endif
