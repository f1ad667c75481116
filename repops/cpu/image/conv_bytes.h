/* conv2d of numbers that are integers of 8 bits, as those of 8-bit models are: where no sum can
 * exceed 2^24 in magnitude, every order of SPEC.md section 12.1 gives the exact sum, and so do
 * instructions for integers. Weights are looked at when they are packed, x at each call. */
#ifndef REPOPS_CPU_CONV_BYTES_H
#define REPOPS_CPU_CONV_BYTES_H

#include "repops/cpu/image/conv.h"

enum {
    BYTES_RANGE = 255,    /* the largest number of x, or 0, less the smallest one, or 0 */
    BYTES_EXACT = 1 << 24 /* sums up to this are numbers of binary32 */
};

/* What an instruction multiplies: TERMS neighbours of x and of w for each lane of sums. */
#if defined(RO_ISA_avx512)
enum { BYTES = 1, TERMS = 4, TILE_ROWS = 14, TILE_VECTORS = 2 };
typedef uint8_t bytes_x; /* less the smallest number */
typedef int8_t bytes_w;
#elif defined(RO_ISA_avx2)
enum { BYTES = 1, TERMS = 2, TILE_ROWS = 6, TILE_VECTORS = 2 };
typedef int16_t bytes_x, bytes_w;
#else
enum { BYTES = 0, TERMS = 1, TILE_ROWS = 1, TILE_VECTORS = 1 };
typedef int16_t bytes_x, bytes_w;
#endif
enum { TILE_COLS = TILE_VECTORS * VW };

/* Packed weights: a head, the sum of each column, and panels of TILE_COLS columns, of which TERMS
 * steps of a column lie together. */
typedef struct {
    int64_t most; /* of a column, the sum of its magnitudes */
    int64_t steps, cols;
} bytes_head;

/* x as integers. */
typedef struct {
    int32_t low, high;
    int whole; /* whether all numbers are integers of a range of BYTES_RANGE */
} bytes_range;

/* Some windows by a panel. */
typedef struct {
    const bytes_x *x;
    int64_t row;
    const bytes_w *w;
    int64_t turns; /* of TERMS steps */
    const int32_t *sum;
    int32_t low;
    float *y;
    int64_t y_row, cols;
} bytes_tile;

/* 0: this processor has no such instructions, or the convolution is of groups. */
int64_t RO_NAME(ro_conv_bytes_size)(const ro_conv *v);
/* Returns 0 if weights are no integers of 8 bits. */
int RO_NAME(ro_conv_bytes_pack)(const ro_conv *v, const float *w, void *to);
/* *ran = 0: x is not of integers, so that nothing was written. */
ro_status RO_NAME(ro_conv_bytes_run)(ro_ctx *ctx, const ro_conv *v, const float *x,
                                     const void *packed, float *y, int *ran);

/* Returns the range of so many numbers. */
bytes_range RO_NAME(ro_conv_bytes_range)(const float *x, int64_t count);
/* Up to TILE_ROWS windows. */
void RO_NAME(ro_conv_bytes_tile)(int64_t rows, const bytes_tile *t);
/* Integers less `low`. */
void RO_NAME(ro_conv_bytes_take)(const float *x, int64_t count, int32_t low, bytes_x *to);

#endif
