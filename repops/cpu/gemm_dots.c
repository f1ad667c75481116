/* Products of few rows whose other operand is stored along k: each lane of a vector is one
 * element's dot product, and blocks of eight rows are transposed in registers on their way to it.
 * Reads every element of b once and packs nothing. */
#include "repops/cpu/gemm_dots.h"

#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)

enum { LANES = 8, MOST_GROUPS = 4, AHEAD = 64 /* steps of k */ };

typedef __m256 v8;

/* Columns r[q] of the four rows t of each half. A shuffle and two blends do for two shuffles: there
 * are more units for blends. */
RO_INLINE void transpose_halves(const v8 t[4], v8 r[4]) {
    const v8 a = _mm256_unpacklo_ps(t[0], t[1]), b = _mm256_unpackhi_ps(t[0], t[1]);
    const v8 c = _mm256_unpacklo_ps(t[2], t[3]), d = _mm256_unpackhi_ps(t[2], t[3]);
    const v8 e = _mm256_shuffle_ps(a, c, 0x4e), f = _mm256_shuffle_ps(b, d, 0x4e);
    r[0] = _mm256_blend_ps(a, e, 0xcc);
    r[1] = _mm256_blend_ps(c, e, 0x33);
    r[2] = _mm256_blend_ps(b, f, 0xcc);
    r[3] = _mm256_blend_ps(d, f, 0x33);
}

/* r[q] is element q of eight rows, `step` apart. */
RO_INLINE void load_transposed(const float *b, int64_t step, v8 r[LANES]) {
    RO_UNROLL
    for (int h = 0; h < 2; h++) {
        v8 t[4];
        RO_UNROLL
        for (int l = 0; l < 4; l++) {
            const float *row = b + l * step + 4 * h;
            t[l] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row)),
                                        _mm_loadu_ps(row + 4 * step), 1);
        }
        transpose_halves(t, r + 4 * h);
    }
}

/* Step p of eight rows. */
RO_INLINE v8 load_step(const float *b, int64_t step) {
    return _mm256_setr_ps(b[0], b[step], b[2 * step], b[3 * step], b[4 * step], b[5 * step],
                          b[6 * step], b[7 * step]);
}

/* Elements [from, lanes) of row i, from column j on. */
static void store_lanes(const gemm *g, int64_t c_col, int64_t i, int64_t j, int from, v8 tot) {
    float x[LANES];
    _mm256_storeu_ps(x, tot);
    for (int l = from; l < LANES; l++) {
        float *c = g->c + i * g->c_row + (j + l) * c_col;
        const float t = x[l] * g->alpha;
        *c = ro_canon(g->beta == 0 ? t : ro_fma(g->beta, *c, t));
    }
}

/* One chunk of `rows` x (8 * groups) elements. */
RO_INLINE void dots_chunk(const int rows, const int groups, const gemm *g, const float *b,
                          int64_t from, int64_t to, v8 acc[DOTS_ROWS][MOST_GROUPS]) {
    const int64_t step = g->b_col, a_col = g->a_col;
    int64_t p = from;
    for (; p + LANES <= to; p += LANES) {
        const float *a = g->a + p * a_col;
        RO_UNROLL
        for (int h = 0; h < groups; h++) {
            const float *at = b + h * LANES * step + p;
            v8 r[LANES];
            load_transposed(at, step, r);
            if (p % 16 == 0) {
                RO_UNROLL
                for (int l = 0; l < LANES; l++)
                    __builtin_prefetch(at + l * step + AHEAD);
            }
            RO_UNROLL
            for (int q = 0; q < LANES; q++) {
                RO_UNROLL
                for (int i = 0; i < rows; i++)
                    acc[i][h] = _mm256_fmadd_ps(_mm256_set1_ps(a[i * g->a_row + q * a_col]), r[q],
                                                acc[i][h]);
            }
        }
    }
    for (; p < to; p++)
        for (int h = 0; h < groups; h++)
            for (int i = 0; i < rows; i++)
                acc[i][h] = _mm256_fmadd_ps(_mm256_set1_ps(g->a[i * g->a_row + p * a_col]),
                                            load_step(b + h * LANES * step + p, step), acc[i][h]);
}

/* Columns [j, j + 8 * groups); those before j + skip are done. */
RO_INLINE void dots_columns(const int rows, const int groups, const gemm *g, int64_t c_col,
                            int64_t j, int skip) {
    v8 tot[DOTS_ROWS][MOST_GROUPS], acc[DOTS_ROWS][MOST_GROUPS];
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < groups; h++)
            tot[i][h] = _mm256_setzero_ps();
    for (int64_t from = 0; from < g->k; from += g->chunk) {
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            RO_UNROLL
            for (int h = 0; h < groups; h++)
                acc[i][h] = _mm256_setzero_ps();
        }
        dots_chunk(rows, groups, g, g->b + j * g->b_col, from, min_i64(from + g->chunk, g->k), acc);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            RO_UNROLL
            for (int h = 0; h < groups; h++)
                tot[i][h] = _mm256_add_ps(tot[i][h], acc[i][h]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < groups; h++)
            store_lanes(g, c_col, i, j + h * LANES, h ? 0 : skip, tot[i][h]);
}

/* The last columns overlap with those before: what is done already is not stored again. */
RO_INLINE void dots_rows(const int rows, const int groups, const gemm *g, int64_t c_col) {
    const int64_t width = LANES * groups;
    int64_t j = 0;
    for (; j + width <= g->n; j += width)
        dots_columns(rows, groups, g, c_col, j, 0);
    for (; j < g->n; j += LANES) {
        const int64_t at = min_i64(j, g->n - LANES);
        dots_columns(rows, 1, g, c_col, at, (int)(j - at));
    }
}

static void dots(const gemm *g, int64_t c_col) {
    switch (g->m) {
    case 1: dots_rows(1, 4, g, c_col); break;
    case 2: dots_rows(2, 4, g, c_col); break;
    case 3: dots_rows(3, 2, g, c_col); break;
    case 4: dots_rows(4, 2, g, c_col); break;
#if defined(RO_ISA_avx512)
    case 5: dots_rows(5, 2, g, c_col); break;
    case 6: dots_rows(6, 2, g, c_col); break;
    case 7: dots_rows(7, 2, g, c_col); break;
    case 8: dots_rows(8, 2, g, c_col); break;
#endif
    default: break;
    }
}

static int usable(const gemm *g) {
    return g->m <= DOTS_ROWS && g->n >= LANES && g->b_row == 1 && g->b_col != 1;
}

/* The same product transposed; the columns of c are then c_row apart. */
static gemm transposed(const gemm *g) {
    gemm t = *g;
    t.m = g->n, t.n = g->m;
    t.a = g->b, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_row = g->a_col, t.b_col = g->a_row;
    return t;
}

int RO_NAME(ro_gemm_dots)(const gemm *g) {
    if (g->mask != RO_MASK_NONE || g->c_chunk || g->k == 0)
        return 0;
    if (usable(g)) {
        dots(g, 1);
        return 1;
    }
    gemm t = transposed(g);
    if (!usable(&t))
        return 0;
    t.c_row = 1;
    dots(&t, g->c_row);
    return 1;
}

#else

int RO_NAME(ro_gemm_dots)(const gemm *g) {
    (void)g;
    return 0;
}

#endif
