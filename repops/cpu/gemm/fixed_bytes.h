/* How both operands of fixed_bytes.c are packed: as digits of 8 bits. */
#ifndef REPOPS_CPU_FIXED_BYTES_H
#define REPOPS_CPU_FIXED_BYTES_H

#include "repops/cpu/gemm/fixed_vectors.h"

#if defined(RO_ISA_avx512)

#define VNNI __attribute__((target("avx512vnni")))

enum {
    ROWS = 12,  /* rows of a tile */
    LINES = 24, /* rows of a group of a */
    COLS = FIXED_COLS,
    VECTORS = COLS / VW,
    FOUR = 4,   /* steps in a lane */
    BLOCK = 64, /* steps in a vector of one line */
    FEW = 12,   /* most columns of a group whose low digits are multiplied column by column */
    BIAS = 128, /* added to b's digits, which the instruction takes as unsigned */
};

/* A group of rows. A row's first digit, in `high`, is the only one or the high one of two. The low
 * digits of the `count` rows that have two are consecutive in `low`; row[] has the numbers of these
 * rows. Sums are those of a row's digits, times BIAS. */
typedef struct {
    _Alignas(64) int8_t high[LINES][RO_DOT_CHUNK], low[LINES][RO_DOT_CHUNK];
    int32_t high_sum[LINES], low_sum[LINES];
    int32_t count, row[LINES];
    int64_t steps;
} a_group;

/* [steps / 4, columns, 4], as a tile reads them. */
typedef uint8_t b_plane[RO_DOT_CHUNK / FOUR][COLS][FOUR];

/* A group of columns. With at most FEW columns of two digits, their low digits are consecutive in
 * `line`; with more, `low` has those of all columns. */
typedef struct {
    _Alignas(64) b_plane high;
    union {
        b_plane low;
        uint8_t line[FEW][RO_DOT_CHUNK];
    };
    int32_t count, col[COLS];
    uint32_t columns; /* bit i is set if column i has two digits */
} b_group;

/* Returns what 1 in the first digit stands for, in a line of one digit or of two. */
RO_INLINE double of_first(double power, int two) {
    return two ? power * (1 << 8) : power;
}

RO_INLINE int64_t whole_blocks(int64_t steps) {
    return ceil_div(steps, BLOCK) * BLOCK;
}

/* Returns the number of rows with two digits, within bounds even if faulty memory has changed it.
 * With --guard the check finds such a count (fixed_check.h), so it must not cause a crash
 * before. */
RO_INLINE int rows_of_two(const a_group *a) {
    return a->count >= 0 && a->count <= LINES ? a->count : LINES;
}

RO_INLINE int row_of(const a_group *a, int i) {
    return a->row[i] >= 0 && a->row[i] < LINES ? a->row[i] : 0;
}

RO_INLINE int column_of(const b_group *b, int i) {
    return b->col[i] & (COLS - 1);
}

/* ---- a ---- */

/* Returns the integers of four vectors as bytes, in order. One instruction stores them: a wide load
 * after narrow stores would stall. */
RO_INLINE __m512i bytes_of(const __m512i x[4]) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i words = _mm512_packs_epi32(x[0], x[1]), more = _mm512_packs_epi32(x[2], x[3]);
    return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(words, more));
}

/* Returns the high digits of integers that have two. */
RO_INLINE __m512i high_of(__m512i x) {
    return _mm512_srai_epi32(_mm512_add_epi32(x, _mm512_set1_epi32(BIAS)), 8);
}

/* Returns the sum of a line's digits, times BIAS. */
VNNI RO_INLINE int32_t sum_of(const int8_t *line, int64_t steps) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < steps; k += BLOCK)
        sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), _mm512_loadu_si512(line + k));
    return BIAS * _mm512_reduce_add_epi32(sum);
}

VNNI RO_INLINE void pack_steps(const float *x, int64_t steps, a_group *g, int64_t line,
                               double *power) {
    const scales s = line_scales(x, steps, RO_FIXED_8, power);
    const int64_t whole = whole_blocks(steps);
    int8_t *high = g->high[line], *low = g->low[g->count];
    const int two = two_digits(s) != 0;
    for (int64_t k = 0; k < whole; k += BLOCK) {
        __m512i first[4], second[4];
        for (int i = 0; i < 4; i++) {
            second[i] = integers(numbers_at(x + k + i * VW, steps - k - i * VW), s);
            first[i] = two ? high_of(second[i]) : second[i];
            second[i] = _mm512_sub_epi32(second[i], _mm512_slli_epi32(first[i], 8));
        }
        _mm512_store_si512(high + k, bytes_of(first));
        if (two)
            _mm512_store_si512(low + k, bytes_of(second));
    }
    *power = of_first(*power, two);
    g->high_sum[line] = sum_of(high, whole);
    if (!two)
        return;
    g->low_sum[g->count] = sum_of(low, whole);
    g->row[g->count++] = (int32_t)line;
}

