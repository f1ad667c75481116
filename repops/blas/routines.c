/* Each routine by means of ro_sgemm: checks, then row-major views of the operands. */
#include "repops/blas/blas.h"

#include <stdlib.h>
#include <string.h>

/* Is the matrix transposed? Numbers are real, so a conjugate transpose is a transpose. */
static bool is_turned(int trans) {
    return trans == TRANS || trans == CONJ_TRANS;
}

static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* Fills a row with NaN, so that a result that could not be computed is not taken for one. */
static void spoil(float *row, int64_t count, int64_t step) {
    const uint32_t nan = RO_QNAN_BITS;
    for (int64_t i = 0; i < count; i++)
        memcpy(row + i * step, &nan, sizeof nan);
}

/* ---- sgemm ---- */

static bool check_sgemm(caller by, int order, int trans_a, int trans_b, int m, int n, int k,
                        int lda, int ldb, int ldc) {
    const bool row = order == ROW_MAJOR;
    return blas_check_order(by, order) && blas_check_trans(by, 2, "transa", trans_a) &&
           blas_check_trans(by, 3, "transb", trans_b) && blas_check_least(by, 4, "m", m, 0) &&
           blas_check_least(by, 5, "n", n, 0) && blas_check_least(by, 6, "k", k, 0) &&
           blas_check_least(by, 9, "lda", lda, max_int(1, row == !is_turned(trans_a) ? k : m)) &&
           blas_check_least(by, 11, "ldb", ldb, max_int(1, row == !is_turned(trans_b) ? n : k)) &&
           blas_check_least(by, 14, "ldc", ldc, max_int(1, row ? n : m));
}

