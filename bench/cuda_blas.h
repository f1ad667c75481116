/* cuBLAS, the peer of bench/cuda.c: FP32 without TF32. The benchmark loads it at run time and is
 * linked without it; the library never uses it. */
#ifndef BENCH_CUDA_BLAS_H
#define BENCH_CUDA_BLAS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads cuBLAS from the path in BENCH_CUBLAS, or else from where the system looks. Returns 0 if
 * there is none; then the other functions must not be called. */
int blas_open(void);
/* Returns the version: 130001 is 13.0.1. */
int blas_version(void);
/* Computes c = a b, row-major and dense; bit 0 of `trans` transposes a, bit 1 b. Returns before the
 * product is done; 0 on failure. */
int blas_product(int trans, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c);
int blas_wait(void);
void blas_close(void);

/* Tell a profiler that waits for it (ncu --profile-from-start off) when to start and stop. */
void profile_from_here(void);
void profile_to_here(void);

#ifdef __cplusplus
}
#endif
#endif
