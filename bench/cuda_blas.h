/* cuBLAS beside which bench/cuda.c is timed: FP32 without TF32. The benchmark links it, the library
 * never does. */
#ifndef BENCH_CUDA_BLAS_H
#define BENCH_CUDA_BLAS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 if there is none; then the others are not called. */
int blas_open(void);
/* c = a b, row-major and dense; a is transposed by bit 0 of `trans`, b by bit 1. Returns before it
 * is done; 0 on failure. */
int blas_product(int trans, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c);
int blas_wait(void);
void blas_close(void);

#ifdef __cplusplus
}
#endif
#endif
