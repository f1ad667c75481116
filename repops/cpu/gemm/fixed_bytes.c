/* Exact products by bytes, for integers of 8 bits, with vpdpbusd (AVX-512 VNNI), which adds four
 * products to each lane of 32 bits.
 *
 * Most lines of a chunk have one digit, few have two. The first digit is the only one, or the high
 * one of two; first digits are multiplied for a whole tile. The low digits of rows that have two
 * are packed into tiles of few rows; those of few columns are multiplied with the rows column by
 * column. A sum of products of digits is below 2^23; if both lines have two digits, the whole sum
 * has 39 bits. */
#include "repops/cpu/gemm/fixed_bytes_check.h"

#if defined(RO_ISA_avx512)

#include "repops/src/fixed.h"

typedef int32_t sums[LINES][COLS];

/* ---- rows by columns ---- */

RO_INLINE __m512i four_of(const int8_t *a) {
    int32_t four;
    memcpy(&four, a, sizeof four);
    return _mm512_set1_epi32(four);
}

/* Adds up a few rows. apart = 2: each takes two sums, as an addition waits for the one before
 * it. */
VNNI RO_INLINE void add_some(int rows, int apart, const int8_t (*a)[RO_DOT_CHUNK], b_plane b,
                             int64_t fours, const int32_t *start, int32_t (*out)[COLS]) {
    __m512i sum[ROWS][VECTORS];
    __m512i more[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        sum[i][v] = _mm512_set1_epi32(-start[i]);
        more[i][v] = _mm512_setzero_si512();
    }
    for (int64_t k = 0; k < fours; k += apart) {
        const __m512i b0 = _mm512_load_si512(b[k][0]), b1 = _mm512_load_si512(b[k][VW]);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i row = four_of(&a[i][FOUR * k]);
            sum[i][0] = _mm512_dpbusd_epi32(sum[i][0], b0, row);
            sum[i][1] = _mm512_dpbusd_epi32(sum[i][1], b1, row);
        }
        if (apart == 1)
            continue;
        const __m512i c0 = _mm512_load_si512(b[k + 1][0]), c1 = _mm512_load_si512(b[k + 1][VW]);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i row = four_of(&a[i][FOUR * (k + 1)]);
            more[i][0] = _mm512_dpbusd_epi32(more[i][0], c0, row);
            more[i][1] = _mm512_dpbusd_epi32(more[i][1], c1, row);
        }
    }
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        _mm512_store_si512(&out[i][v * VW],
                           apart == 1 ? sum[i][v] : _mm512_add_epi32(sum[i][v], more[i][v]));
}

#define CASE(rows, apart)                                                                          \
    case rows: add_some(rows, apart, a, b, fours, start, out); break

/* Adds up the products of up to ROWS rows. */
VNNI static void add_tile(int64_t rows, const int8_t (*a)[RO_DOT_CHUNK], b_plane b, int64_t fours,
                          const int32_t *start, int32_t (*out)[COLS]) {
    switch (rows) {
        CASE(1, 2);
        CASE(2, 2);
        CASE(3, 2);
        CASE(4, 2);
        CASE(5, 2);
        CASE(6, 2);
        CASE(7, 1);
        CASE(8, 1);
        CASE(9, 1);
        CASE(10, 1);
        CASE(11, 1);
    default: add_some(ROWS, 1, a, b, fours, start, out);
    }
}

static void add_rows(int64_t rows, const int8_t (*a)[RO_DOT_CHUNK], b_plane b, int64_t fours,
                     const int32_t *start, int32_t (*out)[COLS]) {
    for (; rows > 0; rows -= ROWS, a += ROWS, start += ROWS, out += ROWS)
        add_tile(rows, a, b, fours, start, out);
}

/* ---- rows by one column ---- */

VNNI RO_INLINE __m512i line_by_line(const int8_t *row, const uint8_t *col, int64_t steps) {
    __m512i sum = _mm512_setzero_si512();
    for (int64_t k = 0; k < steps; k += BLOCK)
        sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(col + k), _mm512_loadu_si512(row + k));
    return sum;
}

RO_INLINE __m512i added_pairs(__m512i x, __m512i y) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
}

