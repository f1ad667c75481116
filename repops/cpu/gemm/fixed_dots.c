/* Exact products by dot products of bytes (sdot, of ARMv8.2's DotProd), which adds four products to
 * each lane of 32 bits.
 *
 * An integer is two or three signed digits of a byte, so the product of two integers is four or
 * nine products of bytes. Products of digits i of a and j of b with the same i + j make a level,
 * whose sum stays in registers for a tile: in a chunk, at most 3 * 256 products of at most 2^14.
 * With 8 bits, a group of lines has one digit, or two if any of its lines has two. */
#include "repops/cpu/gemm/fixed.h"

/* The makefile compiles this file with the option for sdot; only the last function runs without
 * it. */
#if defined(RO_ISA_neon) && defined(__ARM_FEATURE_DOTPROD) && defined(__linux__)

#include "repops/cpu/gemm/fixed_scales.h"

#include <sys/auxv.h>

enum {
    ROWS = 8,
    VECTORS = 3, /* vectors of four columns each */
    COLS = 4 * VECTORS,
    STEPS = 4,                     /* k steps in a lane */
    A_PLANE = ROWS * RO_DOT_CHUNK, /* bytes of one digit of a group */
    B_PLANE = COLS * RO_DOT_CHUNK,
    DIGITS_MOST = RO_FIXED_24 / 8,
    LEVELS_MOST = 2 * DIGITS_MOST - 1,
    COUNT = 64,        /* with 8 bits: bytes after a group's digits, for their number */
    HAS_DOTS = 1 << 20 /* HWCAP_ASIMDDP */
};

/* ---- digits: each plane has [step / 4, line, step % 4] ---- */

/* Stores an integer's digits, one in each plane. Adding 128 to each digit makes the bytes unsigned;
 * flipping their highest bits subtracts it again. */
RO_INLINE void store_digits(int32_t integer, int bits, int64_t plane, int8_t *to) {
    const uint32_t bias = bits == RO_FIXED_24 ? 0x808080 : 0x8080;
    const uint32_t w = ((uint32_t)integer + bias) ^ bias;
    for (int d = 0; d < bits / 8; d++)
        to[d * plane] = (int8_t)(uint8_t)(w >> (8 * d));
}

static void pack_digits(const fixed_lines *l, int64_t group, int bits, int8_t *out, double *power) {
    const int64_t plane = group * RO_DOT_CHUNK;
    double scale[FIXED_GROUP_MOST];
    const int of_product = bits;
    bits = group_scales(l, (int)group, bits, scale, power);
    if (of_product == RO_FIXED_8)
        out[2 * plane] = (int8_t)(bits / 8);
    for (int d = 0; d < bits / 8; d++)
        memset(out + d * plane, 0, (size_t)(ceil_div(l->steps, STEPS) * STEPS * group));
    for (int64_t i = 0; i < l->lines; i++) {
        const float *x = l->x + i * l->line;
        if (power[i] != power[i])
            continue;
        for (int64_t k = 0; k < l->steps; k++)
            store_digits((int32_t)integer_of(x[k * l->step], scale[i]), bits, plane,
                         out + (k / STEPS * group + i) * STEPS + k % STEPS);
    }
}

static void pack_a(const fixed_lines *l, int bits, void *out, double *power) {
    pack_digits(l, ROWS, bits, out, power);
}

static void pack_b(const fixed_lines *l, int bits, void *out, double *power) {
    pack_digits(l, COLS, bits, out, power);
}

/* ---- tiles ---- */

typedef int32_t sums[ROWS][COLS];

/* Adds the products of four rows with VECTORS vectors of columns, over four steps. */
RO_INLINE void add_rows(int32x4_t sum[4][VECTORS], int8x16_t rows,
                        const int8x16_t columns[VECTORS]) {
    RO_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        sum[0][v] = vdotq_laneq_s32(sum[0][v], columns[v], rows, 0);
        sum[1][v] = vdotq_laneq_s32(sum[1][v], columns[v], rows, 1);
        sum[2][v] = vdotq_laneq_s32(sum[2][v], columns[v], rows, 2);
        sum[3][v] = vdotq_laneq_s32(sum[3][v], columns[v], rows, 3);
    }
}

