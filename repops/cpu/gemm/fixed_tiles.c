/* Exact products by tiles of bytes (AMX-INT8): an instruction multiplies 16 rows by 16 columns over
 * 64 steps of k.
 *
 * An integer is two or three signed digits of a byte, so the product of two integers is four or
 * nine products of bytes. Products of digits i of a and j of b with the same i + j make a level,
 * which four tiles add up for 32 rows and 32 columns: in a chunk, at most 3 * 256 products of at
 * most 2^14. A finished level is stored in memory. While tiles multiply one group of b, vector
 * units round the 32 x 32 results of the group before: a core does both at once if the instructions
 * alternate. With 8 bits, a group of lines has one digit, or two if any of its lines has two.
 *
 * Not measured yet on a machine that has tiles. */
#include "repops/cpu/gemm/fixed_vectors.h"

#if defined(RO_ISA_avx512)
#ifdef RO_TILES
#include RO_TILES
#else
#include "repops/cpu/gemm/tiles.h"
#endif
#endif

#if defined(RO_ISA_avx512) && defined(RO_HAVE_TILES)

#include "repops/src/fixed.h"

enum {
    LINES = FIXED_COLS, /* rows of a group of a, columns of a group of b: two AMX tiles */
    TILE_LINES = 16,
    TILE_STEPS = 64,
    TILE = TILE_LINES * TILE_STEPS,           /* bytes of an AMX tile */
    PAIR = 2 * TILE,                          /* bytes of TILE_STEPS steps of a group */
    PLANE = RO_DOT_CHUNK / TILE_STEPS * PAIR, /* bytes of one digit of a group */
    DIGITS_MOST = RO_FIXED_24 / 8,
    LEVELS_MOST = 2 * DIGITS_MOST - 1,
    COUNT = 64, /* with 8 bits: bytes after a group's digits, for their number */
};

/* Operand of the instruction ldtilecfg: tiles of 16 rows of 64 bytes. */
static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes __attribute__((aligned(64))) = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

RO_INLINE int64_t blocks_of(int64_t steps) {
    return ceil_div(steps, TILE_STEPS);
}

/* ---- digits: adding 128 to each digit makes the bytes unsigned ---- */

RO_INLINE __m512i biased(__m512i x, int bits) {
    return _mm512_add_epi32(x, _mm512_set1_epi32(bits == RO_FIXED_24 ? 0x808080 : 0x8080));
}

/* digits_of returns how many digits a packed group has, digits_most how many it has room for. */
RO_INLINE int digits_of(const void *group, int bits) {
    return bits == RO_FIXED_8 ? ((const int8_t *)group)[2 * PLANE] : bits / 8;
}

RO_INLINE int digits_most(int bits) {
    return bits == RO_FIXED_8 ? 2 : bits / 8;
}

/* a's tiles are [line, step]. */
/* Packs a line. Returns how many digits it has; missing ones are stored as 0. */
static int pack_line(const float *x, int64_t steps, int bits, int8_t *out, double *power) {
    const scales s = line_scales(x, steps, bits, power);
    for (int64_t k = 0; k < blocks_of(steps) * TILE_STEPS; k += VW) {
        const __m512i w = biased(integers(vf_load_n(x + k, steps - k), s), bits);
        int8_t *to = out + k / TILE_STEPS * PAIR + k % TILE_STEPS;
        for (int d = 0; d < digits_most(bits); d++, to += PLANE) {
            const __m128i bytes = _mm512_cvtepi32_epi8(_mm512_srli_epi32(w, (unsigned)(8 * d)));
            _mm_store_si128((__m128i *)(void *)to, _mm_xor_si128(bytes, _mm_set1_epi8(-128)));
        }
    }
    return _mm512_cvtsi512_si32(s.bits) / 8;
}

static void clear_line(int64_t steps, int bits, int8_t *out) {
    for (int d = 0; d < digits_most(bits); d++)
        for (int64_t b = 0; b < blocks_of(steps); b++)
            memset(out + d * PLANE + b * PAIR, 0, TILE_STEPS);
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[LINES * RO_DOT_CHUNK];
    const whole_lines from = lines_of(l, copy);
    int digits = 1;
    for (int64_t i = 0; i < LINES; i++) {
        int8_t *to = (int8_t *)out + i / TILE_LINES * TILE + i % TILE_LINES * TILE_STEPS;
        if (i >= l->lines)
            clear_line(l->steps, bits, to), power[i] = 0;
        else if (pack_line(from.x + i * from.apart, l->steps, bits, to, power + i) > digits)
            digits = 2;
    }
    if (bits == RO_FIXED_8)
        ((int8_t *)out)[2 * PLANE] = (int8_t)digits;
}