/* Returns, in lane i, the sum of the lanes of x[i]. */
RO_INLINE __m128i added_up(const __m512i x[4]) {
    const __m512i first = added_pairs(x[0], x[1]), second = added_pairs(x[2], x[3]);
    const __m512i all = _mm512_add_epi32(_mm512_unpacklo_epi64(first, second),
                                         _mm512_unpackhi_epi64(first, second));
    const __m256i half =
        _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

/* Multiplies rows of a group by one column, four rows at a time. The last four may include rows
 * past the last one, which a group has room for. */
VNNI static void add_column(int64_t rows, const int8_t (*a)[RO_DOT_CHUNK], const uint8_t *col,
                            int64_t steps, const int32_t *start, int32_t (*out)[COLS], int at) {
    for (int64_t i = 0; i < rows; i += 4) {
        __m512i x[4];
        int32_t sum[4];
        for (int r = 0; r < 4; r++)
            x[r] = line_by_line(a[i + r], col, steps);
        _mm_storeu_si128((__m128i *)(void *)sum, added_up(x));
        for (int r = 0; r < 4 && i + r < rows; r++)
            out[i + r][at] = sum[r] - start[i + r];
    }
}

/* ---- sums of a tile ---- */

/* The sums of one tile, by digits: low_high has products of a's low digits and b's first ones,
 * high_low of a's first and b's low ones, `low` of both low ones. Rows with two digits have
 * consecutive rows in low_high and `low`. */
typedef struct {
    _Alignas(64) sums high, low_high, high_low, low;
    int32_t high_start[LINES], low_start[LINES]; /* the parts from b's bias */
} tile_sums;

/* Finds the parts of sums that come from b's bias: as packed, or computed if the tile has fewer
 * steps. */
VNNI static void find_starts(const fixed_tiles *t, tile_sums *s) {
    const a_group *a = t->a;
    memcpy(s->high_start, a->high_sum, sizeof s->high_start);
    memcpy(s->low_start, a->low_sum, sizeof s->low_start);
    for (int64_t i = 0; a->steps != t->steps && i < t->rows; i++)
        s->high_start[i] = sum_of(a->high[i], t->steps);
    for (int i = 0; a->steps != t->steps && i < rows_of_two(a); i++)
        s->low_start[i] = sum_of(a->low[i], t->steps);
}

static void clear(int64_t rows, int32_t (*out)[COLS]) {
    memset(out, 0, (size_t)rows * sizeof *out);
}

static void add_low_columns(const fixed_tiles *t, b_group *b, tile_sums *s) {
    const a_group *a = t->a;
    const int64_t steps = whole_blocks(t->steps), fours = 2 * ceil_div(t->steps, 2 * FOUR);
    const int two = rows_of_two(a);
    if (b->count > FEW) {
        add_rows(t->rows, a->high, b->low, fours, s->high_start, s->high_low);
        add_rows(two, a->low, b->low, fours, s->low_start, s->low);
        return;
    }
    clear(t->rows, s->high_low);
    clear(two, s->low);
    for (int i = 0; i < b->count; i++) {
        const int at = column_of(b, i);
        add_column(t->rows, a->high, b->line[i], steps, s->high_start, s->high_low, at);
        add_column(two, a->low, b->line[i], steps, s->low_start, s->low, at);
    }
}

/* ---- rounding ---- */

/* Returns the exponents of sixteen lines' powers, and NaN for lines that are not finite. */
RO_INLINE __m512 exponents(const double *power) {
    const __m256 low = _mm512_cvtpd_ps(_mm512_getexp_pd(_mm512_loadu_pd(power)));
    const __m256 high = _mm512_cvtpd_ps(_mm512_getexp_pd(_mm512_loadu_pd(power + 8)));
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

RO_INLINE __m512i at(const int32_t *x) {
    return _mm512_load_si512(x);
}

/* Arguments for rounding the sums of lines with one digit and adding them to the totals. */
typedef struct {
    float *c;
    int64_t c_row;
    const float *row;        /* exponents of rows; NaN for rows that are not finite */
    const uint16_t *mask;    /* for each row: 0 if it has two digits, else all bits */
    __mmask16 cols[VECTORS]; /* the columns that exist and have one digit */
    __mmask16 added;         /* 0: nothing has been added to the totals (fixed_tiles.first) */
    __m512 exponent[VECTORS];
} ending;

/* Rounds and adds one row of a tile. Sums are below 2^24, so floats hold them exactly, and scaling
 * rounds once. */
RO_INLINE void end_row(const ending *e, int64_t i, const int32_t sum[COLS]) {
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        float *c = e->c + i * e->c_row + v * VW;
        const __mmask16 mask = e->cols[v] & e->mask[i];
        __builtin_prefetch(c + COLS, 1); /* of the next tile */
        const __m512 power = _mm512_add_ps(_mm512_set1_ps(e->row[i]), e->exponent[v]);
        const __m512 term = _mm512_scalef_ps(_mm512_cvtepi32_ps(at(sum + v * VW)), power);
        if (mask == 0xffff)
            _mm512_storeu_ps(c, _mm512_add_ps(_mm512_maskz_loadu_ps(e->added, c), term));
        else
            _mm512_mask_storeu_ps(c, mask,
                                  _mm512_add_ps(_mm512_maskz_loadu_ps(mask & e->added, c), term));
    }
}

/* The sums of a vector of columns in one row; NULL where there are none. */
typedef struct {
    const int32_t *high, *low_high, *high_low, *low;
    __m512 exponent;
    double row;
    const double *col;
} row_sums;

/* Does what rounded_sums does, for results that may be subnormal. */
static __attribute__((noinline)) __m512 rounded_exactly(const row_sums *s) {
    float out[VW];
    for (int i = 0; i < VW; i++) {
        const int64_t middle =
            (int64_t)(s->low_high ? s->low_high[i] : 0) + (s->high_low ? s->high_low[i] : 0);
        const int64_t sum = ((int64_t)s->high[i] * 256 + middle) * 256 + (s->low ? s->low[i] : 0);
        out[i] = ro_fixed_value(sum, s->row * s->col[i] * 0x1p-16);
    }
    return _mm512_loadu_ps(out);
}

/* Rounds sums high 2^16 + rest. Floats hold both exactly, so the fma rounds once; scaling is exact
 * unless results are subnormal. 32 bits hold the rest: |middle| <= 2 * 256 * 127 * 128. */
RO_INLINE __m512 rounded_sums(const row_sums *s) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i middle = _mm512_add_epi32(s->low_high ? at(s->low_high) : zero,
                                            s->high_low ? at(s->high_low) : zero);
    const __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(middle, 8), s->low ? at(s->low) : zero);
    const __m512i upper = _mm512_add_epi32(at(s->high), _mm512_srai_epi32(rest, 16));
    const __m512 lower = _mm512_cvtepi32_ps(_mm512_and_si512(rest, _mm512_set1_epi32(0xffff)));
    const __m512 near = _mm512_fmadd_ps(_mm512_cvtepi32_ps(upper), _mm512_set1_ps(0x1p16f), lower);
    const __m512 exponent = _mm512_sub_ps(s->exponent, _mm512_set1_ps(16));
    const __mmask16 tiny = _mm512_cmp_ps_mask(exponent, _mm512_set1_ps(-126), _CMP_LT_OQ);
    if (_mm512_mask_cmp_ps_mask(tiny, near, _mm512_setzero_ps(), _CMP_NEQ_OQ))
        return rounded_exactly(s);
    return _mm512_scalef_ps(near, exponent);
}

