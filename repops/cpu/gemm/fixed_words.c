/* Exact products by words of 16 bits, with vpdpwssd (AVX-512 VNNI), which adds two products to each
 * lane of 32 bits.
 *
 * With 24 bits an integer is 4096 high + low, both from -2048 to 2047. Three sums replace four:
 * high high, low low, and (high + low)(high + low), whose difference from the other two is high low
 * + low high. A lane may wrap, but the difference is below 2^31, and exact modulo 2^32. With 16
 * bits, a is 256 high + low, and b is one word: b is the operand that usually stays packed, and is
 * read from memory if a has few rows. */
#include "repops/cpu/gemm/fixed_vectors.h"

#if defined(RO_ISA_avx512)

#define VNNI __attribute__((target("avx512vnni")))

#define FIXED_DOT(sum, x, y) _mm512_dpwssd_epi32(sum, x, y)
#define FIXED_DOT_TARGET     VNNI
#include "repops/cpu/gemm/fixed_adding.h"

enum {
    ROWS = 12,
    VECTORS = FIXED_COLS / VW,
    COLS = FIXED_COLS,
    PAIRS = RO_DOT_CHUNK / 2,
    SUMS_MOST = 3,
    ROW_WORDS = ROWS * RO_DOT_CHUNK, /* words in one plane of a group */
    COL_WORDS = COLS * RO_DOT_CHUNK,
    HIGH = 12, /* bits of the low word of a 24-bit integer */
};

typedef struct {
    __m512i high, low;
} words;

/* Splits each lane into two words; the low one has `shift` bits and is centred on 0. */
RO_INLINE words words_of(__m512i x, int shift) {
    const __m512i half = _mm512_set1_epi32(1 << (shift - 1));
    const __m512i high = _mm512_srai_epi32(_mm512_add_epi32(x, half), (unsigned)shift);
    return (words){high, _mm512_sub_epi32(x, _mm512_slli_epi32(high, (unsigned)shift))};
}

/* ---- a: each plane has [rows, k] words ---- */

RO_INLINE void store_words(int16_t *out, __m512i x) {
    _mm256_storeu_si256((__m256i *)(void *)out, _mm512_cvtepi32_epi16(x));
}

static void pack_line(const float *x, int64_t steps, int bits, int16_t *out, double *power) {
    const scales s = line_scales(x, steps, bits, power);
    for (int64_t k = 0; k < steps; k += VW) {
        const __m512i i = integers(vf_load_n(x + k, steps - k), s);
        const words w = words_of(i, bits == RO_FIXED_16 ? 8 : HIGH);
        store_words(out + k, w.high);
        store_words(out + ROW_WORDS + k, w.low);
        if (bits != RO_FIXED_16)
            store_words(out + 2 * ROW_WORDS + k, _mm512_add_epi32(w.high, w.low));
    }
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[ROWS * RO_DOT_CHUNK];
    const whole_lines from = lines_of(l, copy);
    for (int64_t i = 0; i < l->lines; i++)
        pack_line(from.x + i * from.apart, l->steps, bits, (int16_t *)out + i * RO_DOT_CHUNK,
                  power + i);
    for (int64_t i = l->lines; i < ROWS; i++) {
        for (int s = 0; s < (bits == RO_FIXED_16 ? 2 : SUMS_MOST); s++)
            memset((int16_t *)out + s * ROW_WORDS + i * RO_DOT_CHUNK, 0, RO_DOT_CHUNK * 2);
        power[i] = 0;
    }
}

/* ---- b: each plane has [pairs of k, columns, 2] words ---- */

RO_INLINE void store_pairs(int16_t *out, __m512i first, __m512i second) {
    const __m512i low = _mm512_and_si512(first, _mm512_set1_epi32(0xffff));
    _mm512_storeu_si512(out, _mm512_or_si512(low, _mm512_slli_epi32(second, 16)));
}

