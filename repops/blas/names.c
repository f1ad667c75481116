/* The exported names: CBLAS, and Fortran as gfortran calls it (arguments by reference, 32-bit
 * integers, a float function returns a float; the lengths of the strings are ignored). */
#include "repops/blas/blas.h"

/* ---- CBLAS ---- */

RO_API void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                        const float *a, int lda, const float *b, int ldb, float beta, float *c,
                        int ldc);
RO_API void cblas_sgemv(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                        const float *x, int incx, float beta, float *y, int incy);
RO_API void cblas_ssyrk(int order, int uplo, int trans, int n, int k, float alpha, const float *a,
                        int lda, float beta, float *c, int ldc);
RO_API float cblas_sdot(int n, const float *x, int incx, const float *y, int incy);

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    blas_sgemm((caller){.name = "cblas_sgemm"}, order, trans_a, trans_b, m, n, k, alpha, a, lda, b,
               ldb, beta, c, ldc);
}

void cblas_sgemv(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                 const float *x, int incx, float beta, float *y, int incy) {
    blas_sgemv((caller){.name = "cblas_sgemv"}, order, trans, m, n, alpha, a, lda, x, incx, beta, y,
               incy);
}

void cblas_ssyrk(int order, int uplo, int trans, int n, int k, float alpha, const float *a, int lda,
                 float beta, float *c, int ldc) {
    blas_ssyrk((caller){.name = "cblas_ssyrk"}, order, uplo, trans, n, k, alpha, a, lda, beta, c,
               ldc);
}

float cblas_sdot(int n, const float *x, int incx, const float *y, int incy) {
    return blas_sdot((caller){.name = "cblas_sdot"}, n, x, incx, y, incy);
}

/* ---- Fortran ---- */

RO_API void sgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n,
                   const int *k, const float *alpha, const float *a, const int *lda, const float *b,
                   const int *ldb, const float *beta, float *c, const int *ldc);
RO_API void sgemv_(const char *trans, const int *m, const int *n, const float *alpha,
                   const float *a, const int *lda, const float *x, const int *incx,
                   const float *beta, float *y, const int *incy);
RO_API void ssyrk_(const char *uplo, const char *trans, const int *n, const int *k,
                   const float *alpha, const float *a, const int *lda, const float *beta, float *c,
                   const int *ldc);
RO_API float sdot_(const int *n, const float *x, const int *incx, const float *y, const int *incy);

/* Returns CBLAS's number for a Fortran letter, or 0, which all checks reject. */
static int trans_of(const char *letter) {
    switch (*letter) {
    case 'n':
    case 'N': return NO_TRANS;
    case 't':
    case 'T': return TRANS;
    case 'c':
    case 'C': return CONJ_TRANS;
    default: return 0;
    }
}

static int uplo_of(const char *letter) {
    switch (*letter) {
    case 'u':
    case 'U': return UPPER;
    case 'l':
    case 'L': return LOWER;
    default: return 0;
    }
}

void sgemm_(const char *trans_a, const char *trans_b, const int *m, const int *n, const int *k,
            const float *alpha, const float *a, const int *lda, const float *b, const int *ldb,
            const float *beta, float *c, const int *ldc) {
    blas_sgemm((caller){.name = "sgemm", .shift = -1}, COL_MAJOR, trans_of(trans_a),
               trans_of(trans_b), *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}

void sgemv_(const char *trans, const int *m, const int *n, const float *alpha, const float *a,
            const int *lda, const float *x, const int *incx, const float *beta, float *y,
            const int *incy) {
    blas_sgemv((caller){.name = "sgemv", .shift = -1}, COL_MAJOR, trans_of(trans), *m, *n, *alpha,
               a, *lda, x, *incx, *beta, y, *incy);
}

void ssyrk_(const char *uplo, const char *trans, const int *n, const int *k, const float *alpha,
            const float *a, const int *lda, const float *beta, float *c, const int *ldc) {
    blas_ssyrk((caller){.name = "ssyrk", .shift = -1}, COL_MAJOR, uplo_of(uplo), trans_of(trans),
               *n, *k, *alpha, a, *lda, *beta, c, *ldc);
}

float sdot_(const int *n, const float *x, const int *incx, const float *y, const int *incy) {
    return blas_sdot((caller){.name = "sdot", .shift = -1}, *n, x, *incx, y, *incy);
}
