/* Exact products by words of 16 bits, with vpmaddwd (AVX2), which adds the products of two pairs of
 * words to 32 bits.
 *
 * With 24 bits an integer is 4096 high + low, as in fixed_words.c, and three sums replace four. The
 * words high + low of b are added while multiplying, so that a packed b takes 4 bytes a number.
 * With 16 bits b is one word, and a is 256 high + low. With 8 bits both are one word. Only where a
 * row and a column both have two digits does a sum exceed 32 bits; the sum of the row's high words
 * then gives the missing bits. */
#include "repops/cpu/gemm/fixed_pairs_check.h"
#include "repops/src/fixed.h"

#if defined(RO_ISA_avx2)

/* ---- tiles ---- */

/* To subtract from a sum that is read as a double; see sums in fixed_pairs_check.h. */
#define BIAS (0x1p52 + 0x1p31)

RO_INLINE __m256i pairs_at(const int16_t *b, int both) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)b);
    const int16_t *low = b + B_PLANE;
    return both ? _mm256_add_epi16(x, _mm256_loadu_si256((const __m256i *)(const void *)low)) : x;
}

/* Computes one sum of a tile: `rows` rows of a by b's columns; `both` adds b's two planes first. */
RO_INLINE void add_rows(int rows, int both, const int16_t *a, const int16_t *b, int64_t pairs,
                        sums out) {
    __m256i sum[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = _mm256_set1_epi32(INT32_MIN);
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

static __attribute__((noinline)) void add_both(int64_t rows, const int16_t *a, const int16_t *b,
                                               int64_t pairs, sums out) {
    add_up(rows, 1, a, b, pairs, out);
}

/* ---- rounding ---- */

/* Eight doubles in the order in which unpack instructions leave them: `first` has numbers 0, 1, 4,
 * 5. */
typedef struct {
    __m256d first, second;
} eight;

RO_INLINE eight doubles_of(__m256i x) {
    const __m256i upper = _mm256_set1_epi32(0x43300000);
    return (eight){_mm256_castsi256_pd(_mm256_unpacklo_epi32(x, upper)),
                   _mm256_castsi256_pd(_mm256_unpackhi_epi32(x, upper))};
}

RO_INLINE __m256d whole24(__m256d high, __m256d crossed, __m256d low) {
    const __m256d bias = _mm256_set1_pd(-BIAS * 0x1p24 - BIAS * 0x1p12 - BIAS);
    const __m256d upper = _mm256_fmadd_pd(high, _mm256_set1_pd(0x1p24), bias);
    return _mm256_add_pd(_mm256_fmadd_pd(crossed, _mm256_set1_pd(0x1p12), upper), low);
}

RO_INLINE __m256d whole16(__m256d high, __m256d low) {
    const __m256d bias = _mm256_set1_pd(-BIAS * 0x1p8 - BIAS);
    return _mm256_add_pd(_mm256_fmadd_pd(high, _mm256_set1_pd(0x1p8), bias), low);
}

/* Returns eight whole sums of a chunk. They are below 2^53, so each step is exact. */
RO_INLINE eight whole(const sums *s, int64_t row, int64_t col, int bits) {
    const __m256i h = sums_at(&s[0][row][col]), l = sums_at(&s[1][row][col]);
    const eight high = doubles_of(h), low = doubles_of(l);
    if (bits == RO_FIXED_16)
        return (eight){whole16(high.first, low.first), whole16(high.second, low.second)};
    const __m256i all = sums_at(&s[2][row][col]);
    const eight crossed = doubles_of(_mm256_sub_epi32(_mm256_sub_epi32(all, h), l));
    return (eight){whole24(high.first, crossed.first, low.first),
                   whole24(high.second, crossed.second, low.second)};
}

/* Rounds eight sums, and restores their order. */
RO_INLINE vf terms(eight sum, eight power) {
    const __m128 first = _mm256_cvtpd_ps(_mm256_mul_pd(sum.first, power.first));
    const __m128 second = _mm256_cvtpd_ps(_mm256_mul_pd(sum.second, power.second));
    const vf both = _mm256_insertf128_ps(_mm256_castps128_ps256(first), second, 1);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(both), 0xd8));
}