/* Packs half of b's columns; b's tiles are [step / 4, column, step % 4]. Returns 2 if any has two
 * digits. */
static int pack_half(const side_by_side *c, int64_t col, int bits, int8_t *out, double *power) {
    const scales s = column_scales(c, col, bits, power);
    const __m512i byte = _mm512_set1_epi32(255), bias = _mm512_set1_epi8(-128);
    for (int64_t k = 0; k < blocks_of(c->steps) * TILE_STEPS; k += 4) {
        int8_t *to = out + k / TILE_STEPS * PAIR + k % TILE_STEPS * TILE_LINES;
        __m512i w[4];
        for (int q = 0; q < 4; q++)
            w[q] = biased(integers(step_of(c, k + q, col), s), bits);
        for (int d = 0; d < digits_most(bits); d++, to += PLANE) {
            __m512i four = _mm512_setzero_si512();
            for (int q = 3; q >= 0; q--) {
                const __m512i digit = _mm512_srli_epi32(w[q], (unsigned)(8 * d));
                four = _mm512_or_si512(_mm512_slli_epi32(four, 8), _mm512_and_si512(digit, byte));
            }
            _mm512_store_si512(to, _mm512_xor_si512(four, bias));
        }
    }
    return two_digits(s) ? 2 : 1;
}

static void pack_b(const fixed_lines *l, int bits, void *out, double *power) {
    float copy[FIXED_COLS * RO_DOT_CHUNK];
    const side_by_side c = columns_of(l, copy);
    int digits = 1;
    for (int h = 0; h < 2; h++)
        digits |=
            pack_half(&c, h * TILE_LINES, bits, (int8_t *)out + h * TILE, power + h * TILE_LINES);
    if (bits == RO_FIXED_8)
        ((int8_t *)out)[2 * PLANE] = (int8_t)(digits > 1 ? 2 : 1);
}

/* ---- rounding ---- */

typedef struct {
    _Alignas(64) int32_t level[LEVELS_MOST][LINES][LINES];
} level_sums;

/* Results that are not rounded yet: vectors [next, end), row by row. */
typedef struct {
    const fixed_tiles *t;
    const level_sums *sums;
    int64_t col; /* the first column of these results */
    int next, end;
} waiting;

RO_INLINE __m512d numbers(const level_sums *s, int level, int row, int col) {
    return _mm512_cvtepi32_pd(_mm256_load_si256((const __m256i *)&s->level[level][row][col]));
}

/* Returns eight whole sums of a chunk. Only the last step may round, for sums from 2^53 on. */
RO_INLINE __m512d whole(const level_sums *s, int bits, int row, int col) {
    const __m512d place = _mm512_set1_pd(256);
    __m512d low = _mm512_fmadd_pd(numbers(s, 1, row, col), place, numbers(s, 0, row, col));
    low = _mm512_fmadd_pd(numbers(s, 2, row, col), _mm512_set1_pd(65536), low);
    if (bits != RO_FIXED_24)
        return low;
    const __m512d high = _mm512_fmadd_pd(numbers(s, 4, row, col), place, numbers(s, 3, row, col));
    return _mm512_fmadd_pd(high, _mm512_set1_pd(0x1p24), low);
}

/* Does what terms does, if a sum has more than 53 bits. */
static __attribute__((noinline)) __m256 terms_of_wide(const level_sums *s, int row, int col,
                                                      __m512d powers) {
    double power[8];
    float term[8];
    _mm512_storeu_pd(power, powers);
    for (int i = 0; i < 8; i++) {
        int64_t sum = 0;
        for (int d = LEVELS_MOST - 1; d >= 0; d--)
            sum = sum * 256 + s->level[d][row][col + i];
        term[i] = ro_fixed_value(sum, power[i]);
    }
    return _mm256_loadu_ps(term);
}

RO_INLINE __m256 terms(const waiting *w, int bits, int row, int col) {
    const __m512d b = _mm512_loadu_pd(w->t->b_power + w->col + col);
    const __m512d power = _mm512_mul_pd(_mm512_set1_pd(w->t->a_power[row]), b);
    const __m512d sum = whole(w->sums, bits, row, col);
    const __m512d limit = _mm512_set1_pd(0x1p53);
    if (bits == RO_FIXED_24 && _mm512_cmp_pd_mask(_mm512_abs_pd(sum), limit, _CMP_GE_OQ))
        return terms_of_wide(w->sums, row, col, power);
    return _mm512_cvtpd_ps(_mm512_mul_pd(sum, power));
}

