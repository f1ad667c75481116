/* ro_sgemm: checks, and expresses SPEC.md section 3.1 by the table's products. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/inline.h"
#include "repops/src/math.h"
#include "repops/src/operands.h"

typedef struct {
    const char *name;
    int64_t value, least;
} limit;

static ro_status refuse(ro_ctx *ctx, const limit *l, int count) {
    for (int i = 0; i < count; i++)
        if (l[i].value < l[i].least || l[i].value > RO_MAX_NUMEL)
            return ro_fail(ctx, RO_ERR_ARG, "sgemm: `%s` must be %lld..2^40, got %lld", l[i].name,
                           (long long)l[i].least, (long long)l[i].value);
    return RO_ERR_ARG;
}

static int64_t at_least_1(int64_t width) {
    return width < 1 ? 1 : width;
}

/* Returns whether least <= value <= 2^40. It is branch-free, which matters for small products. */
static int within(int64_t value, int64_t least) {
    return (value >= least) & (value <= RO_MAX_NUMEL);
}

/* ---- memory ---- */

/* Returns the number of elements from the first to the last one. */
static uint64_t reach(int64_t rows, int64_t width, int64_t ld, int64_t stride, int64_t batch) {
    return (uint64_t)(batch - 1) * (uint64_t)stride + (uint64_t)(rows - 1) * (uint64_t)ld +
           (uint64_t)width;
}

/* The same operand of all products in a batch. */
typedef struct {
    const char *name;
    const float *at;
    int64_t rows, width, ld, stride;
} matrix;

static int apart(const matrix *x, const matrix *y, int64_t batch) {
    const uintptr_t a = (uintptr_t)x->at, b = (uintptr_t)y->at;
    return (a + 4 * reach(x->rows, x->width, x->ld, x->stride, batch) <= b) |
           (b + 4 * reach(y->rows, y->width, y->ld, y->stride, batch) <= a);
}

static ro_pieces product(const matrix *m, int64_t i) {
    return (ro_pieces){m->at + i * m->stride, m->rows, m->ld * 4, m->width * 4};
}

/* Returns nonzero if the c of any product shares a byte with the x of any product, or, if x is c,
 * with another product's c. */
static int meets(const matrix *c, const matrix *x, int64_t batch) {
    const int shared = x->stride == 0 && x != c;
    const int steady = x->stride == c->stride; /* then only the difference i - j matters */
    for (int64_t i = 0; i < batch; i++) {
        const int64_t end = shared || (steady && i > 0) ? 1 : batch;
        for (int64_t j = x == c && i == 0; j < end; j++) {
            const ro_pieces out = product(c, i), other = product(x, j);
            if (ro_pieces_meet(&out, &other))
                return 1;
        }
    }
    return 0;
}

/* Refuses overlaps slowly: matrices may be interleaved, as parts of one wider matrix are. */
static __attribute__((noinline)) ro_status
check_interleaved(ro_ctx *ctx, const matrix *c, const matrix *inputs, int count, int64_t batch) {
    for (int i = 0; i < count; i++)
        if (!apart(c, &inputs[i], batch) && meets(c, &inputs[i], batch))
            return ro_fail(ctx, RO_ERR_ARG, "sgemm: the memory of `c` overlaps that of `%s`",
                           inputs[i].name);
    if (batch > 1 && c->stride < (int64_t)reach(c->rows, c->width, c->ld, 0, 1) &&
        meets(c, c, batch))
        return ro_fail(ctx, RO_ERR_ARG, "sgemm: the memory of `c` of two products overlaps");
    return RO_OK;
}

static ro_status missing(ro_ctx *ctx, const float *a, const float *c) {
    return ro_missing(ctx, "sgemm", !ctx ? "ctx" : !c ? "c" : !a ? "a" : "b");
}

/* Inlined into both callers: passing its arguments takes a quarter of the smallest product. */
RO_INLINE ro_status sgemm_run(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n,
                              int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                              int64_t ldb, float beta, float *c, int64_t ldc, int64_t stride_a,
                              int64_t stride_b, int64_t stride_c, int64_t batch) {
    const int64_t least_a = at_least_1(trans_a ? m : k), least_b = at_least_1(trans_b ? k : n);
    const int64_t least_c = at_least_1(n);
    if (!(within(m, 0) & within(n, 0) & within(k, 0) & within(lda, least_a) & within(ldb, least_b) &
          within(ldc, least_c) & within(stride_a, 0) & within(stride_b, 0) & within(stride_c, 0) &
          within(batch, 0)))
        return refuse(ctx,
                      (const limit[]){{"m", m, 0},
                                      {"n", n, 0},
                                      {"k", k, 0},
                                      {"lda", lda, least_a},
                                      {"ldb", ldb, least_b},
                                      {"ldc", ldc, least_c},
                                      {"stride_a", stride_a, 0},
                                      {"stride_b", stride_b, 0},
                                      {"stride_c", stride_c, 0},
                                      {"batch", batch, 0}},
                      10);
    if (m == 0 || n == 0 || batch == 0)
        return RO_OK;
    const int read = k > 0 && ro_to_bits(alpha) << 1 != 0;
    if (!ctx | !c | (read & (!a | !b)))
        return missing(ctx, a, c);
    const matrix out = {"c", c, m, n, ldc, stride_c};
    const matrix in[2] = {{"a", a, trans_a ? k : m, trans_a ? m : k, lda, stride_a},
                          {"b", b, trans_b ? n : k, trans_b ? k : n, ldb, stride_b}};
    if (batch > 1 || (read && !(apart(&out, &in[0], 1) & apart(&out, &in[1], 1)))) {
        const ro_status status = check_interleaved(ctx, &out, in, read ? 2 : 0, batch);
        if (status != RO_OK)
            return status;
    }
    /* entered before alpha is tested: with the caller's DAZ a subnormal alpha equals 0 */
    const ro_fpenv env = ro_fpenv_enter();
    ro_products p = {.m = m, .n = n, .k = alpha == 0 ? 0 : k, .alpha = alpha, .beta = beta};
    p.a = a, p.a_row = trans_a ? 1 : lda, p.a_col = trans_a ? lda : 1, p.a_next = stride_a;
    p.b = b, p.b_row = trans_b ? 1 : ldb, p.b_col = trans_b ? ldb : 1, p.b_next = stride_b;
    p.c = c, p.c_row = ldc, p.c_next = stride_c, p.batch = batch;
    const ro_status result = ro_ctx_table(ctx)->sgemm(ctx, &p);
    ro_fpenv_leave(env);
    return result;
}

ro_status ro_sgemm_batch(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                         float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                         float beta, float *c, int64_t ldc, int64_t stride_a, int64_t stride_b,
                         int64_t stride_c, int64_t batch) {
    return sgemm_run(ctx, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, stride_a,
                     stride_b, stride_c, batch);
}

ro_status ro_sgemm(ro_ctx *ctx, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
                   float alpha, const float *a, int64_t lda, const float *b, int64_t ldb,
                   float beta, float *c, int64_t ldc) {
    return sgemm_run(ctx, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, 0, 0, 0,
                     1);
}
