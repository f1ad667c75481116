/* Products of matrices in `real`: batches of them, convolutions as implicit ones. Operands are
 * packed by functions that know where their terms lie; sums over k are in the order of a profile.
 *
 * The order (gemm_order.c): the terms, from the last to the first if `descending`, are cut into
 * pieces of `split` and each piece into `lanes` runs of neighbours, of at least FREE_RUN terms. A
 * run is summed term by term. `pairwise` = 0: the runs of a piece are added one after the other,
 * and then the pieces; 1: all of them as a balanced tree. Where runs are longer than a block of the
 * cache, blocks take their place: with one lane they continue the run before.
 *
 * In binary64 the product of two binary32 numbers is exact, and `contract` is nothing. */
#ifndef REPOPS_FREE_GEMM_H
#define REPOPS_FREE_GEMM_H

#include "repops/free/kernel.h"

/* Rows and columns of a tile; rows of a panel of a, with those that are only there to fill up
 * vectors; floats that are packed at a time are VW. */
#if defined(RO_ISA_avx512)
enum { FREE_VECTOR = 64, FREE_MR = 14, FREE_PANEL = 16 };
#elif defined(RO_ISA_avx2)
enum { FREE_VECTOR = 32, FREE_MR = 6, FREE_PANEL = 8 };
#else
enum { FREE_VECTOR = 16, FREE_MR = 6, FREE_PANEL = 8 };
#endif
enum {
    FREE_LANES = FREE_VECTOR / (int)sizeof(real),
    FREE_NR = 2 * FREE_LANES,
    FREE_TILE = FREE_MR * FREE_NR,
    FREE_WIDEST = 32, /* lanes of a line of a or b, at most */
    FREE_KC = 512,    /* most terms that are packed at a time */
    FREE_RUN = 32,
    FREE_STACK = 8, /* sums of a tile that wait for others, within a block */
};

/* ---- order ---- */

typedef enum { FREE_SET, FREE_ADD, FREE_CONTINUE } free_mode;

/* What becomes of a partial sum: it is set in a slot, added to a slot's, or goes on from a slot's
 * value; then `merges` times the last slot is added to the one before. */
typedef struct {
    int slot, merges;
    free_mode mode;
} free_step;

typedef struct {
    int64_t k, block, blocks; /* terms in all, of a block */
    int64_t run, piece;       /* terms of a run, runs of a piece */
    int64_t chain;            /* blocks that continue each other */
    int pairwise, slots;      /* slots: of the sums of blocks */
} free_order;

free_order RO_FREE_NAME(ro_free_order)(const ro_profile *profile, int64_t k);
/* Of block i; of run i of a block with `runs` of them. */
free_step RO_FREE_NAME(ro_free_block_step)(const free_order *o, int64_t i);
free_step RO_FREE_NAME(ro_free_run_step)(const free_order *o, int64_t i, int64_t runs);

/* ---- tiles ---- */

/* Sums over k of the products of `rows` rows of a (k lines of FREE_PANEL) and FREE_NR columns of b
 * (k lines of FREE_NR), into c (rows of FREE_NR). */
void RO_FREE_NAME(ro_free_tile)(int rows, int contract, int64_t k, const real *a, const real *b,
                                real *c, free_mode mode);
/* The same without the terms whose element of a is free_absent(). */
void RO_FREE_NAME(ro_free_tile_exact)(int rows, int64_t k, const real *a, const real *b, real *c,
                                      free_mode mode);

/* Adds each lane's sum of squares over the steps of packed lines, but for numbers that are not
 * finite. */
void RO_FREE_NAME(ro_free_add_squares)(const real *x, int64_t steps, int width, int64_t lanes,
                                       double *square);

/* A NaN that no packed number is. */
RO_INLINE real free_absent(void) {
    return (real)ro_from_bits(UINT32_C(0x7fc5a5a5));
}

RO_INLINE int free_is_absent(real x) {
    return x != x && ro_to_bits((float)x) == UINT32_C(0x7fc5a5a5);
}

