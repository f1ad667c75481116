/* A tile of rows x nv vectors of accumulators: one body, and an instance for every size. Each
 * gemm_tile_*.c compiles one kind of tile, in parallel, as all kinds together take a minute and a
 * half. */
#ifndef REPOPS_CPU_GEMM_TILE_BODY_H
#define REPOPS_CPU_GEMM_TILE_BODY_H

#include "repops/cpu/elements/wide.h"
#include "repops/cpu/gemm/gemm_steps.h"

RO_INLINE void tile_start(const int rows, const int nv, const tile_mode mode, const tile *t,
                          vf acc[MR_MOST][NV_MOST]) {
    const float *start = mode == TILE_PACKED ? t->start : NULL;
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        RO_UNROLL
        for (int v = 0; v < nv; v++)
            acc[i][v] = start ? vf_load(start + (i * nv + v) * VW) : vf_set1(0.0f);
    }
}

RO_INLINE void finish_vector(const tile *t, int64_t row, int64_t col, vf x) {
    float *c = t->c + row * t->c_row + col, *out = t->out + row * t->out_row + col;
    const int64_t cols = t->cols - col;
    if (!(t->flags & TILE_RAW))
        x = vf_add(t->flags & TILE_FIRST ? vf_set1(0.0f) : vf_load_n(c, cols), x);
    if (!(t->flags & TILE_LAST)) {
        vf_store_n(c, x, cols);
        return;
    }
    x = vf_mul(x, vf_set1(t->alpha));
    if (t->beta != 0)
        x = vf_fma(vf_set1(t->beta), vf_load_n(out, cols), x);
    if (t->bias)
        x = vf_add(x, vf_load_n(t->bias + col, cols));
    vf_store_n(out, t->relu ? vf_relu(x) : vf_canon(x), cols);
}

/* Finishes a tile for any combination of flags, from accumulators in memory. */
static __attribute__((noinline)) void finish(int rows, int nv, const tile *t, const vf *acc) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < nv && v * VW < t->cols; v++)
            finish_vector(t, i, v * VW, acc[i * nv + v]);
}

enum { ONLY = TILE_FIRST | TILE_LAST };

#if defined(RO_ISA_avx512)
enum { MASKS_COST = 0 };
#else
enum { MASKS_COST = 1 };
#endif

/* Does what vf_store_n does. AVX-512 uses the masks that tile_finish made once for all rows. */
RO_INLINE void store_cols(float *p, vf x, int64_t cols, vf_mask mask) {
#if defined(RO_ISA_avx512)
    (void)cols;
    _mm512_mask_storeu_ps(p, mask, x);
#else
    (void)mask;
    vf_store_n(p, x, cols);
#endif
}

/* Where results are stored. This is a copy of the tile's fields, which the compiler would read
 * again after each store of a vector, as that may alias them. */
typedef struct {
    float *c, *out;
    int64_t c_row, out_row, cols;
} place;

/* Runs `what` for each accumulator and its address. */
#define EACH_VECTOR(what)                                                                          \
    RO_UNROLL                                                                                      \
    for (int i = 0; i < rows; i++) {                                                               \
        float *const c_row = to.c + i * to.c_row, *const out_row = to.out + i * to.out_row;        \
        RO_UNROLL                                                                                  \
        for (int v = 0; v < nv; v++) {                                                             \
            float *const c = c_row + v * VW, *const out = out_row + v * VW;                        \
            const int64_t cols = whole ? VW : to.cols - v * VW;                                    \
            (void)c, (void)out, (void)cols;                                                        \
            what;                                                                                  \
        }                                                                                          \
    }

/* Computes the result. It multiplies only if alpha is not 1: a tile of few steps would miss the
 * issue slots of these products. Making a NaN canonical at the end suffices, as a NaN stays one
 * until then. */
RO_INLINE void tile_result(const int rows, const int nv, const int whole, const tile *t,
                           const place to, const vf_mask mask[NV_MOST], vf acc[MR_MOST][NV_MOST]) {
    const vf alpha = vf_set1(t->alpha);
    const float *bias = t->bias;
    const int relu = t->relu;
    if (t->alpha != 1)
        EACH_VECTOR(acc[i][v] = vf_mul(acc[i][v], alpha))
    if (bias)
        EACH_VECTOR(acc[i][v] = vf_add(acc[i][v], whole ? vf_load(bias + v * VW)
                                                        : vf_load_mask(bias + v * VW, mask[v])))
    if (relu)
        EACH_VECTOR(store_cols(out, vf_relu(acc[i][v]), cols, mask[v]))
    else
        EACH_VECTOR(store_cols(out, vf_canon(acc[i][v]), cols, mask[v]))
}

/* Finishes the most frequent combinations of flags from registers. `whole`: all columns exist, so
 * no vector needs a check. */
