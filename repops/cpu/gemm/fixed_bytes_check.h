/* The checks of fixed_check.h for fixed_bytes.c: adds up packed bytes, and the sums of tiles. All
 * sums are modulo 2^32.
 *
 * The check counts a line of two digits as high + 257 low, where the product has 256 high + low:
 * its sums are those of digits times powers of 257. So the rows of a can be added up to one row,
 * which is then multiplied by both digits of b. */
#ifndef REPOPS_CPU_FIXED_BYTES_CHECK_H
#define REPOPS_CPU_FIXED_BYTES_CHECK_H

#include "repops/cpu/gemm/fixed_adding.h"
#include "repops/cpu/gemm/fixed_bytes.h"

#if defined(RO_ISA_avx512)

/* ---- packed numbers ---- */

enum { PART = 2 * VW, PARTS = RO_DOT_CHUNK / PART };

/* Adds up rows, in `parts` parts of PART steps. Words of 16 bits hold the sum of LINES bytes. */
RO_INLINE void add_parts(const int8_t *a, int64_t rows, int parts, uint32_t *sum) {
    __m512i all[PARTS];
    RO_UNROLL
    for (int v = 0; v < parts; v++)
        all[v] = _mm512_setzero_si512();
    for (int64_t i = 0; i < rows; i++, a += RO_DOT_CHUNK)
        RO_UNROLL
    for (int v = 0; v < parts; v++) {
        const __m256i x = _mm256_load_si256((const __m256i *)(const void *)(a + v * PART));
        all[v] = _mm512_add_epi16(all[v], _mm512_cvtepi8_epi16(x));
    }
    RO_UNROLL
    for (int v = 0; v < parts; v++, sum += PART) {
        add_vector_to(sum, _mm512_cvtepi16_epi32(_mm512_castsi512_si256(all[v])));
        add_vector_to(sum + VW, _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(all[v], 1)));
    }
}

/* Adds up rows of digits, one whole row after the other, in the order of addresses, which the
 * hardware prefetches. */
static void add_digits(const int8_t (*a)[RO_DOT_CHUNK], int64_t rows, int64_t steps,
                       uint32_t *sum) {
    if (steps == RO_DOT_CHUNK) {
        add_parts(a[0], rows, PARTS, sum);
        return;
    }
    for (int64_t k = 0; k < steps; k += PART)
        add_parts(a[0] + k, rows, 1, sum + k);
}

static void add_lines(const void *a, int64_t rows, int64_t steps, int bits,
                      uint32_t sum[][RO_DOT_CHUNK]) {
    const a_group *g = a;
    (void)bits;
    add_digits(g->high, rows, steps, sum[0]);
    add_digits(g->low, rows_of_two(g), steps, sum[1]);
}

/* Returns the sum of what rows of a store besides their digits. It includes the sums of digits:
 * they are subtracted from two sums of a tile, so a change of their bit 31 would cancel there. */
static uint32_t marks_of_a(const void *a, int64_t rows) {
    const a_group *g = a;
    uint32_t sum = (uint32_t)g->count + (uint32_t)g->steps;
    for (int64_t i = 0; i < rows; i++)
        sum += (uint32_t)g->high_sum[i];
    for (int i = 0; i < rows_of_two(g); i++)
        sum += (uint32_t)g->row[i] + (uint32_t)g->low_sum[i];
    return sum;
}

static uint32_t words_of(const void *from, int64_t bytes) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t i = 0; i < bytes; i += 64)
        sum = _mm512_add_epi32(sum, _mm512_loadu_si512((const char *)from + i));
    return sum_lanes(sum);
}

static int64_t plane_bytes(int64_t steps) {
    return whole_blocks(steps) * COLS;
}

/* Returns the sum of all words of a group of b except its first digits. */
static uint32_t words_of_rest(const b_group *b, int64_t steps) {
    uint32_t sum = (uint32_t)b->count + b->columns;
    for (int i = 0; i < b->count && i < COLS; i++)
        sum += (uint32_t)b->col[i];
    if (b->count > FEW)
        return sum + words_of(b->low, plane_bytes(steps));
    for (int i = 0; i < b->count; i++)
        sum += words_of(b->line[i], whole_blocks(steps));
    return sum;
}

static uint32_t words_of_b(const void *b, int64_t steps, int bits) {
    const b_group *g = b;
    (void)bits;
    return words_of(g->high, plane_bytes(steps)) + words_of_rest(g, steps);
}

/* ---- what columns add up to ---- */

/* The sums of rows of a, split into signed bytes; the highest bytes are mostly 0. */
typedef struct {
    _Alignas(64) int8_t byte[4][RO_DOT_CHUNK];
    uint32_t bias; /* sum of all, times BIAS */
    int count;
} digits;

static digits digits_of(const uint32_t sum[][RO_DOT_CHUNK], int64_t steps) {
    const __m512i half = _mm512_set1_epi32(BIAS);
    __m512i all = _mm512_setzero_si512(), last = all;
    digits d;
    for (int64_t k = 0; k < steps; k += VW) {
        __m512i x = _mm512_add_epi32(_mm512_loadu_si512(&sum[0][k]),
                                     weighted(_mm512_loadu_si512(&sum[1][k]), 1));
        all = _mm512_add_epi32(all, x);
        for (int i = 0; i < 4; i++) {
            _mm_store_si128((__m128i *)(void *)&d.byte[i][k], _mm512_cvtepi32_epi8(x));
            last = i < 3 ? last : _mm512_or_si512(last, x);
            x = _mm512_srai_epi32(_mm512_add_epi32(x, half), 8);
        }
    }
    d.bias = sum_lanes(all) * BIAS;
    d.count = _mm512_test_epi32_mask(last, last) ? 4 : 3;
    return d;
}

