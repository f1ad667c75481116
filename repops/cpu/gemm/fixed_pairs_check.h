/* Adds up packed words and the sums of tiles, for the checks (fixed_check.h) of fixed_pairs.c. All
 * sums are modulo 2^32. */
#ifndef REPOPS_CPU_FIXED_PAIRS_CHECK_H
#define REPOPS_CPU_FIXED_PAIRS_CHECK_H

#include "repops/cpu/gemm/fixed_adding.h"
#include "repops/cpu/gemm/fixed_pairs.h"

#if defined(RO_ISA_avx2)

/* Sums start at 2^31, modulo 2^32: a double whose lower half is such a sum, and whose upper half is
 * that of 2^52, has the value of the sum plus BIAS. */
typedef uint32_t sums[ROWS][COLS];

RO_INLINE __m256i sums_at(const uint32_t *x) {
    return _mm256_loadu_si256((const __m256i *)(const void *)x);
}

/* ---- packed numbers, and what columns add up to ---- */

/* Adds up lines of a. With 8 bits, the second plane has only rows with two digits. */
static void add_lines(const void *a, int64_t rows, int64_t steps, int bits,
                      uint32_t sum[][RO_DOT_CHUNK]) {
    const int16_t *words = a;
    for (int p = 0; p < (bits == RO_FIXED_24 ? SUMS_MOST : 2); p++)
        add_words(words + p * A_PLANE, bits == RO_FIXED_8 && p == 1 ? two_digits_of(a).count : rows,
                  2 * ceil_div(steps, 2), sum[p]);
}

static uint32_t add_columns_of(const void *b, int64_t steps, int bits,
                               const uint32_t sum[][RO_DOT_CHUNK], uint32_t *out) {
    const int16_t *words = b, *low = words + B_PLANE;
    const int64_t pairs = ceil_div(steps, 2);
    if (bits == RO_FIXED_8 && !uneven_columns_of(b))
        return add_columns(words, NULL, pairs, 0, sum[0], out);
    if (bits != RO_FIXED_24)
        return add_columns_of_both(words, pairs, sum, out) +
               (bits == RO_FIXED_8 ? (uint32_t)uneven_columns_of(b) : 0);
    const uint32_t first = add_columns(words, NULL, pairs, 0, sum[0], out);
    const uint32_t second = add_columns(low, NULL, pairs, 1, sum[1], out);
    add_columns(words, low, pairs, 2, sum[2], out);
    return first + second;
}

static uint32_t words_of_b(const void *b, int64_t steps, int bits) {
    const int16_t *words = b;
    const int64_t pairs = ceil_div(steps, 2);
    const uint32_t first = words_of_plane(words, pairs);
    switch (bits) {
    case RO_FIXED_8: return first + (uint32_t)uneven_columns_of(b);
    case RO_FIXED_16: return first;
    default: return first + words_of_plane(words + B_PLANE, pairs);
    }
}

static uint32_t marks_of_a(const void *a, int64_t rows) {
    const two_digits two = two_digits_of(a);
    uint32_t all = (uint32_t)two.count;
    (void)rows;
    for (int i = 0; i < ROWS; i++)
        all += (uint32_t)two.row[i];
    return all;
}

static const fixed_adding adding = {add_lines, add_columns_of, words_of_b, NULL, 2 * A_PLANE * 2};
static const fixed_adding adding8 = {add_lines, add_columns_of, words_of_b, marks_of_a,
                                     A_PLANE * 2};

/* ---- sums of tiles ---- */

typedef uint32_t row_sums[ROWS][VW];

/* Adds sums to the totals. Each sum contains its start of 2^31, which stays 2^31 when multiplied by
 * an odd factor; two starts cancel, a third one is removed. */
RO_INLINE void add_sums(const fixed_tiles *t, const sums *s, int count, int64_t n, row_sums rows) {
    const __m256i starts = _mm256_set1_epi32(count % 2 ? INT32_MIN : 0);
    __m256i column[VECTORS] = {VI_ZERO, VI_ZERO};
    for (int64_t i = 0; i < t->rows; i++) {
        __m256i row = VI_LOAD(rows[i]);
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++) {
            __m256i all = _mm256_xor_si256(sums_at(&s[0][i][v * VW]), starts);
            for (int p = 1; p < count; p++)
                all = _mm256_add_epi32(all, weighted(sums_at(&s[p][i][v * VW]), p));
            column[v] = _mm256_add_epi32(column[v], all);
            row = _mm256_add_epi32(row, all);
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

static void end_rows(const fixed_tiles *t, row_sums rows) {
    for (int64_t i = 0; i < t->rows; i++)
        for (int v = 0; v < VW; v++)
            t->sums->row[i] += rows[i][v];
}

/* Adds sums of 8-bit integers to the totals. Each sum has started at -2^31, which is taken off;
 * where `high` has a second sum, the two starts cancel modulo 2^32. */
static __attribute__((noinline)) void check_sums8(const fixed_tiles *t, sums *s, int two,
                                                  const uint32_t *const high[ROWS], int64_t n,
                                                  row_sums rows) {
    __m256i column[VECTORS] = {VI_ZERO, VI_ZERO};
    fixed_alter_sums(t, t->rows, COLS, s[0]);
    fixed_alter_sums(t, two, COLS, s[1]);
    for (int64_t i = 0; i < t->rows; i++)
        for (int v = 0; v < VECTORS; v++) {
            const __m256i sum = sums_at(&s[0][i][v * VW]);
            const __m256i all = high[i]
                                    ? _mm256_add_epi32(sum, weighted(sums_at(high[i] + v * VW), 1))
                                    : _mm256_xor_si256(sum, _mm256_set1_epi32(INT32_MIN));
            column[v] = _mm256_add_epi32(column[v], all);
            add_vector_to(rows[i], all);
        }
    for (int v = 0; v < VECTORS; v++)
        add_vector_to(t->sums->column + n + v * VW, column[v]);
}

#endif

#endif
