/* The innermost part of a product: a tile of up to MR x NR accumulators in registers. */
#ifndef REPOPS_CPU_GEMM_TILE_H
#define REPOPS_CPU_GEMM_TILE_H

#include "repops/cpu/gemm.h"

enum {
    TILE_RAW = 1,   /* store the accumulators as they are */
    TILE_FIRST = 2, /* c is not read: tot = +0 + acc, else tot = c + acc */
    TILE_LAST = 4,  /* store canon(tot * alpha + beta * out) in out, else tot in c */
};

/* Row i of step p of a is a[p * a_step + i * lane], `lane` being 1 in run_tile; step p of b is NR
 * floats at b + p * b_step. */
typedef struct {
    int64_t k;
    const float *a, *b;
    int64_t a_step, b_step;
    const float *start; /* accumulators to start from, rows of NR; NULL: +0 */
    float *c;           /* totals so far */
    int64_t c_row;
    float *out; /* may be c */
    int64_t out_row;
    int64_t cols; /* 1..NR are written */
    float alpha, beta;
    int flags;
} tile;

RO_INLINE void tile_start(const int rows, const tile *t, vf acc[MR][NV]) {
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        RO_UNROLL
        for (int v = 0; v < NV; v++)
            acc[i][v] = t->start ? vf_load(t->start + i * NR + v * VW) : vf_set1(0.0f);
    }
    RO_UNROLL
    for (int i = 0; i < rows; i++)
        __builtin_prefetch(t->c + i * t->c_row, 1);
}

RO_INLINE void tile_multiply(const int rows, const int64_t lane, const tile *t, vf acc[MR][NV]) {
    const float *a = t->a, *b = t->b;
    const int64_t a_step = t->a_step, b_step = t->b_step;
    for (int64_t p = t->k; p > 0; p--, a += a_step, b += b_step) {
        vf bv[NV];
        RO_UNROLL
        for (int v = 0; v < NV; v++)
            bv[v] = vf_load(b + v * VW);
        __builtin_prefetch(b + 8 * NR);
        __builtin_prefetch(b + 8 * NR + NR / 2);
        RO_UNROLL
        for (int i = 0; i < rows; i++) {
            const vf av = vf_set1(a[i * lane]);
            RO_UNROLL
            for (int v = 0; v < NV; v++)
                acc[i][v] = vf_fma(av, bv[v], acc[i][v]);
        }
    }
}

RO_INLINE void tile_result(const tile *t, float *out, int64_t cols, vf tot) {
    vf x = vf_mul(tot, vf_set1(t->alpha));
    if (t->beta != 0)
        x = vf_fma(vf_set1(t->beta), vf_load_n(out, cols), x);
    vf_store_n(out, vf_canon(x), cols);
}

RO_INLINE void tile_finish(const int rows, const tile *t, vf acc[MR][NV]) {
    RO_UNROLL
    for (int i = 0; i < rows; i++) {
        RO_UNROLL
        for (int v = 0; v < NV; v++) {
            float *c = t->c + i * t->c_row + v * VW;
            const int64_t cols = t->cols - v * VW;
            vf x = acc[i][v];
            if (!(t->flags & TILE_RAW))
                x = vf_add(t->flags & TILE_FIRST ? vf_set1(0.0f) : vf_load_n(c, cols), x);
            if (t->flags & TILE_LAST)
                tile_result(t, t->out + i * t->out_row + v * VW, cols, x);
            else
                vf_store_n(c, x, cols);
        }
    }
}

/* `rows` and `lane` are literals in every use, so that the accumulators become registers. */
RO_INLINE void tile_body(const int rows, const int64_t lane, const tile *t) {
    vf acc[MR][NV];
    tile_start(rows, t, acc);
    tile_multiply(rows, lane, t, acc);
    tile_finish(rows, t, acc);
}

RO_INLINE void run_tile_lane(int rows, const int64_t lane, const tile *t) {
    switch (rows) {
    case 1: tile_body(1, lane, t); break;
    case 2: tile_body(2, lane, t); break;
    case 3: tile_body(3, lane, t); break;
    case 4: tile_body(4, lane, t); break;
#if defined(RO_ISA_avx2) || defined(RO_ISA_avx512)
    case 5: tile_body(5, lane, t); break;
    case 6: tile_body(6, lane, t); break;
#endif
#if defined(RO_ISA_avx512)
    case 7: tile_body(7, lane, t); break;
    case 8: tile_body(8, lane, t); break;
    case 9: tile_body(9, lane, t); break;
    case 10: tile_body(10, lane, t); break;
    case 11: tile_body(11, lane, t); break;
    case 12: tile_body(12, lane, t); break;
    case 13: tile_body(13, lane, t); break;
    case 14: tile_body(14, lane, t); break;
#endif
    default: break;
    }
}

static void run_tile(int rows, const tile *t) {
    run_tile_lane(rows, 1, t);
}

#endif