RO_INLINE eight powers_at(const double *power) {
    const __m256d low = _mm256_loadu_pd(power), high = _mm256_loadu_pd(power + 4);
    return (eight){_mm256_permute2f128_pd(low, high, 0x20),
                   _mm256_permute2f128_pd(low, high, 0x31)};
}

/* Adds a vector of columns from n + v on; `count` of its columns exist. */
RO_INLINE void add_vector(const fixed_tiles *t, const sums *s, int64_t n, int64_t v, int bits,
                          int64_t count) {
    const eight column = powers_at(t->b_power + n + v);
    float *c = t->c + n + v;
    for (int64_t i = 0; i < t->rows; i++, c += t->c_row) {
        const __m256d row = _mm256_set1_pd(t->a_power[i]);
        const eight power = {_mm256_mul_pd(row, column.first), _mm256_mul_pd(row, column.second)};
        const vf term = terms(whole(s, i, v, bits), power);
        vf_store_n(c, vf_add(fixed_totals(t, c, count), term), count);
    }
}

RO_INLINE void add_vectors(const fixed_tiles *t, const sums *s, int64_t n, int bits) {
    for (int64_t v = 0; v < COLS && n + v < t->cols; v += VW)
        if (n + v + VW <= t->cols)
            add_vector(t, s, n, v, bits, VW);
        else
            add_vector(t, s, n, v, bits, t->cols - n - v);
}

/* Adds sums of 24-bit integers, of which a few have 54 bits, more than binary64 holds. */
static void add_wide(const fixed_tiles *t, const sums *s, int64_t n) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t v = 0; v < min_i64(COLS, t->cols - n); v++) {
            const uint32_t start = UINT32_C(1) << 31;
            const uint32_t high = s[0][i][v] - start, low = s[1][i][v] - start;
            const uint32_t crossed = s[2][i][v] - start - high - low;
            const int64_t sum =
                ((int64_t)(int32_t)high * (1 << HIGH) + (int32_t)crossed) * (1 << HIGH) +
                (int32_t)low;
            float *c = &t->c[i * t->c_row + n + v];
            *c = fixed_total(t, c) + ro_fixed_value(sum, t->a_power[i] * t->b_power[n + v]);
        }
}

/* Returns whether a sum may be 2^53 or more. Then its sum of high words is nearly 2^29, as the
 * other sums add at most 2^44. */
static int has_wide(int64_t rows, sums high) {
    __m256i most = _mm256_setzero_si256();
    for (int64_t i = 0; i < rows; i++)
        for (int v = 0; v < COLS; v += VW) {
            const __m256i x = _mm256_sub_epi32(sums_at(&high[i][v]), _mm256_set1_epi32(INT32_MIN));
            most = _mm256_max_epu32(most, _mm256_abs_epi32(x));
        }
    const __m256i limit = _mm256_set1_epi32((1 << 29) - (1 << 20));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(most, limit), most)) != 0;
}

/* ---- integers of 8 bits, or of 16 in some lines ---- */

/* Returns eight whole sums of a row. If `high` is not NULL, 32 bits do not hold them: then they are
 * 256 times the row's sums of high words, plus the difference to `sum` modulo 2^32. */
RO_INLINE eight whole8(const uint32_t *sum, const uint32_t *high) {
    const __m256d bias = _mm256_set1_pd(-BIAS);
    const __m256i s = sums_at(sum);
    if (!high) {
        const eight x = doubles_of(s);
        return (eight){_mm256_add_pd(x.first, bias), _mm256_add_pd(x.second, bias)};
    }
    const __m256i upper = sums_at(high); /* times 256, its start of 2^31 vanishes */
    const eight h = doubles_of(upper);
    const eight l = doubles_of(_mm256_sub_epi32(s, _mm256_slli_epi32(upper, 8)));
    return (eight){whole16(h.first, l.first), whole16(h.second, l.second)};
}

