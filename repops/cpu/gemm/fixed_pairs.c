/* Exact products by words of 16 bits, with vpmaddwd (AVX2), which adds the products of two pairs of
 * words to 32 bits.
 *
 * An integer of 24 bits is 4096 high + low, as in fixed_words.c, and three sums replace four. The
 * words of (high + low) are added where they are needed, so that a packed b takes 4 bytes a number.
 * Of 16 bits, b is one word, and a 256 high + low. */
#include "repops/cpu/gemm/fixed_lines.h"
#include "repops/src/fixed.h"

#if defined(RO_ISA_avx2)

enum {
    ROWS = 6,
    COLS = FIXED_COLS,
    VECTORS = COLS / VW,
    SUMS_MOST = 3,
    A_PLANE = ROWS * RO_DOT_CHUNK, /* words of a sum */
    B_PLANE = COLS * RO_DOT_CHUNK,
    HIGH = 12, /* bits of the low word, of 24 */
};

/* ---- exponents and integers ---- */

/* A power of two may be beyond f32: it is the product of two. Scaling is exact, or the integer is
 * 0. */
typedef struct {
    vf first, second;
    __m256i finite, exponent;
} scales;

RO_INLINE vf power_of_two(__m256i exponent) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
}

/* Exponents of the largest magnitudes in 8 lanes, as in src/fixed.h. */
RO_INLINE scales scales_of(__m256i most, int bits) {
    const __m256i field = _mm256_srli_epi32(_mm256_add_epi32(most, _mm256_set1_epi32(0x1ffff)), 23);
    const __m256i exponent =
        _mm256_sub_epi32(_mm256_max_epi32(field, _mm256_set1_epi32(1)), _mm256_set1_epi32(126));
    const __m256i shift = _mm256_sub_epi32(_mm256_set1_epi32(bits - 1), exponent);
    const __m256i half = _mm256_srai_epi32(shift, 1);
    return (scales){power_of_two(half), power_of_two(_mm256_sub_epi32(shift, half)),
                    _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7f800000), most), exponent};
}

/* Stores what an integer of each lane counts: NaN where the lane is not finite. */
RO_INLINE void store_powers(scales s, int bits, double *power) {
    const __m256i e = _mm256_sub_epi32(s.exponent, _mm256_set1_epi32(bits - 1 - 1023));
    const __m256d nan = _mm256_set1_pd(__builtin_nan(""));
    for (int h = 0; h < 2; h++) {
        const __m128i half = h ? _mm256_extracti128_si256(e, 1) : _mm256_castsi256_si128(e);
        const __m128i known =
            h ? _mm256_extracti128_si256(s.finite, 1) : _mm256_castsi256_si128(s.finite);
        const __m256d p = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(half), 52));
        const __m256d finite = _mm256_castsi256_pd(_mm256_cvtepi32_epi64(known));
        _mm256_storeu_pd(power + 4 * h, _mm256_blendv_pd(nan, p, finite));
    }
}

RO_INLINE __m256i magnitude(vf x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7fffffff));
}

/* Numbers of lanes that are not finite become 0. */
RO_INLINE __m256i integers(vf x, scales s) {
    const vf scaled = vf_mul(vf_mul(x, s.first), s.second);
    return _mm256_and_si256(_mm256_cvtps_epi32(scaled), s.finite);
}

typedef struct {
    __m256i high, low;
} words;

/* Both words of each lane; `shift` bits in the low one, from minus half to below half. */
RO_INLINE words words_of(__m256i x, int shift) {
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const __m256i high = _mm256_srai_epi32(_mm256_add_epi32(x, half), shift);
    return (words){high, _mm256_sub_epi32(x, _mm256_slli_epi32(high, shift))};
}

/* ---- a: each sum has [rows, k] words ---- */

RO_INLINE void store_words(int16_t *out, __m256i x) {
    _mm_storeu_si128((__m128i *)(void *)out,
                     _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
}

RO_INLINE __m256i largest(__m256i x) {
    x = _mm256_max_epi32(x, _mm256_permute2x128_si256(x, x, 1));
    x = _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0x4e));
    return _mm256_max_epi32(x, _mm256_shuffle_epi32(x, 0xb1));
}

