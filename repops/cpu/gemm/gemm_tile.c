/* A tile of rows x nv vectors of accumulators: one body, and an instance for every size. */
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
    vf_store_n(out, vf_canon(x), cols);
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

/* As vf_store_n. AVX-512 uses the masks that tile_finish made once for all rows. */
RO_INLINE void store_cols(float *p, vf x, int64_t cols, vf_mask mask) {
#if defined(RO_ISA_avx512)
    (void)cols;
    _mm512_mask_storeu_ps(p, mask, x);
#else
    (void)mask;
    vf_store_n(p, x, cols);
#endif
}

/* Where results go. This is a copy because the compiler reads the tile's own fields again after
 * each store of a vector, which may alias them. */
typedef struct {
    float *c, *out;
    int64_t c_row, out_row, cols;
} place;

/* Runs `what` for each accumulator. `to` is the place. */
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

/* Multiplies only if alpha is not 1: the products take the slots of as many fmas, which a tile of
 * few steps would miss. */
RO_INLINE void tile_result(const int rows, const int nv, const int whole, const float by,
                           const place to, const vf_mask mask[NV_MOST], vf acc[MR_MOST][NV_MOST]) {
    const vf alpha = vf_set1(by);
    if (by != 1)
        EACH_VECTOR(acc[i][v] = vf_mul(acc[i][v], alpha))
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
        tile_result(rows, nv, whole, t->alpha, to, mask, acc);
    } else if (mode == TILE_PACKED && t->flags == TILE_LAST && t->beta == 0) {
        EACH_VECTOR(acc[i][v] = vf_add(vf_load_n(c, cols), acc[i][v]))
        tile_result(rows, nv, whole, t->alpha, to, mask, acc);
    } else {
        EACH_VECTOR(rest[i * nv + v] = acc[i][v])
        finish(rows, nv, t, rest);
    }
}

/* `most`, `nv` and `mode` are literals in every use, so that the accumulators become registers. */
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

/* The last columns, at most one vector of them. */
static __attribute__((noinline)) void packed_vector(int rows, const tile *t) {
    tile_rows(rows, MR, 1, TILE_PACKED, t);
}

void RO_NAME(ro_tile_packed)(int rows, const tile *t) {
    if (t->cols <= VW && !t->start)
        packed_vector(rows, t);
    else
        tile_rows(rows, MR, NV, TILE_PACKED, t);
}

/* Each kind of tile is a function of its own. Inlined beside others, its loop would lose registers
 * to their values. */
#define TILES(name, most, nv, mode)                                                                \
    static __attribute__((noinline)) void name(int rows, const tile *t) {                          \
        tile_rows(rows, most, nv, mode, t);                                                        \
    }
#if defined(RO_ISA_avx512)
static __attribute__((noinline)) void four_rows(const tile *t) {
    tile_body(4, 4, 6, TILE_PLACE, t);
}
TILES(three_vectors, 8, 3, TILE_PLACE)
TILES(four_quiet, WIDE_ROWS - 1, 4, TILE_QUIET)
TILES(two_quiet, MR, NV, TILE_QUIET)
#elif defined(RO_ISA_avx2)
TILES(twelve_vectors, WIDEST_ROWS, 12, TILE_WHOLE)
TILES(eight_vectors, WIDEST_ROWS, 8, TILE_WHOLE)
TILES(six_vectors, 2, 6, TILE_WHOLE)
TILES(four_vectors, WIDE_ROWS, 4, TILE_WHOLE)
TILES(four_quiet, WIDE_ROWS, 4, TILE_QUIET)
TILES(three_vectors, 4, 3, TILE_WHOLE)
TILES(two_vectors, MR, NV, TILE_WHOLE)
TILES(two_quiet, MR, NV, TILE_QUIET)
TILES(two_in_part, MR, NV, TILE_PLACE)
TILES(one_vector, MR_MOST, 1, TILE_PLACE)
#endif

