/* A program with error handlers of its own. It prints which of them was called for each wrong
 * argument, and with which number, counted as netlib's BLAS does. With -DWITHOUT_HANDLERS it has
 * none. */
#include <stdio.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                 float *, int);
void cblas_sgemv(int, int, int, int, float, const float *, int, const float *, int, float, float *,
                 int);
void cblas_ssyrk(int, int, int, int, int, float, const float *, int, float, float *, int);
void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
            const float *, const int *, const float *, const int *, const float *, float *,
            const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *,
            const float *, const int *, const float *, float *, const int *);
void ssyrk_(const char *, const char *, const int *, const int *, const float *, const float *,
            const int *, const float *, float *, const int *);

#ifndef WITHOUT_HANDLERS
void xerbla_(const char *routine, const int *info, size_t length);
void cblas_xerbla(int info, const char *routine, const char *format, ...);

void xerbla_(const char *routine, const int *info, size_t length) {
    printf("xerbla <%.*s> %d\n", (int)length, routine, *info);
}

void cblas_xerbla(int info, const char *routine, const char *format, ...) {
    printf("cblas_xerbla %s %d%s\n", routine, info, format);
}
#endif

enum { ROW = 101, COL = 102, NO = 111, YES = 112, CONJ_NO = 114, UPPER = 121 };

static float a[9], c[9];

static void cblas_gemm(int order, int ta, int tb, int m, int n, int k, int lda, int ldb, int ldc) {
    cblas_sgemm(order, ta, tb, m, n, k, 1, a, lda, a, ldb, 0, c, ldc);
}

static void gemm(const char *ta, int m, int k, int lda) {
    const int n = 1, ld = 3;
    const float one = 1;
    sgemm_(ta, "N", &m, &n, &k, &one, a, &lda, a, &ld, &one, c, &ld);
}

static void gemv(int m, int incx) {
    const int n = 1, ld = 3, inc = 1;
    const float one = 1;
    sgemv_("N", &m, &n, &one, a, &ld, a, &incx, &one, c, &inc);
}

static void syrk(const char *uplo, int ldc) {
    const int n = 2, k = 1, ld = 3;
    const float one = 1;
    ssyrk_(uplo, "N", &n, &k, &one, a, &ld, &one, c, &ldc);
}

int main(void) {
    for (int order = ROW; order <= COL; order++) {
        cblas_gemm(order, 7, NO, 1, 1, 1, 3, 3, 3);
        cblas_gemm(order, NO, NO, -1, 1, 1, 3, 3, 3);
        cblas_gemm(order, NO, NO, 1, -1, 1, 3, 3, 3);
        cblas_gemm(order, NO, NO, 2, 2, 2, 1, 3, 3);
        cblas_gemm(order, NO, NO, 2, 2, 2, 3, 1, 3);
        cblas_gemm(order, NO, NO, 2, 2, 2, 3, 3, 1);
        cblas_sgemv(order, NO, -1, 1, 1, a, 3, a, 1, 0, c, 1);
        cblas_sgemv(order, NO, 1, 1, 1, a, 3, a, 1, 0, c, 0);
        cblas_ssyrk(order, UPPER, 0, 1, 1, 1, a, 3, 0, c, 3);
        cblas_ssyrk(order, UPPER, YES, 2, 2, 1, a, 1, 0, c, 3);
    }
    cblas_gemm(0, NO, NO, 1, 1, 1, 3, 3, 3);
    gemm("x", 1, 1, 3);
    gemm("N", 1, -1, 3);
    gemm("N", 2, 1, 1);
    gemv(-1, 1);
    gemv(1, 0);
    syrk("x", 3);
    syrk("U", 1);
    /* CONJ_NO works, as real numbers are their own conjugates. */
    a[0] = 3;
    cblas_gemm(ROW, CONJ_NO, CONJ_NO, 1, 1, 1, 3, 3, 3);
    printf("%g\n", (double)c[0]);
    return 0;
}