/* ---- results ---- */

/* A tile of sums, or the first columns of one. */
typedef struct {
    const real *sum; /* rows of FREE_NR */
    int rows, cols;
    int64_t col;          /* added to `first` */
    const int64_t *first; /* of each row: its place in the output */
    const double *of_sum; /* of each row: bound of a sum's error, over the norm of the column */
    const double *norm;   /* of each column; NULL: nobody wants bounds */
    real alpha;
} free_results;

/* One row's results and their bounds. */
void RO_FREE_NAME(ro_free_finish)(const free_results *r, int row, real *y, double *bound);
/* All rows, to an emitter that ro_emit_is_direct; follows no calls. */
void RO_FREE_NAME(ro_free_emit_tile)(ro_emitter *t, const free_results *r);

/* ---- operands ---- */

/* Some rows of a, or columns of b, and some steps of k. */
typedef struct {
    int64_t product, lane, lanes, k, steps;
    int reverse; /* the last step comes first */
} free_part;

/* VW floats as they are packed. */
RO_INLINE void free_put(real *to, vf x) {
#if defined(RO_IS_f32)
    vf_store(to, x);
#elif defined(RO_ISA_avx512)
    _mm512_storeu_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    _mm512_storeu_pd(to + 8, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
#elif defined(RO_ISA_avx2)
    _mm256_storeu_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(x)));
    _mm256_storeu_pd(to + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)));
#elif defined(RO_ISA_neon)
    vst1q_f64(to, vcvt_f64_f32(vget_low_f32(x)));
    vst1q_f64(to + 2, vcvt_high_f64_f32(x));
#else
    *to = (real)x;
#endif
}

/* Lines of `width`, of which the first `lanes` are taken, the others are 0.
 * Lanes are neighbours, steps are k_step apart: */
void RO_FREE_NAME(ro_free_pack_lines)(const float *from, int64_t k_step, const free_part *part,
                                      int64_t width, real *to);
/* The steps of a lane are neighbours, from from[lane] on; NULL: zeros. */
void RO_FREE_NAME(ro_free_pack_lanes)(const float *const *from, int64_t lanes, int64_t steps,
                                      int reverse, int64_t width, real *to);

typedef struct free_gemm free_gemm;

/* Strided; products are counted by two indices. */
typedef struct {
    const float *data;
    int64_t lane_step, k_step; /* one of them is 1 */
    int64_t outer, inner;      /* from a product to the next of either index */
} free_matrix;

struct free_gemm {
    int64_t products, m, n, k;
    int64_t inner; /* product = outer index * inner + inner index */
    free_matrix a, b;
    void (*pack_a)(const free_gemm *g, const free_part *part, real *to); /* NULL: a, masked */
    void (*pack_b)(const free_gemm *g, const free_part *part, real *to); /* NULL: b */
    /* Where a's element is; NULL: absent. Only needed where terms may be. */
    const float *(*term)(const free_gemm *g, int64_t product, int64_t row, int64_t k);
    /* The first element of a row in the output. NULL: product after product, row by row. */
    int64_t (*place)(const free_gemm *g, int64_t product, int64_t row);
    float alpha;
    int absent;                    /* some terms are: packed as 0, which is right if b is finite */
    ro_mask mask;                  /* of a as a matrix: SPEC 3.1, with the row's number plus */
    int64_t mask_first, mask_step; /* mask_first + mask_step * inner index */
    const void *user;
};

ro_status RO_FREE_NAME(ro_free_multiply)(const ro_free_job *job, const free_gemm *g);

/* Steps of k that some of the rows [row, row + rows) admit: [*first, *last). */
void RO_FREE_NAME(ro_free_admitted)(const free_gemm *g, int64_t product, int64_t row, int64_t rows,
                                    int64_t *first, int64_t *last);

/* Panels share the rows evenly. */
RO_INLINE int64_t free_height(int64_t rows) {
    return ceil_div(rows, ceil_div(rows, FREE_MR));
}

#endif