/* Adds the sums that involve low digits to row i of the totals. If the row has two digits, it is
 * number `two` of such rows, and all its columns are added; otherwise two is -1, and only the
 * columns with two digits are added. */
RO_INLINE void add_row(const fixed_tiles *t, const b_group *b, const tile_sums *s, int64_t i,
                       int two, int64_t n, const ending *e) {
    for (int v = 0; v < VECTORS && n + v * VW < t->cols; v++) {
        const int col = v * VW, columns = (int)(b->columns >> col & 0xffff);
        const int64_t count = t->cols - n - col;
        const __mmask16 mask =
            (__mmask16)((two < 0 ? columns : 0xffff) & (count < VW ? (1 << count) - 1 : 0xffff));
        const row_sums x = {.high = &s->high[i][col],
                            .low_high = two < 0 ? NULL : &s->low_high[two][col],
                            .high_low = columns ? &s->high_low[i][col] : NULL,
                            .low = columns && two >= 0 ? &s->low[two][col] : NULL,
                            .exponent = _mm512_add_ps(_mm512_set1_ps(e->row[i]), e->exponent[v]),
                            .row = t->a_power[i],
                            .col = t->b_power + n + col};
        float *c = t->c + i * t->c_row + n + col;
        if (mask)
            _mm512_mask_storeu_ps(
                c, mask,
                _mm512_add_ps(_mm512_maskz_loadu_ps(mask & e->added, c), rounded_sums(&x)));
    }
}

