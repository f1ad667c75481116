/* The innermost part of a product: a tile of c in registers (gemm_tile.c). */
#ifndef REPOPS_CPU_GEMM_TILE_H
#define REPOPS_CPU_GEMM_TILE_H

#include "repops/cpu/gemm/gemm.h"

enum {
    TILE_RAW = 1,   /* store the accumulators as they are */
    TILE_FIRST = 2, /* c is not read: tot = +0 + acc, else tot = c + acc */
    TILE_LAST = 4,  /* store canon(tot * alpha + beta * out) in out, else tot in c */
};

/* Steps that lie together: where, from the tile's a and b. */
typedef struct {
    int64_t a, b, k;
} tile_run;

/* Steps of k from which on b may be far. Floats of a page. */
enum { FAR_K = 256, PAGE = 1024 };

/* Element (i, p) of a is a[i * a_row + p * a_step]; step p of b is at b + p * b_step. */
typedef struct {
    int64_t k;
    const float *a, *b;
    int64_t a_row, a_step, b_step;
    const float *ahead; /* memory that is brought nearer by the way, a line each step; or NULL */
    int64_t ahead_step, ahead_turn; /* from a line to the next; in place, 16 steps add the turn */
    int64_t next; /* in place: from b to the columns that come next, which are asked for; or 0 */
    const float *start;   /* accumulators to start from, rows of NR; NULL: +0 */
    const tile_run *runs; /* what the k steps are, for ro_tile_runs */
    int64_t run_count;
    float *c; /* totals so far */
    int64_t c_row;
    float *out; /* may be c */
    int64_t out_row;
    int64_t cols; /* of c and out that are written */
    float alpha, beta;
    int flags;
} tile;

/* Up to MR rows and NR columns; a is packed (a_row counts as 1), and each step of b has NR floats,
 * whatever `cols` is. */
void RO_NAME(ro_tile_packed)(int rows, const tile *t);

/* Operands in place: of b only the first `cols` columns are read. Up to MR rows, and as many
 * columns as place_cols says. No `start`. */
void RO_NAME(ro_tile_place)(int rows, const tile *t);

/* Up to MR rows and NR columns; a is in place, its a_step counts as 1, and b is packed. No
 * `start`. */
void RO_NAME(ro_tile_runs)(int rows, const tile *t);

/* The same, but a_row counts as 1 and a_step is any. */
void RO_NAME(ro_tile_lanes)(int rows, const tile *t);

#if defined(RO_ISA_avx512)
/* Columns in place of rows along k that a tile of more than MR rows takes. */
enum { QUAD_COLS = 4, QUAD_ROWS = 36 };

/* More than WIDE_ROWS rows, up to MR, and up to VW / 2 columns; operands as t->runs says, or in
 * place. Up to QUAD_COLS columns in place of rows along k (a_step is 1): up to QUAD_ROWS rows.
 * Flags are TILE_FIRST, TILE_LAST. */
void RO_NAME(ro_tile_half)(int rows, const tile *t);
#endif

static inline void run_tile(int rows, const tile *t) {
    RO_NAME(ro_tile_packed)(rows, t);
}

/* Rows of a tile in place: where all n columns fit into one wide tile, a is read once only. Seven
 * rows of four vectors leave no register for an element of a, and are for where b is waited for. */
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

/* Columns of the next tile in place when `left` remain: few rows take more of them, and half a
 * vector of many rows is a tile of its own. gemm_tile.c has the same widths in `next_tile`. */
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