static void pack_line(const float *x, int64_t steps, int bits, int16_t *out, double *power) {
    __m256i most = _mm256_setzero_si256();
    double powers[VW];
    for (int64_t k = 0; k < steps; k += VW)
        most = _mm256_max_epi32(most, magnitude(vf_load_n(x + k, steps - k)));
    const scales s = scales_of(largest(most), bits);
    store_powers(s, bits, powers);
    *power = powers[0];
    for (int64_t k = 0; k < steps; k += VW) {
        const __m256i i = integers(vf_load_n(x + k, steps - k), s);
        const words w = words_of(i, bits == RO_FIXED_16 ? 8 : HIGH);
        store_words(out + k, w.high);
        store_words(out + A_PLANE + k, w.low);
        if (bits != RO_FIXED_16)
            store_words(out + 2 * A_PLANE + k, _mm256_add_epi32(w.high, w.low));
    }
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[VW * RO_DOT_CHUNK];
    const whole_lines from = lines_of(l, copy);
    for (int64_t i = 0; i < l->lines; i++)
        pack_line(from.x + i * from.apart, l->steps, bits, (int16_t *)out + i * RO_DOT_CHUNK,
                  power + i);
}

/* ---- b: each plane has [pairs of k, columns, 2] words ---- */

RO_INLINE void store_pairs(int16_t *out, __m256i first, __m256i second) {
    _mm256_storeu_si256((__m256i *)(void *)out,
                        _mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa));
}

static void pack_vector(const side_by_side *c, int64_t col, int bits, int16_t *out, double *power) {
    __m256i most = _mm256_setzero_si256();
    for (int64_t k = 0; k < c->steps; k++)
        most = _mm256_max_epi32(most, magnitude(step_of(c, k, col)));
    const scales s = scales_of(most, bits);
    store_powers(s, bits, power);
    for (int64_t k = 0; k < c->steps; k += 2, out += 2 * COLS) {
        const __m256i x = integers(step_of(c, k, col), s), y = integers(step_of(c, k + 1, col), s);
        if (bits == RO_FIXED_16) {
            store_pairs(out, x, y);
            continue;
        }
        const words a = words_of(x, HIGH), b = words_of(y, HIGH);
        store_pairs(out, a.high, b.high);
        store_pairs(out + B_PLANE, a.low, b.low);
    }
}

static void pack_b(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[COLS * RO_DOT_CHUNK];
    const side_by_side c = columns_of(l, copy);
    for (int v = 0; v < VECTORS; v++)
        pack_vector(&c, v * VW, bits, (int16_t *)out + 2 * VW * v, power + v * VW);
}

/* ---- tiles ---- */

typedef int32_t sums[ROWS][COLS];

RO_INLINE __m256i pairs_at(const int16_t *b, int both) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)b);
    const int16_t *low = b + B_PLANE;
    return both ? _mm256_add_epi16(x, _mm256_loadu_si256((const __m256i *)(const void *)low)) : x;
}

/* One sum of a tile: `rows` rows of a by columns of b, or `both` of its planes added. */
RO_INLINE void add_rows(int rows, int both, const int16_t *a, const int16_t *b, int64_t pairs,
                        sums out) {
    __m256i sum[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = _mm256_setzero_si256();
    for (int64_t k = 0; k < pairs; k++, a += 2, b += 2 * COLS) {
        const __m256i b0 = pairs_at(b, both), b1 = pairs_at(b + 2 * VW, both);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            int32_t pair;
            memcpy(&pair, a + i * RO_DOT_CHUNK, sizeof pair);
            const __m256i row = _mm256_set1_epi32(pair);
            sum[i][0] = _mm256_add_epi32(sum[i][0], _mm256_madd_epi16(row, b0));
            sum[i][1] = _mm256_add_epi32(sum[i][1], _mm256_madd_epi16(row, b1));
        }
    }
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        _mm256_storeu_si256((__m256i *)(void *)&out[i][v * VW], sum[i][v]);
}

RO_INLINE void add_up(int64_t rows, int both, const int16_t *a, const int16_t *b, int64_t pairs,
                      sums out) {
    switch (rows) {
    case 1: add_rows(1, both, a, b, pairs, out); break;
    case 2: add_rows(2, both, a, b, pairs, out); break;
    case 3: add_rows(3, both, a, b, pairs, out); break;
    case 4: add_rows(4, both, a, b, pairs, out); break;
    case 5: add_rows(5, both, a, b, pairs, out); break;
    default: add_rows(ROWS, both, a, b, pairs, out); break;
    }
}

static void add_plane(int64_t rows, const int16_t *a, const int16_t *b, int64_t pairs, sums out) {
    add_up(rows, 0, a, b, pairs, out);
}

static void add_both(int64_t rows, const int16_t *a, const int16_t *b, int64_t pairs, sums out) {
    add_up(rows, 1, a, b, pairs, out);
}