/* Adds the sums that involve low digits to all rows of a tile. */
static void add_two_digits(const fixed_tiles *t, b_group *b, int64_t n, const ending *e,
                           tile_sums *s, checked *check) {
    const a_group *a = t->a;
    const int count = rows_of_two(a);
    add_rows(count, a->low, b->high, 2 * ceil_div(t->steps, 2 * FOUR), s->low_start, s->low_high);
    if (b->count > 0)
        add_low_columns(t, b, s);
    if (check) {
        check_low(check, t, count, s->low_high, 1);
        check_high(check, t, 0, b->count > 0 ? t->rows : 0, s->high_low, 1);
        check_low(check, t, b->count > 0 ? count : 0, s->low, 2);
    }
    for (int64_t i = 0, next = 0; i < t->rows; i++) {
        const int two = next < count && a->row[next] == i ? (int)next++ : -1;
        if (two >= 0 || b->count > 0)
            add_row(t, b, s, i, two, n, e);
    }
}

static void tiles_of_bytes(const fixed_tiles *t) {
    const a_group *a = t->a;
    const int64_t fours = 2 * ceil_div(t->steps, 2 * FOUR);
    b_group *b = (b_group *)(uintptr_t)t->b;
    float row[LINES + VW];
    uint16_t mask[LINES];
    tile_sums s;
    checked check, *checks = t->sums ? &check : NULL;
    if (checks)
        memset(&check, 0, sizeof check);
    for (int64_t i = 0; i < t->rows; i += 8)
        _mm256_storeu_ps(row + i,
                         _mm512_cvtpd_ps(_mm512_getexp_pd(_mm512_loadu_pd(t->a_power + i))));
    find_starts(t, &s);
    memset(mask, 0xff, sizeof mask);
    for (int i = 0; i < rows_of_two(a); i++)
        mask[row_of(a, i)] = 0;
    for (int64_t n = 0; n < t->cols; n += COLS, b++) {
        ending e = {.c = t->c + n,
                    .c_row = t->c_row,
                    .row = row,
                    .mask = mask,
                    .added = t->first ? 0 : 0xffff};
        for (int v = 0; v < VECTORS; v++) {
            const int64_t count = t->cols - n - v * VW;
            e.cols[v] = (__mmask16)(~(b->columns >> v * VW) & (count >= VW ? 0xffff
                                                               : count > 0 ? (1 << count) - 1
                                                                           : 0));
            e.exponent[v] = exponents(t->b_power + n + v * VW);
        }
        for (int64_t m = 0; m < t->rows; m += ROWS) {
            const int64_t rows = min_i64(ROWS, t->rows - m);
            add_tile(rows, a->high + m, b->high, fours, s.high_start + m, s.high + m);
            if (checks)
                check_high(checks, t, m, rows, s.high + m, 0);
            for (int64_t i = m; i < m + rows; i++)
                end_row(&e, i, s.high[i]);
        }
        if (a->count != 0 || b->count > 0)
            add_two_digits(t, b, n, &e, &s, checks);
        if (checks)
            end_columns(checks, t->sums->column + n);
    }
    if (checks)
        end_rows(checks, t);
}

const fixed_engine *RO_NAME(ro_fixed_bytes)(void) {
    static const fixed_engine of8 = {
        "AVX-512 VNNI", LINES,          COLS, sizeof(a_group), sizeof(b_group), pack_a,
        pack_b,         tiles_of_bytes, 0,    &adding};
    return &of8;
}

#endif
