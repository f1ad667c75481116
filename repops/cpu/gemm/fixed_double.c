/* Exact products in binary64, for every machine: an integer of a chunk has at most 23 bits and a
 * sign, so that the sum of HALF products is below 2^53, and no order or contraction can change it.
 */
#include "repops/cpu/gemm/fixed.h"
#include "repops/src/fixed.h"

enum {
    ROWS = 4,
    COLS = 8,
    HALF = RO_DOT_CHUNK / 2,
};

static int exponent_of(const fixed_lines *l, int64_t line) {
    const float *x = l->x + line * l->line;
    uint32_t most = 0;
    for (int64_t k = 0; k < l->steps; k++) {
        const uint32_t size = ro_to_bits(ro_abs(x[k * l->step]));
        most = size > most ? size : most;
    }
    return ro_fixed_exponent(most);
}

/* out is [steps, group]; a line that is not finite has zeros, and NaN for its power. */
static void pack(const fixed_lines *l, int group, int bits, double *out, double *power) {
    memset(out, 0, (size_t)(l->steps * group) * sizeof *out);
    for (int64_t i = 0; i < group; i++) {
        const int exponent = i < l->lines ? exponent_of(l, i) : 0;
        const int finite = exponent != RO_FIXED_NONE;
        power[i] = finite ? ro_fixed_power(exponent - (bits - 1)) : (double)RO_F32_NAN;
        for (int64_t k = 0; i < l->lines && finite && k < l->steps; k++)
            out[k * group + i] =
                (double)ro_fixed_integer(l->x[i * l->line + k * l->step], bits, exponent);
    }
}

static void pack_rows(const fixed_lines *l, int bits, void *out, double *power) {
    pack(l, ROWS, bits, out, power);
}

static void pack_cols(const fixed_lines *l, int bits, void *out, double *power) {
    pack(l, COLS, bits, out, power);
}

static void sum_half(const double *a, const double *b, int64_t steps, double sum[ROWS][COLS]) {
    for (int64_t k = 0; k < steps; k++)
        RO_UNROLL
    for (int i = 0; i < ROWS; i++)
        RO_UNROLL
    for (int j = 0; j < COLS; j++)
        sum[i][j] += a[k * ROWS + i] * b[k * COLS + j];
}

static void tile_double(const fixed_tiles *t, const double *b, int64_t n) {
    double sum[2][ROWS][COLS] = {0};
    const int64_t first = min_i64(HALF, t->steps);
    sum_half(t->a, b, first, sum[0]);
    sum_half((const double *)t->a + first * ROWS, b + first * COLS, t->steps - first, sum[1]);
    for (int64_t i = 0; i < t->rows; i++) {
        float *c = t->c + i * t->c_row + n;
        for (int64_t j = 0; j < min_i64(COLS, t->cols - n); j++)
            c[j] += ro_fixed_value((int64_t)sum[0][i][j] + (int64_t)sum[1][i][j],
                                   t->a_power[i] * t->b_power[n + j]);
    }
}

static void tiles_double(const fixed_tiles *t) {
    const double *b = t->b;
    for (int64_t n = 0; n < t->cols; n += COLS, b += RO_DOT_CHUNK * COLS)
        tile_double(t, b, n);
}

const fixed_engine *RO_NAME(ro_fixed_double)(void) {
    static const fixed_engine in_double = {ROWS,
                                           COLS,
                                           ROWS * RO_DOT_CHUNK * sizeof(double),
                                           COLS * RO_DOT_CHUNK * sizeof(double),
                                           pack_rows,
                                           pack_cols,
                                           tiles_double};
    return &in_double;
}