RO_INLINE void tile_finish(const int rows, const int nv, const tile_mode mode, const int whole,
                           const tile *t, vf acc[MR_MOST][NV_MOST]) {
    const place to = {t->c, t->out, t->c_row, t->out_row, t->cols};
    const vf zero = vf_set1(0.0f);
    vf rest[MR * NV];
    vf_mask mask[NV_MOST];
    RO_UNROLL
    for (int v = 0; v < nv; v++)
        mask[v] = vf_first(t->cols - v * VW);
    if (t->flags == 0) {
        EACH_VECTOR(store_cols(c, vf_add(vf_load_n(c, cols), acc[i][v]), cols, mask[v]))
    } else if (t->flags == TILE_RAW) {
        EACH_VECTOR(store_cols(c, acc[i][v], cols, mask[v]))
    } else if (t->flags == TILE_FIRST) {
        EACH_VECTOR(store_cols(c, vf_add(zero, acc[i][v]), cols, mask[v]))
    } else if (t->flags == ONLY && t->beta == 0) {
        EACH_VECTOR(acc[i][v] = vf_add(zero, acc[i][v]))
        tile_result(rows, nv, whole, t, to, mask, acc);
    } else if (mode == TILE_PACKED && t->flags == TILE_LAST && t->beta == 0) {
        EACH_VECTOR(acc[i][v] = vf_add(vf_load_n(c, cols), acc[i][v]))
        tile_result(rows, nv, whole, t, to, mask, acc);
    } else {
        EACH_VECTOR(rest[i * nv + v] = acc[i][v])
        finish(rows, nv, t, rest);
    }
}

/* `most`, `nv` and `mode` are literals in every call, so that the accumulators become registers. */
RO_INLINE void tile_body(const int rows, const int most, const int nv, const tile_mode mode,
                         const tile *t) {
    if (rows > most)
        return;
    vf acc[MR_MOST][NV_MOST];
    tile_start(rows, nv, mode, t, acc);
    tile_multiply(rows, nv, mode, t, acc);
    if (mode == TILE_WHOLE || mode == TILE_QUIET || mode == TILE_NEXT ||
        (MASKS_COST && t->cols == nv * VW))
        tile_finish(rows, nv, mode, 1, t, acc);
    else
        tile_finish(rows, nv, mode, 0, t, acc);
}

RO_INLINE void tile_rows(int rows, const int most, const int nv, const tile_mode mode,
                         const tile *t) {
    switch (rows) {
    case 1: tile_body(1, most, nv, mode, t); break;
    case 2: tile_body(2, most, nv, mode, t); break;
    case 3: tile_body(3, most, nv, mode, t); break;
    case 4: tile_body(4, most, nv, mode, t); break;
#if defined(RO_ISA_avx2) || defined(RO_ISA_avx512)
    case 5: tile_body(5, most, nv, mode, t); break;
    case 6: tile_body(6, most, nv, mode, t); break;
    case 7: tile_body(7, most, nv, mode, t); break;
    case 8: tile_body(8, most, nv, mode, t); break;
    case 9: tile_body(9, most, nv, mode, t); break;
    case 10: tile_body(10, most, nv, mode, t); break;
    case 11: tile_body(11, most, nv, mode, t); break;
    case 12: tile_body(12, most, nv, mode, t); break;
#endif
#if defined(RO_ISA_avx512)
    case 13: tile_body(13, most, nv, mode, t); break;
    case 14: tile_body(14, most, nv, mode, t); break;
    case 15: tile_body(15, most, nv, mode, t); break;
    case 16: tile_body(16, most, nv, mode, t); break;
#endif
    default: break;
    }
}

/* Each kind of tile is a separate function. If kinds were inlined side by side, each loop would
 * have fewer registers. */
#define TILES(name, most, nv, mode)                                                                \
    void RO_NAME(name)(int rows, const tile *t) {                                                  \
        tile_rows(rows, most, nv, mode, t);                                                        \
    }

typedef void tile_kind(int rows, const tile *t);
/* The tile has the full width that place_cols gives for these rows. */
tile_kind RO_NAME(ro_tile_next);
/* The names say how many vectors of columns a tile has. All of them are whole; a quiet tile
 * prefetches no operand. */
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
tile_kind RO_NAME(ro_tile_two_quiet), RO_NAME(ro_tile_four_quiet);
#endif
#if defined(RO_ISA_avx2) && !defined(RO_ISA_avx512)
tile_kind RO_NAME(ro_tile_twelve), RO_NAME(ro_tile_eight), RO_NAME(ro_tile_six),
    RO_NAME(ro_tile_four), RO_NAME(ro_tile_three), RO_NAME(ro_tile_two);
#endif

#endif
