/* Exponents, integers and lines that lie as packing wants them, for the engines of AVX-512. */
#ifndef REPOPS_CPU_FIXED_VECTORS_H
#define REPOPS_CPU_FIXED_VECTORS_H

#include "repops/cpu/gemm/fixed.h"

#if defined(RO_ISA_avx512)

#include "repops/cpu/gemm/gemm_pack.h"

enum {
    FIXED_COLS = 2 * VW, /* of a group of b */
    FIXED_AHEAD = 12     /* steps of b that are fetched ahead, as each may be a page of its own */
};

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

/* `rows` rows, `apart` from one to the next, of `cols` numbers side by side become columns: number
 * c of row r goes to to[c * to_apart + r]. Rows are filled up with zeros to a multiple of 16. */
static void turn(const float *from, int64_t apart, int64_t rows, int64_t cols, float *to,
                 int64_t to_apart) {
    for (int64_t r = 0; r < rows; r += VW)
        for (int64_t c = 0; c < cols; c += VW) {
            vf x[VW];
            for (int64_t i = 0; i < VW; i++)
                x[i] =
                    r + i < rows ? vf_load_n(from + (r + i) * apart + c, cols - c) : vf_set1(0.0f);
            transpose(x);
            for (int64_t i = 0; i < min_i64(VW, cols - c); i++)
                vf_store(to + (c + i) * to_apart + r, x[i]);
        }
}

/* Lines whose steps lie side by side, `apart` from one to the next, or a copy of them that does. */
typedef struct {
    const float *x;
    int64_t apart;
} whole_lines;

/* copy: RO_DOT_CHUNK floats for each line. */
RO_INLINE whole_lines lines_of(const fixed_lines *l, float *copy) {
    if (l->step == 1)
        return (whole_lines){l->x, l->line};
    turn(l->x, l->step, l->steps, l->lines, copy, RO_DOT_CHUNK);
    return (whole_lines){copy, RO_DOT_CHUNK};
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

/* Columns that lie side by side at every step, or a copy of them that does. */
typedef struct {
    const float *x;
    int64_t step, cols, steps;
} side_by_side;

/* copy: RO_DOT_CHUNK * FIXED_COLS floats. */
RO_INLINE side_by_side columns_of(const fixed_lines *l, float *copy) {
    if (l->line == 1)
        return (side_by_side){l->x, l->step, l->lines, l->steps};
    turn(l->x, l->line, l->lines, l->steps, copy, FIXED_COLS);
    return (side_by_side){copy, FIXED_COLS, l->lines, l->steps};
}

/* A step of 16 columns from `col` on; what is not there is 0. */
RO_INLINE __m512 step_of(const side_by_side *c, int64_t k, int64_t col) {
    return k < c->steps ? vf_load_n(c->x + k * c->step + col, c->cols - col) : vf_set1(0.0f);
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