RO_INLINE void round_some(waiting *w, int bits, int count) {
    const int end = w->end - w->next < count ? w->end : w->next + count;
    for (; w->next < end; w->next++) {
        const int row = w->next / 2, col = w->next % 2 * VW;
        const int64_t left = w->t->cols - w->col - col;
        float *c = w->t->c + row * w->t->c_row + w->col + col;
        const vf term = _mm512_insertf32x8(_mm512_castps256_ps512(terms(w, bits, row, col)),
                                           terms(w, bits, row, col + 8), 1);
        if (left > 0)
            vf_store_n(c, vf_add(fixed_totals(w->t, c, left), term), left);
    }
}

/* ---- tiles ---- */

/* Multiplies one block of k. Tiles 0 to 3 are sums, row by row; 4 and 5 are a's, 6 and 7 b's. */
TILES RO_INLINE void multiply(const int8_t *a, const int8_t *b) {
    TILE_LOAD(4, a, TILE_STEPS);
    TILE_LOAD(6, b, TILE_STEPS);
    TILE_MULTIPLY(0, 4, 6);
    TILE_LOAD(7, b + TILE, TILE_STEPS);
    TILE_MULTIPLY(1, 4, 7);
    TILE_LOAD(5, a + TILE, TILE_STEPS);
    TILE_MULTIPLY(2, 5, 6);
    TILE_MULTIPLY(3, 5, 7);
}

TILES RO_INLINE void clear(void) {
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
}

TILES RO_INLINE void store(int32_t sum[LINES][LINES]) {
    TILE_STORE(0, &sum[0][0], sizeof sum[0]);
    TILE_STORE(1, &sum[0][TILE_LINES], sizeof sum[0]);
    TILE_STORE(2, &sum[TILE_LINES][0], sizeof sum[0]);
    TILE_STORE(3, &sum[TILE_LINES][TILE_LINES], sizeof sum[0]);
}

/* Multiplies a by one group of b, and rounds a share of the waiting results after each block. */
TILES RO_INLINE void multiply_group(const fixed_tiles *t, int bits, const int8_t *b,
                                    level_sums *sums, waiting *w) {
    const int of_a = digits_of(t->a, bits), of_b = digits_of(b, bits);
    const int64_t blocks = blocks_of(t->steps);
    const int share = (int)ceil_div(w->end - w->next, of_a * of_b * blocks);
    for (int level = 0; level < 2 * digits_most(bits) - 1; level++) {
        clear();
        for (int i = level < of_b ? 0 : level - of_b + 1; i <= level && i < of_a; i++)
            for (int64_t k = 0; k < blocks; k++) {
                multiply((const int8_t *)t->a + i * PLANE + k * PAIR,
                         b + (level - i) * PLANE + k * PAIR);
                round_some(w, bits, share);
            }
        store(sums->level[level]);
    }
}

TILES RO_INLINE void multiply_all(const fixed_tiles *t, int bits) {
    level_sums sums[2];
    waiting w = {.t = t};
    const int8_t *b = t->b;
    TILE_CONFIGURE(&shapes);
    const int64_t group = digits_most(bits) * PLANE + (bits == RO_FIXED_8 ? COUNT : 0);
    for (int64_t n = 0; n < t->cols; n += LINES, b += group) {
        level_sums *to = &sums[n / LINES % 2];
        multiply_group(t, bits, b, to, &w);
        w = (waiting){t, to, n, 0, (int)(2 * t->rows)};
    }
    TILE_RELEASE();
    round_some(&w, bits, w.end);
}

TILES static void tiles8(const fixed_tiles *t) {
    multiply_all(t, RO_FIXED_8);
}

TILES static void tiles16(const fixed_tiles *t) {
    multiply_all(t, RO_FIXED_16);
}

TILES static void tiles24(const fixed_tiles *t) {
    multiply_all(t, RO_FIXED_24);
}

const fixed_engine *RO_NAME(ro_fixed_tiles)(int bits) {
    static const fixed_engine of8 = {"AMX-INT8",        LINES,  LINES,  2 * PLANE + COUNT,
                                     2 * PLANE + COUNT, pack_a, pack_b, tiles8};
    static const fixed_engine of16 = {"AMX-INT8", LINES,  LINES,  2 * PLANE,
                                      2 * PLANE,  pack_a, pack_b, tiles16};
    static const fixed_engine of24 = {"AMX-INT8", LINES,  LINES,  3 * PLANE,
                                      3 * PLANE,  pack_a, pack_b, tiles24};
    if (!have_tiles())
        return NULL;
    return bits == RO_FIXED_8 ? &of8 : bits == RO_FIXED_16 ? &of16 : &of24;
}

#else

const fixed_engine *RO_NAME(ro_fixed_tiles)(int bits) {
    (void)bits;
    return NULL;
}

#endif