/* For each column of a plane, adds the products of its digits with a's sums, times the factor of
 * digit `part` of b, to `out`. Returns the sum of the plane's words. */
VNNI RO_INLINE uint32_t add_plane(const digits *d, int count, const b_plane b, int64_t fours,
                                  int part, uint32_t *out) {
    __m512i sum[4][VECTORS], words = _mm512_setzero_si512();
    RO_UNROLL
    for (int i = 0; i < count; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = _mm512_setzero_si512();
    for (int64_t k = 0; k < fours; k++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const __m512i x = _mm512_load_si512(b[k][v * VW]);
        words = _mm512_add_epi32(words, x);
        RO_UNROLL
        for (int i = 0; i < count; i++) {
            int32_t four;
            memcpy(&four, &d->byte[i][FOUR * k], sizeof four);
            sum[i][v] = _mm512_dpbusd_epi32(sum[i][v], x, _mm512_set1_epi32(four));
        }
    }
    for (int v = 0; v < VECTORS; v++) {
        __m512i all = sum[count - 1][v];
        for (int i = count - 2; i >= 0; i--)
            all = _mm512_add_epi32(_mm512_slli_epi32(all, 8), sum[i][v]);
        all = _mm512_sub_epi32(all, _mm512_set1_epi32((int)d->bias));
        add_vector_to(out + VW * v, weighted(all, part));
    }
    return sum_lanes(words);
}

VNNI static uint32_t add_digits_of(const digits *d, const b_plane b, int64_t fours, int part,
                                   uint32_t *out) {
    return d->count == 3 ? add_plane(d, 3, b, fours, part, out)
                         : add_plane(d, 4, b, fours, part, out);
}

VNNI static uint32_t column_by_line(const digits *d, const uint8_t *line, int64_t steps) {
    uint32_t all = 0;
    for (int i = 3; i >= 0; i--) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t k = 0; k < steps; k += BLOCK)
            sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(line + k),
                                      _mm512_load_si512(&d->byte[i][k]));
        all = (all << 8) + sum_lanes(sum);
    }
    return all - d->bias;
}

static uint32_t add_columns_of(const void *b, int64_t steps, int bits,
                               const uint32_t sum[][RO_DOT_CHUNK], uint32_t *out) {
    const b_group *g = b;
    const int64_t whole = whole_blocks(steps), fours = whole / FOUR;
    const digits d = digits_of(sum, whole);
    (void)bits;
    const uint32_t words = add_digits_of(&d, g->high, fours, 0, out);
    if (g->count > FEW)
        add_digits_of(&d, g->low, fours, 1, out);
    for (int i = 0; g->count <= FEW && i < g->count; i++)
        out[column_of(g, i)] += 257 * column_by_line(&d, g->line[i], whole);
    return words + words_of_rest(g, steps);
}

static const fixed_adding adding = {add_lines, add_columns_of, words_of_b, marks_of_a,
                                    sizeof(((a_group *)NULL)->high)};

/* ---- sums of tiles ---- */

/* The sums that a check collects for one group of a: of each row over all columns, and of each
 * column of the current group of b. */
typedef struct {
    __m512i row[LINES], column[VECTORS];
} checked;

RO_INLINE __m512i by_factor(__m512i sum, int part) {
    return part == 2 ? weighted(weighted(sum, 1), 1) : weighted(sum, part);
}

/* Adds `rows` rows of a tile's sums, times 257 to the power of `part`. They belong to consecutive
 * rows from `first` on or, if `a` is not NULL, to its rows that have two digits. */
RO_INLINE void check_sums(checked *c, int64_t first, const a_group *a, int64_t rows,
                          int32_t (*sum)[COLS], int part) {
    __m512i first_column = c->column[0], second_column = c->column[1];
    for (int64_t i = 0; i < rows; i++) {
        __m512i *row = &c->row[a ? row_of(a, (int)i) : first + i];
        const __m512i x = by_factor(_mm512_load_si512(sum[i]), part);
        const __m512i y = by_factor(_mm512_load_si512(sum[i] + VW), part);
        first_column = _mm512_add_epi32(first_column, x);
        second_column = _mm512_add_epi32(second_column, y);
        *row = _mm512_add_epi32(*row, _mm512_add_epi32(x, y));
    }
    c->column[0] = first_column, c->column[1] = second_column;
}

static void check_high(checked *c, const fixed_tiles *t, int64_t first, int64_t rows,
                       int32_t (*sum)[COLS], int part) {
    fixed_alter_sums(t, rows, COLS, sum);
    check_sums(c, first, NULL, rows, sum, part);
}

static void check_low(checked *c, const fixed_tiles *t, int64_t rows, int32_t (*sum)[COLS],
                      int part) {
    fixed_alter_sums(t, rows, COLS, sum);
    check_sums(c, 0, t->a, rows, sum, part);
}

static void end_columns(checked *c, uint32_t *column) {
    for (int v = 0; v < VECTORS; v++) {
        add_vector_to(column + v * VW, c->column[v]);
        c->column[v] = _mm512_setzero_si512();
    }
}

static void end_rows(const checked *c, const fixed_tiles *t) {
    for (int64_t i = 0; i < t->rows; i++)
        t->sums->row[i] += sum_lanes(c->row[i]);
}

#endif

#endif
