/* cuBLAS beside which bench/cuda.c is timed: FP32 without TF32. The benchmark opens it where there
 * is one and is linked without it; the library never uses it. */
#ifndef BENCH_CUDA_BLAS_H
#define BENCH_CUDA_BLAS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 if there is none; then the others are not called. It is looked for where BENCH_CUBLAS says,
 * then where the system looks. */
int blas_open(void);
/* 130001 is 13.0.1. */
int blas_version(void);
/* c = a b, row-major and dense; a is transposed by bit 0 of `trans`, b by bit 1. Returns before it
 * is done; 0 on failure. */
int blas_product(int trans, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c);
int blas_wait(void);
void blas_close(void);

/* Tells a profiler that waits for it (ncu --profile-from-start off) when to look. */
void profile_from_here(void);
void profile_to_here(void);

#ifdef __cplusplus
}
#endif
#endif