static void run_sgemm(caller by, bool trans_a, bool trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc) {
    ro_ctx *ctx = blas_take(by);
    if (ctx &&
        ro_sgemm(ctx, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == RO_OK) {
        blas_give(ctx);
        return;
    }
    if (ctx)
        blas_complain(by, ro_ctx_error(ctx));
    blas_give(ctx);
    for (int i = 0; i < m; i++)
        spoil(c + (int64_t)i * ldc, n, 1);
}

void blas_sgemm(caller by, int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
    const bool ta = is_turned(trans_a), tb = is_turned(trans_b);
    by.row_major = order == ROW_MAJOR;
    blas_count(BLAS_SGEMM);
    if (!check_sgemm(by, order, trans_a, trans_b, m, n, k, lda, ldb, ldc))
        return;
    if (order == ROW_MAJOR)
        run_sgemm(by, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else /* c^T = op(b)^T op(a)^T: a column-major matrix is a row-major transpose */
        run_sgemm(by, tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
}

/* ---- vectors ---- */

/* Returns where the first element is: with a negative increment it is the last one in memory. */
static const float *first_of(const float *x, int64_t count, int64_t inc) {
    return inc < 0 ? x - (count - 1) * inc : x;
}

/* A vector for ro_sgemm, which has no negative strides: with one, the vector is copied. */
typedef struct {
    const float *at;
    int64_t step;
    float *copy; /* the caller frees it; NULL if there is none, or no memory for it */
} vector;

static vector view(const float *x, int64_t count, int64_t inc) {
    vector v = {.at = x, .step = inc};
    if (inc > 0 || count == 0)
        return v;
    v.at = v.copy = malloc((size_t)count * sizeof *x);
    v.step = 1;
    x = first_of(x, count, inc);
    for (int64_t i = 0; v.copy && i < count; i++)
        v.copy[i] = x[i * inc];
    return v;
}

static void put_back(const vector *v, float *y, int64_t count, int64_t inc) {
    y = (float *)first_of(y, count, inc);
    for (int64_t i = 0; v->copy && i < count; i++)
        y[i * inc] = v->copy[i];
}

/* ---- sgemv ---- */

static bool check_sgemv(caller by, int order, int trans, int m, int n, int lda, int incx,
                        int incy) {
    return blas_check_order(by, order) && blas_check_trans(by, 2, "trans", trans) &&
           blas_check_least(by, 3, "m", m, 0) && blas_check_least(by, 4, "n", n, 0) &&
           blas_check_least(by, 7, "lda", lda, max_int(1, order == ROW_MAJOR ? n : m)) &&
           blas_check_increment(by, 9, "incx", incx) && blas_check_increment(by, 12, "incy", incy);
}

/* Computes y as a column, or as a row if it is contiguous. */
static bool run_sgemv(ro_ctx *ctx, bool trans, int rows, int depth, float alpha, const float *a,
                      int lda, const vector *x, float beta, const vector *y) {
    if (!ctx || !x->at || !y->at)
        return false;
    float *out = (float *)y->at;
    return (y->step == 1 ? ro_sgemm(ctx, 1, !trans, 1, rows, depth, alpha, x->at, x->step, a, lda,
                                    beta, out, rows)
                         : ro_sgemm(ctx, trans, 0, rows, 1, depth, alpha, a, lda, x->at, x->step,
                                    beta, out, y->step)) == RO_OK;
}

void blas_sgemv(caller by, int order, int trans, int m, int n, float alpha, const float *a, int lda,
                const float *x, int incx, float beta, float *y, int incy) {
    const bool turned = is_turned(trans);
    by.row_major = order == ROW_MAJOR;
    blas_count(BLAS_SGEMV);
    if (!check_sgemv(by, order, trans, m, n, lda, incx, incy) || m == 0 || n == 0)
        return;
    const int rows = turned ? n : m, depth = turned ? m : n;
    const vector from = view(x, depth, incx), to = view(y, rows, incy);
    ro_ctx *ctx = blas_take(by);
    if (run_sgemv(ctx, turned == (order == ROW_MAJOR), rows, depth, alpha, a, lda, &from, beta,
                  &to)) {
        put_back(&to, y, rows, incy);
    } else {
        blas_complain(by, "no memory");
        spoil((float *)first_of(y, rows, incy), rows, incy);
    }
    blas_give(ctx);
    free(from.copy);
    free(to.copy);
}

/* ---- sdot ---- */

float blas_sdot(caller by, int n, const float *x, int incx, const float *y, int incy) {
    float out = 0;
    blas_count(BLAS_SDOT);
    if (n <= 0)
        return 0;
    const vector a = view(x, n, incx), b = view(y, n, incy);
    ro_ctx *ctx = blas_take(by);
    if (!ctx || !a.at || !b.at ||
        ro_sgemm(ctx, 1, 0, 1, 1, n, 1, a.at, a.step, b.at, b.step, 0, &out, 1) != RO_OK) {
        blas_complain(by, "no memory");
        spoil(&out, 1, 1);
    }
    blas_give(ctx);
    free(a.copy);
    free(b.copy);
    return out;
}

/* ---- ssyrk ---- */

/* Rows of a diagonal block: it is multiplied as a whole square, half of which is discarded. */
enum { TRIANGLE = 64 };

typedef struct {
    ro_ctx *ctx;
    bool trans, upper; /* of row-major matrices */
    int64_t k, lda, ldc;
    float alpha, beta;
    const float *a;
    float *c;
} syrk;

static const float *row_of_a(const syrk *s, int64_t i) {
    return s->a + i * (s->trans ? 1 : s->lda);
}

static bool block(const syrk *s, int64_t i, int64_t m, int64_t j, int64_t n, float *c,
                  int64_t ldc) {
    return ro_sgemm(s->ctx, s->trans, !s->trans, m, n, s->k, s->alpha, row_of_a(s, i), s->lda,
                    row_of_a(s, j), s->lda, s->beta, c, ldc) == RO_OK;
}

static void copy_triangle(const syrk *s, int64_t n, const float *from, int64_t from_row, float *to,
                          int64_t to_row) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t first = s->upper ? i : 0, count = s->upper ? n - i : i + 1;
        memcpy(to + i * to_row + first, from + i * from_row + first, (size_t)count * sizeof *to);
    }
}

/* Computes a diagonal block in a copy, since the other triangle of c must not change. */
static bool small_triangle(const syrk *s, int64_t at, int64_t n) {
    float square[TRIANGLE * TRIANGLE] = {0};
    float *c = s->c + at * s->ldc + at;
    copy_triangle(s, n, c, s->ldc, square, TRIANGLE); /* read only if beta is not 0 */
    if (!block(s, at, n, at, n, square, TRIANGLE))
        return false;
    copy_triangle(s, n, square, TRIANGLE, c, s->ldc);
    return true;
}

/* Splits a triangle into two smaller ones and the square between them. */
static bool triangle(const syrk *s, int64_t at, int64_t n) {
    if (n <= TRIANGLE)
        return small_triangle(s, at, n);
    const int64_t half = (n / 2 + TRIANGLE - 1) / TRIANGLE * TRIANGLE, mid = at + half;
    float *c = s->c + (s->upper ? at * s->ldc + mid : mid * s->ldc + at);
    const bool square = s->upper ? block(s, at, half, mid, n - half, c, s->ldc)
                                 : block(s, mid, n - half, at, half, c, s->ldc);
    return square && triangle(s, at, half) && triangle(s, mid, n - half);
}

static bool check_ssyrk(caller by, int order, int uplo, int trans, int n, int k, int lda, int ldc) {
    return blas_check_order(by, order) && blas_check_uplo(by, 2, uplo) &&
           blas_check_trans(by, 3, "trans", trans) && blas_check_least(by, 4, "n", n, 0) &&
           blas_check_least(by, 5, "k", k, 0) &&
           blas_check_least(by, 8, "lda", lda,
                            max_int(1, (order == ROW_MAJOR) == !is_turned(trans) ? k : n)) &&
           blas_check_least(by, 11, "ldc", ldc, max_int(1, n));
}

void blas_ssyrk(caller by, int order, int uplo, int trans, int n, int k, float alpha,
                const float *a, int lda, float beta, float *c, int ldc) {
    by.row_major = order == ROW_MAJOR;
    blas_count(BLAS_SSYRK);
    if (!check_ssyrk(by, order, uplo, trans, n, k, lda, ldc) || n == 0)
        return;
    const bool row = order == ROW_MAJOR;
    const syrk s = {.ctx = blas_take(by),
                    .trans = is_turned(trans) == row,
                    .upper = (uplo == UPPER) == row,
                    .k = k,
                    .lda = lda,
                    .ldc = ldc,
                    .alpha = alpha,
                    .beta = beta,
                    .a = a,
                    .c = c};
    if (!s.ctx || !triangle(&s, 0, n)) {
        blas_complain(by, "no memory");
        for (int64_t i = 0; i < n; i++)
            spoil(c + i * ldc + (s.upper ? i : 0), s.upper ? n - i : i + 1, 1);
    }
    blas_give(s.ctx);
}
