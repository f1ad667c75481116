#include "bench/cuda_blas.h"

#include <cublas_v2.h>

static cublasHandle_t handle;

int blas_open(void) {
    return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS &&
           cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH) == CUBLAS_STATUS_SUCCESS;
}

/* Column-major: the transposed product of the operands in the other order. */
int blas_product(int trans, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float *c) {
    const float one = 1, zero = 0;
    const cublasOperation_t of_a = trans & 1 ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t of_b = trans & 2 ? CUBLAS_OP_T : CUBLAS_OP_N;
    return cublasSgemm(handle, of_b, of_a, (int)n, (int)m, (int)k, &one, b,
                       (int)(trans & 2 ? k : n), a, (int)(trans & 1 ? m : k), &zero, c,
                       (int)n) == CUBLAS_STATUS_SUCCESS;
}

int blas_wait(void) {
    return cudaDeviceSynchronize() == cudaSuccess;
}

void blas_close(void) {
    cublasDestroy(handle);
}