static void add_vectors8(const fixed_tiles *t, const sums *s, const uint32_t *const high[ROWS],
                         int64_t n) {
    for (int64_t v = 0; v < COLS && n + v < t->cols; v += VW) {
        const eight column = powers_at(t->b_power + n + v);
        float *c = t->c + n + v;
        for (int64_t i = 0; i < t->rows; i++, c += t->c_row) {
            const __m256d row = _mm256_set1_pd(t->a_power[i]);
            const eight power = {_mm256_mul_pd(row, column.first),
                                 _mm256_mul_pd(row, column.second)};
            const vf term = terms(whole8(&s[0][i][v], high[i] ? high[i] + v : NULL), power);
            vf_store_n(c, vf_add(fixed_totals(t, c, t->cols - n - v), term), t->cols - n - v);
        }
    }
}

static void tiles_of_8(const fixed_tiles *t) {
    const int64_t pairs = ceil_div(t->steps, 2);
    const int16_t *a = t->a, *b = t->b;
    const two_digits two = two_digits_of(a);
    row_sums rows;
    sums s[2];
    if (t->sums)
        memset(rows, 0, sizeof rows);
    for (int64_t n = 0; n < t->cols; n += COLS, b += B_PLANE + TAIL / 2) {
        const uint32_t *high[ROWS] = {NULL};
        const int count = uneven_columns_of(b) ? two.count : 0;
        add_plane(t->rows, a, b, pairs, s[0]);
        if (count)
            add_plane(count, a + A_PLANE, b, pairs, s[1]);
        for (int i = 0; i < count; i++)
            high[two.row[i]] = s[1][i];
        if (t->sums)
            check_sums8(t, s, count, high, n, rows);
        add_vectors8(t, s, high, n);
    }
    if (t->sums)
        end_rows(t, rows);
}

static void tiles_of_pairs(const fixed_tiles *t) {
    row_sums rows;
    const int narrow = t->bits == RO_FIXED_16;
    const int64_t pairs = ceil_div(t->steps, 2);
    const int16_t *a = t->a, *b = t->b;
    sums s[SUMS_MOST];
    if (t->sums)
        memset(rows, 0, sizeof rows);
    for (int64_t n = 0; n < t->cols; n += COLS, b += (narrow ? 1 : 2) * B_PLANE) {
        add_plane(t->rows, a, b, pairs, s[0]);
        add_plane(t->rows, a + A_PLANE, narrow ? b : b + B_PLANE, pairs, s[1]);
        if (!narrow)
            add_both(t->rows, a + 2 * A_PLANE, b, pairs, s[2]);
        if (t->sums)
            check_sums(t, s, n, rows);
        if (narrow)
            add_vectors(t, s, n, RO_FIXED_16);
        else if (t->steps > RO_DOT_CHUNK / 2 && has_wide(t->rows, s[0]))
            add_wide(t, s, n);
        else
            add_vectors(t, s, n, RO_FIXED_24);
    }
    if (t->sums)
        end_rows(t, rows);
}

const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits) {
    static const fixed_engine of8 = {
        "AVX2",     ROWS, COLS,    2 * A_PLANE * 2 + TAIL, B_PLANE * 2 + TAIL, pack_a, pack_b,
        tiles_of_8, 1,    &adding8};
    static const fixed_engine of16 = {"AVX2",      ROWS,   COLS,   2 * A_PLANE * 2,
                                      B_PLANE * 2, pack_a, pack_b, tiles_of_pairs,
                                      1,           &adding};
    static const fixed_engine of24 = {
        "AVX2",         ROWS, COLS,   SUMS_MOST * A_PLANE * 2, 2 * B_PLANE * 2, pack_a, pack_b,
        tiles_of_pairs, 1,    &adding};
    return bits == RO_FIXED_8 ? &of8 : bits == RO_FIXED_16 ? &of16 : &of24;
}

#else

const fixed_engine *RO_NAME(ro_fixed_pairs)(int bits) {
    (void)bits;
    return NULL;
}

#endif
