/* The innermost part of a product: a tile of c in registers (gemm_tile_*.c). */
#ifndef REPOPS_CPU_GEMM_TILE_H
#define REPOPS_CPU_GEMM_TILE_H

#include "repops/cpu/gemm/gemm.h"

enum {
    TILE_RAW = 1,   /* store the accumulators unchanged in c */
    TILE_FIRST = 2, /* tot = +0 + acc, and c is not read; else tot = c + acc */
    TILE_LAST = 4,  /* store canon(tot * alpha + beta * out) in out; else store tot in c */
};

/* A run of k steps at regular strides. a and b are its offsets from the tile's operands. */
typedef struct {
    int64_t a, b, k;
    int last; /* for the caller: this run ends a chunk */
} tile_run;

enum {
    FAR_K = 256, /* products of fewer k steps find b in a cache, without prefetch */
    PAGE = 1024, /* floats in a page of memory */
};

/* Element (i, p) of a is a[i * a_row + p * a_step]; step p of b is at b + p * b_step. */
typedef struct {
    int64_t k;
    const float *a, *b;
    int64_t a_row, a_step, b_step;
    const float *ahead;   /* memory to prefetch, one cache line per step; or NULL */
    int64_t ahead_step;   /* offset from one of these lines to the next */
    int64_t ahead_turn;   /* in place: moves `ahead` further after every 16 steps */
    int64_t next;         /* in place: offset from b of the next columns, to prefetch; or 0 */
    const float *far;     /* with runs: memory to prefetch into L2, a line per two steps; or NULL */
    const float *start;   /* accumulators to start from, rows of NR; NULL: +0 */
    const tile_run *runs; /* for ro_tile_runs: the runs that make up the k steps */
    int64_t run_count;
    float *c; /* totals so far */
    int64_t c_row;
    float *out; /* may be c */
    int64_t out_row;
    int64_t cols; /* columns of c and out that are written */
    float alpha, beta;
    int flags;
    /* For ro_linear, with TILE_LAST: adds the bias to what is stored in out, canonicalises it, and
     * applies relu if set. NULL and 0: neither. Not for ro_tile_runs and ro_tile_lanes. */
    const float *bias; /* one for each column */
    int relu;
} tile;

/* Up to MR rows and NR columns. a is packed (a_row counts as 1), and each step of b has NR floats,
 * whatever `cols` is. */
void RO_NAME(ro_tile_packed)(int rows, const tile *t);

/* Operands in place: only the first `cols` columns of b are read. Up to MR rows, and as many
 * columns as place_cols returns. No t->start. */
void RO_NAME(ro_tile_place)(int rows, const tile *t);

/* Up to MR rows and NR columns. a is in place, its a_step 1, and b is packed. No t->start. */
void RO_NAME(ro_tile_runs)(int rows, const tile *t);

/* Like ro_tile_runs, but a_row counts as 1, and a_step may have any value. */
void RO_NAME(ro_tile_lanes)(int rows, const tile *t);

#if defined(RO_ISA_avx512)
/* Limits of a tile in place whose a is stored along k. */
enum { QUAD_COLS = 4, QUAD_ROWS = 36 };

/* More than WIDE_ROWS rows, up to MR, and up to VW / 2 columns; operands in place or as in t->runs.
 * With up to QUAD_COLS columns, an a_step of 1 and no runs: up to QUAD_ROWS rows. Only the flags
 * TILE_FIRST and TILE_LAST are supported. */
void RO_NAME(ro_tile_half)(int rows, const tile *t);
#endif

static inline void run_tile(int rows, const tile *t) {
    RO_NAME(ro_tile_packed)(rows, t);
}

/* Returns how many rows a panel of a has. Panels of a share the rows evenly; panels of b are always
 * NR wide, so that loads are whole vectors. */
RO_INLINE int64_t panel_rows(int64_t rows, int64_t most) {
    return rows <= most ? rows : ceil_div(rows, ceil_div(rows, most));
}

/* Returns the rows of a tile in place. If one tile is as wide as all n columns, a is read only
 * once. Seven rows of four vectors would leave no register for an element of a, so such tiles have
 * six. */
RO_INLINE int64_t place_rows(int64_t n) {
#if defined(RO_ISA_avx512)
    if (n >= 2 * VW + VW / 2 && n <= 4 * VW)
        return n <= 3 * VW ? 8 : 6;
    return n > VW / 2 && n <= VW ? MR_MOST : MR;
#elif defined(RO_ISA_avx2)
    return n == 4 * VW ? WIDE_ROWS : n <= VW ? MR_MOST : MR;
#else
    (void)n;
    return MR;
#endif
}

/* Returns how many columns the next tile in place has when `left` remain. Tiles of few rows are
 * wider; with many rows, a last half vector gets a tile of its own. ro_tile_next has the same
 * widths. */
RO_INLINE int64_t place_cols(int64_t rows, int64_t left) {
#if defined(RO_ISA_avx512)
    if (rows > MR)
        return min_i64(left, VW);
    if (rows <= WIDE_ROWS)
        return min_i64(left, rows <= WIDEST_ROWS ? 8 * VW : rows == 4 ? 6 * VW : 4 * VW);
    if (rows == 8)
        return min_i64(left, 3 * VW);
    return left > VW && left <= VW + VW / 2 ? VW : min_i64(left, NR);
#elif defined(RO_ISA_avx2)
    if (rows <= WIDEST_ROWS && left >= 8 * VW)
        return left >= 12 * VW ? 12 * VW : 8 * VW;
    if (rows == 2 && left >= 6 * VW)
        return 6 * VW;
    if (rows == 4 && left >= 3 * VW)
        return 3 * VW;
    return rows <= WIDE_ROWS && left >= 4 * VW ? 4 * VW : min_i64(left, NR);
#else
    (void)rows;
    return min_i64(left, NR);
#endif
}

#endif
