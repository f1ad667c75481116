/* One product of two matrices, SPEC.md section 3.1, computed by one thread. */
#ifndef REPOPS_CPU_GEMM_H
#define REPOPS_CPU_GEMM_H

#include "repops/cpu/isa.h"

/* c[m, n] = canon(dot_chunk(a[m, :], b[:, n]) * alpha + beta * c[m, n]). Element (i, j) of an
 * operand is at i * row + j * col; one of the two steps is 1. */
typedef struct {
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    float *c;
    int64_t c_row;   /* the columns of c are contiguous */
    int64_t c_chunk; /* 0: the sum of all chunks; else chunk j's own result is at c + j * c_chunk */
    int64_t chunk;
    int64_t a_all; /* elements of a in all products that are run with this one; 0: m * k */
    int64_t row0;  /* the number, for the mask, of row 0 */
    ro_mask mask;
    float alpha, beta; /* beta is 0 with c_chunk or a mask */
    /* For ro_gemm_dots, of columns of b without gaps between them: how far beyond what it reads it
     * asks for more, in the order of addresses. 0: beyond each column by itself. */
    int64_t b_ahead;
    /* ro_linear: where c is complete, c = canon(c + bias) and y = activation(c). y is like c, or c
     * itself; NULL: c remains as it is. Without a mask, c_chunk and beta. */
    float *y;
    const float *bias; /* of the columns; NULL: none */
    ro_activation activation;
} gemm;

/* Tiles of c that stay in registers: rows and vectors of columns. Tiles of few rows may be wider,
 * those of one vector higher. */
#if defined(RO_ISA_avx512)
enum { MR = 14, MR_MOST = 16, NV = 2, NV_MOST = 8, WIDE_ROWS = 7, WIDEST_ROWS = 3 };
#elif defined(RO_ISA_avx2)
enum { MR = 6, MR_MOST = 12, NV = 2, NV_MOST = 12, WIDE_ROWS = 3, WIDEST_ROWS = 1 };
#elif defined(RO_ISA_neon)
enum { MR = 4, MR_MOST = 4, NV = 6, NV_MOST = 6 };
#else
enum { MR = 4, MR_MOST = 4, NV = 8, NV_MOST = 8 };
#endif
enum { NR = NV * VW };

/* Rows that read b from where it is. */
enum { PLACE_ROWS = 28 };

/* Floats that ro_gemm needs for packed operands. */
int64_t RO_NAME(ro_gemm_workspace)(const gemm *g);
void RO_NAME(ro_gemm)(const gemm *g, float *workspace);
/* What is said of y, of rows [i, i + rows) and columns [j, j + cols). */
void RO_NAME(ro_gemm_end)(const gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols);
/* ro_gemm shared among the context's threads, with workspace of the context. */
ro_status RO_NAME(ro_gemm_shared)(ro_ctx *ctx, const gemm *g);

#endif