/* Runs a tile of the full width that place_cols gives for these rows. */
static __attribute__((noinline)) void next_tile(int rows, const tile *t) {
    switch (rows) {
#if defined(RO_ISA_avx512)
    case 1: tile_body(1, MR, 8, TILE_NEXT, t); break;
    case 2: tile_body(2, MR, 8, TILE_NEXT, t); break;
    case 3: tile_body(3, MR, 8, TILE_NEXT, t); break;
    case 4: tile_body(4, MR, 6, TILE_NEXT, t); break;
    case 5: tile_body(5, MR, 4, TILE_NEXT, t); break;
    case 6: tile_body(6, MR, 4, TILE_NEXT, t); break;
    case 7: tile_body(7, MR, 4, TILE_NEXT, t); break;
    case 8: tile_body(8, MR, 3, TILE_NEXT, t); break;
#elif defined(RO_ISA_avx2)
    case 1: tile_body(1, MR, 12, TILE_NEXT, t); break;
    case 2: tile_body(2, MR, 6, TILE_NEXT, t); break;
    case 3: tile_body(3, MR, 4, TILE_NEXT, t); break;
    case 4: tile_body(4, MR, 3, TILE_NEXT, t); break;
#endif
    default: tile_rows(rows, MR, NV, TILE_NEXT, t); break;
    }
}

/* Tiles of few rows are wider, which keeps the multipliers busy. AVX-512 needs no instances for
 * whole vectors here, as its masks cost nothing. */
void RO_NAME(ro_tile_place)(int rows, const tile *t) {
    if (t->next && rows <= MR && t->cols == place_cols(rows, NV_MOST * VW)) {
        next_tile(rows, t);
        return;
    }
#if defined(RO_ISA_avx512) || defined(RO_ISA_avx2)
    const int quiet = t->a_step == 1 && !t->ahead && t->k < FAR_K;
#endif
#if defined(RO_ISA_avx512)
    if (quiet && t->cols == NR)
        two_quiet(rows, t);
    else if (quiet && t->cols == 4 * VW && rows < WIDE_ROWS)
        four_quiet(rows, t);
    else if (t->cols > 4 * VW && rows == 4)
        four_rows(t);
    else if (t->cols > 4 * VW)
        tile_rows(rows, WIDEST_ROWS, 8, TILE_PLACE, t);
    else if (t->cols > 3 * VW)
        tile_rows(rows, WIDE_ROWS, 4, TILE_PLACE, t);
    else if (t->cols > NR)
        three_vectors(rows, t);
    else if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_PLACE, t);
    else if (t->cols > VW / 2 || rows <= WIDE_ROWS)
        tile_rows(rows, MR_MOST, 1, TILE_PLACE, t);
    else
        RO_NAME(ro_tile_half)(rows, t);
#elif defined(RO_ISA_avx2)
    if (t->cols == NR)
        (quiet ? two_quiet : two_vectors)(rows, t);
    else if (t->cols == 4 * VW)
        (quiet ? four_quiet : four_vectors)(rows, t);
    else if (t->cols == 12 * VW)
        twelve_vectors(rows, t);
    else if (t->cols == 8 * VW)
        eight_vectors(rows, t);
    else if (t->cols == 6 * VW)
        six_vectors(rows, t);
    else if (t->cols == 3 * VW)
        three_vectors(rows, t);
    else if (t->cols > VW)
        two_in_part(rows, t);
    else
        one_vector(rows, t);
#else
    if (t->cols == NR)
        tile_rows(rows, MR, NV, TILE_WHOLE, t);
    else
        tile_rows(rows, MR, NV, TILE_PLACE, t);
#endif
}

void RO_NAME(ro_tile_runs)(int rows, const tile *t) {
#if defined(RO_ISA_avx512)
    if (t->cols <= VW / 2 && rows > WIDE_ROWS) {
        RO_NAME(ro_tile_half)(rows, t);
        return;
    }
#endif
    if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_RUNS, t);
    else
        tile_rows(rows, MR, 1, TILE_RUNS, t);
}

void RO_NAME(ro_tile_lanes)(int rows, const tile *t) {
    if (t->cols > VW)
        tile_rows(rows, MR, NV, TILE_LANES, t);
    else
        tile_rows(rows, MR, 1, TILE_LANES, t);
}
