/* A program for CBLAS and the Fortran BLAS, unaware of repops. Prints a hash of all its results.
 * With -DWITH_DOUBLE it also calls a routine that librepops_blas lacks. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cblas.h>)
#include <cblas.h>
#else
enum { CblasRowMajor = 101, CblasColMajor = 102 };
enum { CblasNoTrans = 111, CblasTrans = 112 };
enum { CblasUpper = 121, CblasLower = 122 };
void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                 float *, int);
void cblas_sgemv(int, int, int, int, float, const float *, int, const float *, int, float, float *,
                 int);
void cblas_ssyrk(int, int, int, int, int, float, const float *, int, float, float *, int);
float cblas_sdot(int, const float *, int, const float *, int);
#endif
void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *,
            const float *, const int *, const float *, const int *, const float *, float *,
            const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *,
            const float *, const int *, const float *, float *, const int *);
void ssyrk_(const char *, const char *, const int *, const int *, const float *, const float *,
            const int *, const float *, float *, const int *);
float sdot_(const int *, const float *, const int *, const float *, const int *);

enum { N = 330, COUNT = N * N };

static float a[COUNT], b[COUNT], c[COUNT];
static uint64_t hash = UINT64_C(0xcbf29ce484222325);

static void fill(float *x, uint64_t seed) {
    for (int i = 0; i < COUNT; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        x[i] = (float)(int32_t)(seed >> 40) * 0x1p-23f - 1.0f;
    }
}

static void put(const float *x, int count) {
    for (int i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
}

static void use_cblas(void) {
    const int orders[] = {CblasRowMajor, CblasColMajor}, trans[] = {CblasNoTrans, CblasTrans};
    for (int i = 0; i < 8; i++) {
        const int order = orders[i & 1], ta = trans[i >> 1 & 1], tb = trans[i >> 2];
        cblas_sgemm(order, ta, tb, N - 7, N - 20, N - 1, 0.7f, a, N, b, N, i & 2 ? 0.3f : 0, c, N);
        put(c, COUNT);
        cblas_sgemv(order, ta, N - 3, N - 2, 1.5f, a, N, b, i & 4 ? 2 : -3, 0.5f, c,
                    i & 2 ? -1 : 2);
        put(c, COUNT);
        cblas_ssyrk(order, tb == CblasTrans ? CblasUpper : CblasLower, ta, N - 5, N - 30, -1, b, N,
                    1, c, N);
        put(c, COUNT);
        c[0] = cblas_sdot(N * 3, a, 1 + i, b, i & 1 ? -2 : 7);
        put(c, 1);
    }
}

static void use_fortran(void) {
    const int n = N, m = N - 9, minus = -1, two = 2;
    const float one = 1, half = 0.5f;
    sgemm_("N", "t", &m, &m, &n, &half, a, &n, b, &n, &one, c, &n);
    put(c, COUNT);
    sgemv_("T", &m, &n, &one, a, &n, b, &minus, &half, c, &two);
    put(c, COUNT);
    ssyrk_("U", "N", &m, &n, &one, b, &n, &half, c, &n);
    put(c, COUNT);
    c[0] = sdot_(&m, a, &two, b, &minus);
    put(c, 1);
}

int main(void) {
    fill(a, 1);
    fill(b, 2);
    fill(c, 3);
    use_cblas();
    use_fortran();
#ifdef WITH_DOUBLE
    double x[3] = {1, 2, 3};
    cblas_dscal(3, 2, x, 1);
    if (x[0] != 2 || x[2] != 6)
        return 1;
#endif
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}