VNNI static void pack_line(const float *x, int64_t steps, a_group *g, int64_t line, double *power) {
    if (steps == RO_DOT_CHUNK)
        pack_steps(x, RO_DOT_CHUNK, g, line, power);
    else
        pack_steps(x, steps, g, line, power);
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[LINES * RO_DOT_CHUNK];
    const whole_lines from = lines_of(l, copy);
    a_group *g = out;
    (void)bits;
    g->count = 0, g->steps = l->steps;
    for (int64_t i = 0; i < l->lines; i++)
        pack_line(from.x + i * from.apart, l->steps, g, i, power + i);
}

/* ---- b ---- */

/* Returns four steps of a vector of columns as bytes side by side, with the bias. */
RO_INLINE __m512i four_bytes(const __m512i x[FOUR]) {
    const __m512i byte = _mm512_set1_epi32(255);
    __m512i four = _mm512_slli_epi32(x[3], 24);
    for (int q = 2; q >= 0; q--)
        four = _mm512_or_si512(four,
                               _mm512_slli_epi32(_mm512_and_si512(x[q], byte), (unsigned)(8 * q)));
    return _mm512_xor_si512(four, _mm512_set1_epi8(-BIAS));
}

/* Packs a vector of columns. Returns a mask of those that have two digits. */
RO_INLINE __mmask16 pack_columns(const side_by_side *c, int64_t col, b_group *g, b_plane low,
                                 double *power) {
    const scales s = column_scales(c, col, RO_FIXED_8, power);
    const __mmask16 two = two_digits(s);
    const __m512i shift = _mm512_maskz_set1_epi32(two, 8);
    const __m512i half = _mm512_maskz_set1_epi32(two, BIAS);
    for (int i = 0; i < VW; i++)
        power[i] = of_first(power[i], two >> i & 1);
    for (int64_t k = 0; k < whole_blocks(c->steps); k += FOUR) {
        __m512i high[FOUR], rest[FOUR];
        for (int q = 0; q < FOUR; q++) {
            const __m512i i = integers(step_of(c, k + q, col), s);
            high[q] = _mm512_srav_epi32(_mm512_add_epi32(i, half), shift);
            rest[q] = _mm512_sub_epi32(i, _mm512_sllv_epi32(high[q], shift));
        }
        _mm512_store_si512(g->high[k / FOUR][col], four_bytes(high));
        if (two)
            _mm512_store_si512(low[k / FOUR][col], four_bytes(rest));
    }
    return two;
}

static __mmask16 pack_vector(const side_by_side *c, int64_t col, b_group *g, b_plane low,
                             double *power) {
    const side_by_side whole = {c->x, c->step, COLS, RO_DOT_CHUNK, NULL};
    if (c->cols == COLS && c->steps == RO_DOT_CHUNK)
        return pack_columns(&whole, col, g, low, power);
    return pack_columns(c, col, g, low, power);
}

/* Fills the low digits of a vector of columns that have none: only checks add these up. */
static void clear_vector(b_plane low, int64_t col, int64_t steps) {
    for (int64_t k = 0; k < steps; k += FOUR)
        _mm512_store_si512(low[k / FOUR][col], _mm512_set1_epi8(-BIAS));
}

static void copy_line(b_plane low, int64_t col, int64_t steps, uint8_t *line) {
    for (int64_t k = 0; k < steps; k += FOUR)
        memcpy(line + k, low[k / FOUR][col], FOUR);
}

static void pack_b(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[COLS * RO_DOT_CHUNK];
    _Alignas(64) b_plane low;
    const side_by_side c = columns_of(l, copy);
    const int64_t steps = whole_blocks(l->steps);
    b_group *g = out;
    (void)bits;
    g->columns = 0, g->count = 0;
    for (int v = 0; v < VECTORS; v++)
        g->columns |= (uint32_t)pack_vector(&c, v * VW, g, low, power + v * VW) << VW * v;
    for (int i = 0; i < COLS; i++)
        if (g->columns >> i & 1)
            g->col[g->count++] = i;
    for (int v = 0; g->count > FEW && v < VECTORS; v++)
        if ((g->columns >> VW * v & 0xffff) == 0)
            clear_vector(low, v * VW, steps);
    if (g->count > FEW)
        memcpy(g->low, low, (size_t)(steps * COLS));
    for (int i = 0; g->count <= FEW && i < g->count; i++)
        copy_line(low, g->col[i], steps, g->line[i]);
}

#endif

#endif
