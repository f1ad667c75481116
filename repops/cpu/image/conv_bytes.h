/* conv2d of numbers that are integers of 8 bits, such as those of 8-bit models. If no sum can
 * exceed 2^24 in magnitude, the order of SPEC.md section 12.1 gives the exact sum, and so do
 * instructions for integers. Weights are tested when they are packed, x at each call. */
#ifndef REPOPS_CPU_CONV_BYTES_H
#define REPOPS_CPU_CONV_BYTES_H

#include "repops/cpu/image/conv.h"

enum {
    BYTES_RANGE = 255,    /* most that max(0, x's largest) exceeds min(0, x's smallest) by */
    BYTES_EXACT = 1 << 24 /* binary32 represents integers up to this */
};

/* Elements of an instruction: TERMS neighbouring numbers of x and of w for each lane of sums. */
#if defined(RO_ISA_avx512)
enum { BYTES = 1, TERMS = 4, TILE_ROWS = 14, TILE_VECTORS = 2 };
typedef uint8_t bytes_x; /* minus the smallest number */
typedef int8_t bytes_w;
#elif defined(RO_ISA_avx2)
enum { BYTES = 1, TERMS = 2, TILE_ROWS = 6, TILE_VECTORS = 2 };
typedef int16_t bytes_x, bytes_w;
#else
enum { BYTES = 0, TERMS = 1, TILE_ROWS = 1, TILE_VECTORS = 1 };
typedef int16_t bytes_x, bytes_w;
#endif
enum { TILE_COLS = TILE_VECTORS * VW };

/* Packed weights: a head, the sum of each column, and panels of TILE_COLS columns, in which TERMS
 * steps of a column are contiguous. */
typedef struct {
    int64_t most; /* the largest sum of a column's magnitudes */
    int64_t steps, cols;
} bytes_head;

/* The range of numbers of x. */
typedef struct {
    int32_t low, high;
    int whole; /* whether all are integers, and high - low is at most BYTES_RANGE */
} bytes_range;

/* The product of some windows with one panel. */
typedef struct {
    const bytes_x *x;
    int64_t row;
    const bytes_w *w;
    int64_t turns; /* steps of TERMS terms */
    const int32_t *sum;
    int32_t low;
    float *y;
    int64_t y_row, cols;
} bytes_tile;

/* Returns the bytes of packed weights. 0: the processor lacks instructions, or v has groups. */
int64_t RO_NAME(ro_conv_bytes_size)(const ro_conv *v);
/* Packs weights. Returns 0 if one is no integer of 8 bits. */
int RO_NAME(ro_conv_bytes_pack)(const ro_conv *v, const float *w, void *to);
/* Runs conv2d. *ran = 0: x does not suit or memory is lacking, and nothing was written. */
ro_status RO_NAME(ro_conv_bytes_run)(ro_ctx *ctx, const ro_conv *v, const float *x,
                                     const void *packed, float *y, int *ran);

/* Returns the range of `count` numbers. */
bytes_range RO_NAME(ro_conv_bytes_range)(const float *x, int64_t count);
/* Computes the results of up to TILE_ROWS windows. */
void RO_NAME(ro_conv_bytes_tile)(int64_t rows, const bytes_tile *t);
/* Converts numbers to integers minus `low`. */
void RO_NAME(ro_conv_bytes_take)(const float *x, int64_t count, int32_t low, bytes_x *to);

#endif