static void pack_vector(const side_by_side *c, int64_t col, int bits, int16_t *out, double *power) {
    const scales s = column_scales(c, col, bits, power);
    for (int64_t k = 0; k < c->steps; k += 2) {
        const __m512i first = integers(step_of(c, k, col), s);
        const __m512i second = integers(step_of(c, k + 1, col), s);
        int16_t *at = out + k * COLS;
        if (bits == RO_FIXED_16) {
            store_pairs(at, first, second);
            continue;
        }
        const words x = words_of(first, HIGH), y = words_of(second, HIGH);
        store_pairs(at, x.high, y.high);
        store_pairs(at + COL_WORDS, x.low, y.low);
        store_pairs(at + 2 * COL_WORDS, _mm512_add_epi32(x.high, x.low),
                    _mm512_add_epi32(y.high, y.low));
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

/* Computes `parts` sums of a tile: `rows` rows of each of a's planes by b's columns. rows * parts
 * <= ROWS. */
VNNI RO_INLINE void add_up(int rows, int parts, const int16_t *a, const int16_t *b, int64_t pairs,
                           sums *out) {
    __m512i sum[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < rows * parts; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = _mm512_setzero_si512();
    for (int64_t k = 0; k < pairs; k++, a += 2, b += 2 * COLS) {
        const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 2 * VW);
        RO_UNROLL
        for (int i = 0; i < rows * parts; i++) {
            int32_t pair;
            memcpy(&pair, a + i / rows * ROW_WORDS + i % rows * RO_DOT_CHUNK, sizeof pair);
            const __m512i row = _mm512_set1_epi32(pair);
            sum[i][0] = _mm512_dpwssd_epi32(sum[i][0], row, b0);
            sum[i][1] = _mm512_dpwssd_epi32(sum[i][1], row, b1);
        }
    }
    RO_UNROLL
    for (int i = 0; i < rows * parts; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        _mm512_storeu_si512(&out[i / rows][i % rows][v * VW], sum[i][v]);
}

/* Computes one sum of a tile. */
VNNI static void add_one(int64_t rows, const int16_t *a, const int16_t *b, int64_t pairs,
                         sums *out) {
    if (rows <= 8)
        add_up(8, 1, a, b, pairs, out);
    else
        add_up(ROWS, 1, a, b, pairs, out);
}

/* Computes both sums of 16-bit integers. With few rows they share each load of b. */
VNNI static void add_both(int64_t rows, const int16_t *a, const int16_t *b, int64_t pairs,
                          sums *out) {
    if (rows == 1)
        add_up(1, 2, a, b, pairs, out);
    else if (rows == 2)
        add_up(2, 2, a, b, pairs, out);
    else if (rows <= 4)
        add_up(4, 2, a, b, pairs, out);
    else if (rows <= 6)
        add_up(6, 2, a, b, pairs, out);
    else
        for (int i = 0; i < 2; i++)
            add_one(rows, a + i * ROW_WORDS, b, pairs, out + i);
}

RO_INLINE __m512i long_sums(const int32_t *x) {
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

/* Returns eight sums of 24-bit integers, below 2^54. Of an odd one with 54 bits it returns the
 * neighbour whose half is odd, as in ro_fixed_value. */
RO_INLINE __m512d exact24(const int32_t *high, const int32_t *low, const int32_t *both) {
    const __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)high);
    const __m256i l = _mm256_loadu_si256((const __m256i *)(const void *)low);
    const __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)both);
    const __m512i crossed = _mm512_cvtepi32_epi64(_mm256_sub_epi32(_mm256_sub_epi32(all, h), l));
    const __m512i sum =
        _mm512_add_epi64(_mm512_add_epi64(_mm512_slli_epi64(long_sums(high), 2 * HIGH),
                                          _mm512_slli_epi64(crossed, HIGH)),
                         long_sums(low));
    const __m512i one = _mm512_set1_epi64(1), limit = _mm512_set1_epi64(INT64_C(1) << 53);
    const __m512i last = _mm512_and_si512(sum, one);
    const __m512i even =
        _mm512_andnot_si512(one, _mm512_or_si512(sum, _mm512_add_epi64(last, last)));
    const __mmask8 wide = _mm512_cmpge_epi64_mask(_mm512_abs_epi64(sum), limit);
    return _mm512_cvtepi64_pd(_mm512_mask_mov_epi64(sum, wide, even));
}

/* Does what exact24 does, for 16-bit integers: sums are below 2^38. */
RO_INLINE __m512d exact16(const int32_t *high, const int32_t *low) {
    return _mm512_cvtepi64_pd(
        _mm512_add_epi64(_mm512_slli_epi64(long_sums(high), 8), long_sums(low)));
}

RO_INLINE __m256 terms(const fixed_tiles *t, const sums *s, int64_t row, int64_t col,
                       const double *b_power) {
    const double *a = t->a_power + row;
    const __m512d power = _mm512_mul_pd(_mm512_set1_pd(*a), _mm512_loadu_pd(b_power + col));
    const __m512d sum = t->bits == RO_FIXED_16
                            ? exact16(&s[0][row][col], &s[1][row][col])
                            : exact24(&s[0][row][col], &s[1][row][col], &s[2][row][col]);
    return _mm512_cvtpd_ps(_mm512_mul_pd(sum, power));
}

static void add_terms(const fixed_tiles *t, const sums *s, int64_t n) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int64_t v = 0; v < COLS && n + v < t->cols; v += VW) {
            float *c = t->c + i * t->c_row + n + v;
            __builtin_prefetch(c + COLS, 1); /* of the next tile */
            const vf term =
                _mm512_insertf32x8(_mm512_castps256_ps512(terms(t, s, i, v, t->b_power + n)),
                                   terms(t, s, i, v + 8, t->b_power + n), 1);
            vf_store_n(c, vf_add(fixed_totals(t, c, t->cols - n - v), term), t->cols - n - v);
        }
}

/* ---- checks ---- */

