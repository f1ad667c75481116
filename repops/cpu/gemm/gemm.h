/* One product of two matrices, SPEC.md section 3.1, computed by one thread. */
#ifndef REPOPS_CPU_GEMM_H
#define REPOPS_CPU_GEMM_H

#include "repops/cpu/isa.h"

/* b with elements of 16 bits, which are not converted before the product. */
typedef struct {
    const uint16_t *data; /* NULL: b is f32 */
    int dtype;            /* RO_BF16 or RO_F16 */
} narrow_matrix;

/* c[m, n] = canon(dot_chunk(a[m, :], b[:, n]) * alpha + beta * c[m, n]). Element (i, j) of a is
 * a[i * a_row + j * a_col], and b has its own two strides. One stride of each operand is 1; but
 * where b_col is 0, b is panels that ro_gemm_pack made. */
typedef struct {
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_col, b_row, b_col;
    narrow_matrix narrow; /* replaces b, with the same strides; not with y, c_chunk or beta */
    float *c;
    int64_t c_row;   /* the columns of c are contiguous */
    int64_t c_chunk; /* 0: c is the sum of all chunks; else chunk j's sum is at c + j * c_chunk */
    int64_t chunk;
    int64_t a_all; /* elements of a in all products of the call, for prefetching; 0: m * k */
    int64_t row0;  /* number of row 0, for the mask */
    ro_mask mask;
    int64_t window;    /* of the mask; 0: no window */
    float alpha, beta; /* beta is 0 with c_chunk or a mask */
    /* For ro_gemm_dots if columns of b are contiguous: the prefetch distance in floats. 0: each
     * column is prefetched separately. */
    int64_t b_ahead;
    /* For ro_linear: after the product, c = canon(c + bias) and y = activation(c). y has the layout
     * of c and may be c; NULL skips both. Not with a mask, c_chunk or beta. */
    float *y;
    const float *bias; /* one per column; NULL: no bias */
    ro_activation activation;
} gemm;

/* The register tile of c: MR rows x NV vectors of columns. A tile one vector wide may have up to
 * MR_MOST rows. Tiles of at most WIDE_ROWS rows are wider, and those of at most WIDEST_ROWS rows
 * have up to NV_MOST vectors. */
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

/* With more rows, b is read so often that packing pays. */
enum { PLACE_ROWS = 28 };

/* Returns whether tiles apply the activation before they store c. They always add the bias. */
RO_INLINE int ends_in_tiles(const gemm *g) {
    return g->y && g->y == g->c && g->activation == RO_ACTIVATION_RELU;
}

/* Adds the bias to rows [i, i + rows) and columns [j, j + cols) of c, and stores the activation in
 * y. */
void RO_NAME(ro_gemm_end)(const gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols);
/* The same for tiles that have added the bias, and relu if y is c (ends_in_tiles). */
void RO_NAME(ro_gemm_activate)(const gemm *g, int64_t i, int64_t rows, int64_t j, int64_t cols);
/* Computes g on the context's threads, with the context's workspace. */
ro_status RO_NAME(ro_gemm_shared)(ro_ctx *ctx, const gemm *g);

#endif