/* Adds the products of one digit of a with one of b. */
RO_INLINE void add_pair(int32x4_t sum[ROWS][VECTORS], const int8_t *a, const int8_t *b,
                        int64_t steps) {
    for (int64_t k = 0; k < steps; k += STEPS, a += ROWS * STEPS, b += COLS * STEPS) {
        int8x16_t columns[VECTORS];
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            columns[v] = vld1q_s8(b + 16 * v);
        add_rows(sum, vld1q_s8(a), columns);
        add_rows(sum + 4, vld1q_s8(a + 16), columns);
    }
}

/* The number of digits of a's group and of b's. */
typedef struct {
    int a, b;
} digits;

static digits digits_of(const fixed_tiles *t, const int8_t *b) {
    if (t->bits != RO_FIXED_8)
        return (digits){t->bits / 8, t->bits / 8};
    return (digits){((const int8_t *)t->a)[2 * A_PLANE], b[2 * B_PLANE]};
}

static void add_level(const fixed_tiles *t, const int8_t *b, digits d, int level, sums out) {
    int32x4_t sum[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < ROWS; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        sum[i][v] = vdupq_n_s32(0);
    for (int i = level < d.b ? 0 : level - d.b + 1; i <= level && i < d.a; i++)
        add_pair(sum, (const int8_t *)t->a + i * A_PLANE, b + (level - i) * B_PLANE, t->steps);
    RO_UNROLL
    for (int i = 0; i < ROWS; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        vst1q_s32(&out[i][4 * v], sum[i][v]);
}

/* Adds up the levels of a chunk. Only the last addition may round, for sums from 2^53 on. */
RO_INLINE double whole(const sums *level, int row, int col) {
    double x[LEVELS_MOST];
    for (int i = 0; i < LEVELS_MOST; i++)
        x[i] = level[i][row][col];
    return (x[4] * 256 + x[3]) * 0x1p24 + (x[2] * 65536 + (x[1] * 256 + x[0]));
}

static float term_of_wide(const sums *level, int row, int col, double power) {
    int64_t sum = 0;
    for (int i = LEVELS_MOST - 1; i >= 0; i--)
        sum = sum * 256 + level[i][row][col];
    return ro_fixed_value(sum, power);
}

static void add_terms(const fixed_tiles *t, const sums *level, int row, int64_t n) {
    const double *power = t->b_power + n, limit = 0x1p53;
    float *c = t->c + row * t->c_row + n, term[COLS];
    int wide = 0;
    for (int j = 0; j < COLS; j++) {
        const double sum = whole(level, row, j);
        wide |= sum >= limit || sum <= -limit;
        term[j] = (float)(sum * (t->a_power[row] * power[j]));
    }
    for (int j = 0; wide && j < COLS; j++)
        term[j] = term_of_wide(level, row, j, t->a_power[row] * power[j]);
    for (int64_t j = 0; j < min_i64(COLS, t->cols - n); j++)
        c[j] = fixed_total(t, c + j) + term[j];
}

static void tiles_of_dots(const fixed_tiles *t) {
    const int64_t group = t->bits == RO_FIXED_8 ? 2 * B_PLANE + COUNT : t->bits / 8 * B_PLANE;
    const int8_t *b = t->b;
    sums level[LEVELS_MOST] = {{{0}}};
    for (int64_t n = 0; n < t->cols; n += COLS, b += group) {
        const digits d = digits_of(t, b);
        const int levels = t->bits == RO_FIXED_24 ? LEVELS_MOST : LEVELS_MOST - 2;
        for (int i = 0; i < levels; i++)
            add_level(t, b, d, i, level[i]);
        for (int i = 0; i < t->rows; i++)
            add_terms(t, level, i, n);
    }
}

const fixed_engine *RO_NAME(ro_fixed_dots)(int bits) {
    static const fixed_engine of8 = {"NEON DotProd",      ROWS,   COLS,   2 * A_PLANE + COUNT,
                                     2 * B_PLANE + COUNT, pack_a, pack_b, tiles_of_dots};
    static const fixed_engine of16 = {"NEON DotProd", ROWS,   COLS,   2 * A_PLANE,
                                      2 * B_PLANE,    pack_a, pack_b, tiles_of_dots};
    static const fixed_engine of24 = {"NEON DotProd", ROWS,   COLS,   3 * A_PLANE,
                                      3 * B_PLANE,    pack_a, pack_b, tiles_of_dots};
    if (!(getauxval(AT_HWCAP) & HAS_DOTS))
        return NULL;
    return bits == RO_FIXED_8 ? &of8 : bits == RO_FIXED_16 ? &of16 : &of24;
}

#else

const fixed_engine *RO_NAME(ro_fixed_dots)(int bits) {
    (void)bits;
    return NULL;
}

#endif