static void add_lines(const void *a, int64_t rows, int64_t steps, int bits,
                      uint32_t sum[][RO_DOT_CHUNK]) {
    const int16_t *from = a;
    for (int p = 0; p < (bits == RO_FIXED_16 ? 2 : SUMS_MOST); p++)
        add_words(from + p * ROW_WORDS, rows, 2 * ceil_div(steps, 2), sum[p]);
}

VNNI static uint32_t add_columns_of(const void *b, int64_t steps, int bits,
                                    const uint32_t sum[][RO_DOT_CHUNK], uint32_t *out) {
    const int64_t pairs = ceil_div(steps, 2);
    const int16_t *from = b;
    if (bits == RO_FIXED_16)
        return add_columns_of_both(from, pairs, sum, out);
    uint32_t all = 0;
    for (int p = 0; p < SUMS_MOST; p++)
        all += add_columns(from + p * COL_WORDS, NULL, pairs, p, sum[p], out);
    return all;
}

static uint32_t words_of_b(const void *b, int64_t steps, int bits) {
    const int16_t *from = b;
    uint32_t all = 0;
    for (int p = 0; p < (bits == RO_FIXED_16 ? 1 : SUMS_MOST); p++)
        all += words_of_plane(from + p * COL_WORDS, ceil_div(steps, 2));
    return all;
}

static const fixed_adding adding = {add_lines, add_columns_of, words_of_b, NULL, 2 * ROW_WORDS * 2};

typedef uint32_t row_sums[ROWS][VW];

RO_INLINE void add_sums(const fixed_tiles *t, const sums *s, int count, int64_t n, row_sums rows) {
    vi column[VECTORS] = {VI_ZERO, VI_ZERO};
    for (int64_t i = 0; i < t->rows; i++) {
        vi row = VI_LOAD(rows[i]);
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            vi all = VI_LOAD(&s[0][i][v * VW]);
            for (int p = 1; p < count; p++)
                all = VI(add_epi32)(all, weighted(VI_LOAD(&s[p][i][v * VW]), p));
            column[v] = VI(add_epi32)(column[v], all);
            row = VI(add_epi32)(row, all);
        }
        VI_STORE(rows[i], row);
    }
    for (int v = 0; v < VECTORS; v++)
        add_vector_to(t->sums->column + n + v * VW, column[v]);
}

static __attribute__((noinline)) void check_sums(const fixed_tiles *t, sums *s, int64_t n,
                                                 row_sums rows) {
    const int count = t->bits == RO_FIXED_16 ? 2 : SUMS_MOST;
    for (int p = 0; p < count; p++)
        fixed_alter_sums(t, t->rows, COLS, s[p]);
    if (count == 2)
        add_sums(t, s, 2, n, rows);
    else
        add_sums(t, s, SUMS_MOST, n, rows);
}

static void tiles_of_words(const fixed_tiles *t) {
    row_sums rows;
    const int count = t->bits == RO_FIXED_16 ? 1 : SUMS_MOST; /* planes of b */
    const int64_t pairs = ceil_div(t->steps, 2);
    const int16_t *a = t->a, *b = t->b;
    sums s[SUMS_MOST];
    if (t->sums)
        memset(rows, 0, sizeof rows);
    for (int64_t n = 0; n < t->cols; n += COLS, b += count * COL_WORDS) {
        if (t->bits == RO_FIXED_16)
            add_both(t->rows, a, b, pairs, s);
        for (int i = 0; t->bits != RO_FIXED_16 && i < SUMS_MOST; i++)
            add_one(t->rows, a + i * ROW_WORDS, b + i * COL_WORDS, pairs, s + i);
        if (t->sums)
            check_sums(t, s, n, rows);
        add_terms(t, s, n);
    }
    for (int64_t i = 0; t->sums && i < t->rows; i++)
        t->sums->row[i] += sum_lanes(VI_LOAD(rows[i]));
}

const fixed_engine *RO_NAME(ro_fixed_words)(int bits) {
    static const fixed_engine of16 = {
        "AVX-512 VNNI", ROWS, COLS,   2 * ROW_WORDS * 2, COL_WORDS * 2, pack_a, pack_b,
        tiles_of_words, 0,    &adding};
    static const fixed_engine of24 = {"AVX-512 VNNI",
                                      ROWS,
                                      COLS,
                                      SUMS_MOST * ROW_WORDS * 2,
                                      SUMS_MOST * COL_WORDS * 2,
                                      pack_a,
                                      pack_b,
                                      tiles_of_words,
                                      0,
                                      &adding};
    if (!__builtin_cpu_supports("avx512vnni"))
        return NULL;
    if (bits == RO_FIXED_8)
        return RO_NAME(ro_fixed_bytes)();
    return bits == RO_FIXED_16 ? &of16 : &of24;
}

#else

const fixed_engine *RO_NAME(ro_fixed_words)(int bits) {
    (void)bits;
    return NULL;
}

#endif
