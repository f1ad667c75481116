/* Matrix products in `real`, in batches; convolutions are implicit products. Functions that know
 * where the terms are pack the operands, and sums over k follow the order of a profile.
 *
 * The order (gemm_order.c): the terms, from the last to the first if `descending`, are cut into
 * pieces of `split`, and each piece into `lanes` runs of neighbours, of at least FREE_RUN terms. A
 * run is summed term by term. `pairwise` = 0: the runs of a piece are added one after the other,
 * and then the pieces; 1: all of them as a balanced tree. Runs longer than FREE_KC are replaced by
 * blocks; with one lane, each block continues the run before.
 *
 * In binary64 the product of two binary32 numbers is exact, and `contract` has no effect. */
#ifndef REPOPS_FREE_GEMM_H
#define REPOPS_FREE_GEMM_H

#include "repops/free/kernel.h"

/* FREE_VECTOR: bytes of a vector. FREE_MR: rows of a tile. FREE_PANEL: rows of a packed panel of a,
 * FREE_MR with padding to whole vectors of VW floats. */
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
    FREE_WIDEST = 32, /* most lanes of a packed line of a or b */
    FREE_KC = 512,    /* most terms that are packed at a time */
    FREE_RUN = 32,    /* least terms of a run */
    FREE_STACK = 8,   /* most sums of a tile that wait for others within a block */
};

/* ---- order ---- */

typedef enum { FREE_SET, FREE_ADD, FREE_CONTINUE } free_mode;

/* Where a partial sum goes: into a slot, added to a slot, or continuing a slot's value. Then the
 * last slot is added to the one before it, `merges` times. */
typedef struct {
    int slot, merges;
    free_mode mode;
} free_step;

typedef struct {
    int64_t k, block, blocks; /* terms in all, terms of a block, number of blocks */
    int64_t run, piece;       /* terms of a run, runs of a piece */
    int64_t chain;            /* number of blocks that continue one run */
    int pairwise, slots;      /* slots: most sums of blocks that are kept at the same time */
} free_order;

free_order RO_FREE_NAME(ro_free_order)(const ro_profile *profile, int64_t k);
/* Return the step for the sum of block i, and for that of run i in a block with `runs` runs. */
free_step RO_FREE_NAME(ro_free_block_step)(const free_order *o, int64_t i);
free_step RO_FREE_NAME(ro_free_run_step)(const free_order *o, int64_t i, int64_t runs);

/* ---- tiles ---- */

/* Sums over k the products of `rows` rows of a (k lines of FREE_PANEL) and FREE_NR columns of b (k
 * lines of FREE_NR), into c (rows of FREE_NR), as `mode` says. */
void RO_FREE_NAME(ro_free_tile)(int rows, int contract, int64_t k, const real *a, const real *b,
                                real *c, free_mode mode);
/* Does what ro_free_tile does, without the terms whose element of a is free_absent(). */
void RO_FREE_NAME(ro_free_tile_exact)(int rows, int64_t k, const real *a, const real *b, real *c,
                                      free_mode mode);

/* Adds each lane's sum of squares over all steps of packed lines, without numbers that are not
 * finite. */
void RO_FREE_NAME(ro_free_add_squares)(const real *x, int64_t steps, int width, int64_t lanes,
                                       double *square);

/* Returns a NaN that stands for an absent term; no packed number has its bits. */
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
    const int64_t *first; /* per row: index of its first element in the output */
    const double *of_sum; /* per row: bound of a sum's error, divided by the column's norm */
    const double *norm;   /* per column; NULL: no bounds are wanted */
    real alpha;
} free_results;

/* Computes one row's results and their bounds. */
void RO_FREE_NAME(ro_free_finish)(const free_results *r, int row, real *y, double *bound);
/* Emits all rows of a tile. The emitter must be ro_emit_is_direct; close calls are not replayed. */
void RO_FREE_NAME(ro_free_emit_tile)(ro_emitter *t, const free_results *r);

/* ---- operands ---- */

/* Some rows of a, or columns of b, and some steps of k. */
typedef struct {
    int64_t product, lane, lanes, k, steps;
    int reverse; /* steps are packed from the last to the first */
} free_part;

/* Stores VW floats as packed numbers. */
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

/* Packs lines of `width` numbers: part->lanes from memory, then 0 as padding. Lanes are contiguous;
 * k_step is the stride of steps. */
void RO_FREE_NAME(ro_free_pack_lines)(const float *from, int64_t k_step, const free_part *part,
                                      int64_t width, real *to);
/* Does what ro_free_pack_lines does if the steps of a lane are contiguous: lane i is at from[i], or
 * is zeros if that is NULL. */
void RO_FREE_NAME(ro_free_pack_lanes)(const float *const *from, int64_t lanes, int64_t steps,
                                      int reverse, int64_t width, real *to);

typedef struct free_gemm free_gemm;

/* A batch of strided matrices, whose products are counted by two indices. */
typedef struct {
    const float *data;
    int64_t lane_step, k_step; /* one of them is 1 */
    int64_t outer, inner;      /* strides of products, for either index */
} free_matrix;

struct free_gemm {
    int64_t products, m, n, k;
    int64_t inner; /* product = outer index * inner + inner index */
    free_matrix a, b;
    void (*pack_a)(const free_gemm *g, const free_part *part, real *to); /* NULL: packs a, masked */
    void (*pack_b)(const free_gemm *g, const free_part *part, real *to); /* NULL: packs b */
    /* Returns where an element of a is, or NULL if the term is absent. Set only for products with
     * absent terms. */
    const float *(*term)(const free_gemm *g, int64_t product, int64_t row, int64_t k);
    /* Returns a row's first index in the output. NULL: product after product, row by row. */
    int64_t (*place)(const free_gemm *g, int64_t product, int64_t row);
    float alpha;
    int absent; /* some terms are absent. They are packed as 0, which is right if b is finite */
    /* SPEC 3.1, for a as a matrix. For the mask, row numbers start at mask_first + mask_step *
     * inner index. */
    ro_mask mask;
    int64_t mask_first, mask_step, window; /* window 0: no window */
    const void *user;
};

ro_status RO_FREE_NAME(ro_free_multiply)(const ro_free_job *job, const free_gemm *g);

/* Pack a part of a, and of b, by the product's functions or matrices. */
void RO_FREE_NAME(ro_free_pack_a)(const free_gemm *g, const free_part *part, real *to);
void RO_FREE_NAME(ro_free_pack_b)(const free_gemm *g, const free_part *part, real *to);
/* Packs a part of a term by term, for ro_free_tile_exact. */
void RO_FREE_NAME(ro_free_pack_exact)(const free_gemm *g, const free_part *part, real *to);

/* Finds the steps of k that any of the rows [row, row + rows) admits: [*first, *last). */
void RO_FREE_NAME(ro_free_admitted)(const free_gemm *g, int64_t product, int64_t row, int64_t rows,
                                    int64_t *first, int64_t *last);

/* Returns the rows of a panel, so that panels share all rows evenly. */
RO_INLINE int64_t free_height(int64_t rows) {
    return ceil_div(rows, ceil_div(rows, FREE_MR));
}

#endif