RO_INLINE __m128i four(const int32_t *x) {
    return _mm_loadu_si128((const __m128i *)(const void *)x);
}

/* Few sums of 24 bits have 54 bits, which binary64 has not. */
static __m128 wide_terms(const int32_t *high, const int32_t *low, const int32_t *all,
                         __m256d power) {
    double p[4];
    float term[4];
    _mm256_storeu_pd(p, power);
    for (int i = 0; i < 4; i++) {
        const int32_t crossed = (int32_t)((uint32_t)all[i] - (uint32_t)high[i] - (uint32_t)low[i]);
        const int64_t sum =
            ((int64_t)high[i] * (1 << HIGH) + crossed) * (1 << HIGH) + (int64_t)low[i];
        term[i] = ro_fixed_value(sum, p[i]);
    }
    return _mm_loadu_ps(term);
}

/* A chunk adds these to four columns of a row. Each step is exact but for the last one. */
RO_INLINE __m128 terms24(const int32_t *high, const int32_t *low, const int32_t *all,
                         __m256d power) {
    const __m128i h = four(high), l = four(low);
    const __m256d crossed = _mm256_cvtepi32_pd(_mm_sub_epi32(_mm_sub_epi32(four(all), h), l));
    const __m256d scale = _mm256_set1_pd(1 << HIGH), limit = _mm256_set1_pd(0x1p53);
    const __m256d upper = _mm256_fmadd_pd(_mm256_cvtepi32_pd(h), scale, crossed);
    const __m256d sum = _mm256_fmadd_pd(upper, scale, _mm256_cvtepi32_pd(l));
    const __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), sum);
    if (_mm256_movemask_pd(_mm256_cmp_pd(size, limit, _CMP_GE_OQ)))
        return wide_terms(high, low, all, power);
    return _mm256_cvtpd_ps(_mm256_mul_pd(sum, power));
}

RO_INLINE __m128 terms16(const int32_t *high, const int32_t *low, __m256d power) {
    const __m256d sum = _mm256_fmadd_pd(_mm256_cvtepi32_pd(four(high)), _mm256_set1_pd(256),
                                        _mm256_cvtepi32_pd(four(low)));
    return _mm256_cvtpd_ps(_mm256_mul_pd(sum, power));
}

RO_INLINE __m128 terms(const fixed_tiles *t, const sums *s, int64_t row, int64_t col,
                       const double *b_power) {
    const __m256d power =
        _mm256_mul_pd(_mm256_set1_pd(t->a_power[row]), _mm256_loadu_pd(b_power + col));
    return t->bits == RO_FIXED_16
               ? terms16(&s[0][row][col], &s[1][row][col], power)
               : terms24(&s[0][row][col], &s[1][row][col], &s[2][row][col], power);
}

static void add_terms(const fixed_tiles *t, const sums *s, int64_t n) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t v = 0; v < COLS && n + v < t->cols; v += VW) {
            float *c = t->c + i * t->c_row + n + v;
            const vf term =
                _mm256_insertf128_ps(_mm256_castps128_ps256(terms(t, s, i, v, t->b_power + n)),
                                     terms(t, s, i, v + 4, t->b_power + n), 1);
            vf_store_n(c, vf_add(vf_load_n(c, t->cols - n - v), term), t->cols - n - v);
        }
}

static void tiles_of_pairs(const fixed_tiles *t) {
    const int narrow = t->bits == RO_FIXED_16;
    const int64_t pairs = ceil_div(t->steps, 2);
    const int16_t *a = t->a, *b = t->b;
    sums s[SUMS_MOST];
    for (int64_t n = 0; n < t->cols; n += COLS, b += (narrow ? 1 : 2) * B_PLANE) {
        add_plane(t->rows, a, b, pairs, s[0]);
        add_plane(t->rows, a + A_PLANE, narrow ? b : b + B_PLANE, pairs, s[1]);
        if (!narrow)
            add_both(t->rows, a + 2 * A_PLANE, b, pairs, s[2]);
        add_terms(t, s, n);
    }
}

const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits) {
    static const fixed_engine of16 = {"AVX2",      ROWS,   COLS,   2 * A_PLANE * 2,
                                      B_PLANE * 2, pack_a, pack_b, tiles_of_pairs};
    static const fixed_engine of24 = {"AVX2",          ROWS,   COLS,   SUMS_MOST * A_PLANE * 2,
                                      2 * B_PLANE * 2, pack_a, pack_b, tiles_of_pairs};
    return bits == RO_FIXED_16 ? &of16 : &of24;
}

#else

const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits) {
    (void)bits;
    return NULL;
}

#endif
