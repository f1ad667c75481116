/* Exact products in binary64, for every machine. An integer has at most 23 bits and a sign, so the
 * sum of HALF products is below 2^53, and no order or contraction can change it. */
#include "repops/cpu/gemm/fixed_scales.h"

#if defined(RO_ISA_avx512)
enum { ROWS = 8, VECTORS = 3, LANES = 8 };
typedef __m512d doubles;
RO_INLINE doubles doubles_load(const double *p) {
    return _mm512_loadu_pd(p);
}
RO_INLINE doubles doubles_set1(double x) {
    return _mm512_set1_pd(x);
}
RO_INLINE doubles doubles_fma(doubles a, doubles b, doubles c) {
    return _mm512_fmadd_pd(a, b, c);
}
RO_INLINE void doubles_store(double *p, doubles x) {
    _mm512_storeu_pd(p, x);
}
#elif defined(RO_ISA_avx2)
enum { ROWS = 4, VECTORS = 3, LANES = 4 };
typedef __m256d doubles;
RO_INLINE doubles doubles_load(const double *p) {
    return _mm256_loadu_pd(p);
}
RO_INLINE doubles doubles_set1(double x) {
    return _mm256_set1_pd(x);
}
RO_INLINE doubles doubles_fma(doubles a, doubles b, doubles c) {
    return _mm256_fmadd_pd(a, b, c);
}
RO_INLINE void doubles_store(double *p, doubles x) {
    _mm256_storeu_pd(p, x);
}
#elif defined(RO_ISA_neon)
enum { ROWS = 4, VECTORS = 4, LANES = 2 };
typedef float64x2_t doubles;
RO_INLINE doubles doubles_load(const double *p) {
    return vld1q_f64(p);
}
RO_INLINE doubles doubles_set1(double x) {
    return vdupq_n_f64(x);
}
RO_INLINE doubles doubles_fma(doubles a, doubles b, doubles c) {
    return vfmaq_f64(c, a, b);
}
RO_INLINE void doubles_store(double *p, doubles x) {
    vst1q_f64(p, x);
}
#else
enum { ROWS = 4, VECTORS = 4, LANES = 1 };
typedef double doubles;
RO_INLINE doubles doubles_load(const double *p) {
    return *p;
}
RO_INLINE doubles doubles_set1(double x) {
    return x;
}
RO_INLINE doubles doubles_fma(doubles a, doubles b, doubles c) {
    return a * b + c;
}
RO_INLINE void doubles_store(double *p, doubles x) {
    *p = x;
}
#endif

enum {
    COLS = VECTORS * LANES,
    HALF = RO_DOT_CHUNK / 2,
};

static void integers(const fixed_lines *l, int group, const double *scale, double *out) {
    for (int64_t i = 0; l->line != 1 && i < l->lines; i++)
        for (int64_t k = 0; k < l->steps; k++)
            out[k * group + i] = integer_of(l->x[i * l->line + k * l->step], scale[i]);
    for (int64_t k = 0; l->line == 1 && k < l->steps; k++)
        for (int64_t i = 0; i < l->lines; i++)
            out[k * group + i] = integer_of(l->x[i + k * l->step], scale[i]);
}

static void clear_line(double *out, int64_t steps, int group) {
    for (int64_t k = 0; k < steps; k++)
        out[k * group] = 0;
}

/* Packs lines into out, [steps, group]. A line that is not finite gets zeros, and NaN as its
 * power. */
static void pack(const fixed_lines *l, int group, int bits, double *out, double *power) {
    double scale[FIXED_GROUP_MOST];
    group_scales(l, group, bits, scale, power);
    integers(l, group, scale, out);
    for (int i = 0; i < group; i++)
        if (i >= l->lines || power[i] != power[i])
            clear_line(out + i, l->steps, group);
}

static void pack_rows(const fixed_lines *l, int bits, void *out, double *power) {
    pack(l, ROWS, bits, out, power);
}

static void pack_cols(const fixed_lines *l, int bits, void *out, double *power) {
    pack(l, COLS, bits, out, power);
}

static void sum_half(const double *a, const double *b, int64_t steps, double sum[ROWS][COLS]) {
    doubles acc[ROWS][VECTORS];
    RO_UNROLL
    for (int i = 0; i < ROWS; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        acc[i][v] = doubles_set1(0);
    for (int64_t k = 0; k < steps; k++, a += ROWS, b += COLS)
        RO_UNROLL
    for (int i = 0; i < ROWS; i++) {
        const doubles row = doubles_set1(a[i]);
        RO_UNROLL
        for (int v = 0; v < VECTORS; v++)
            acc[i][v] = doubles_fma(row, doubles_load(b + v * LANES), acc[i][v]);
    }
    RO_UNROLL
    for (int i = 0; i < ROWS; i++)
        RO_UNROLL
    for (int v = 0; v < VECTORS; v++)
        doubles_store(&sum[i][v * LANES], acc[i][v]);
}

/* Computes the terms of a row of the tile from the sums of both halves of the chunk. A few sums
 * have 54 bits and must be added without rounding twice. */
static void terms_of(const double *x, const double *y, double row, const double *col, float *out) {
    const double limit = 0x1p53;
    int wide = 0;
    for (int j = 0; j < COLS; j++) {
        const double sum = x[j] + y[j];
        wide |= sum >= limit || sum <= -limit;
        out[j] = (float)(sum * (row * col[j]));
    }
    for (int j = 0; wide && j < COLS; j++)
        out[j] = ro_fixed_value((int64_t)x[j] + (int64_t)y[j], row * col[j]);
}

static void tile_double(const fixed_tiles *t, const double *b, int64_t n) {
    double sum[2][ROWS][COLS];
    float term[COLS];
    const int64_t first = min_i64(HALF, t->steps);
    sum_half(t->a, b, first, sum[0]);
    sum_half((const double *)t->a + first * ROWS, b + first * COLS, t->steps - first, sum[1]);
    for (int64_t i = 0; i < t->rows; i++) {
        float *c = t->c + i * t->c_row + n;
        terms_of(sum[0][i], sum[1][i], t->a_power[i], t->b_power + n, term);
        for (int64_t j = 0; j < min_i64(COLS, t->cols - n); j++)
            c[j] = fixed_total(t, c + j) + term[j];
    }
}

static void tiles_double(const fixed_tiles *t) {
    const double *b = t->b;
    for (int64_t n = 0; n < t->cols; n += COLS, b += RO_DOT_CHUNK * COLS)
        tile_double(t, b, n);
}

const fixed_engine *RO_NAME(ro_fixed_double)(void) {
    static const fixed_engine in_double = {"binary64",
                                           ROWS,
                                           COLS,
                                           ROWS * RO_DOT_CHUNK * sizeof(double),
                                           COLS * RO_DOT_CHUNK * sizeof(double),
                                           pack_rows,
                                           pack_cols,
                                           tiles_double};
    return &in_double;
}
