/* A strided product with generated data, for the tests of ro_sgemm. */
#ifndef TESTS_SGEMM_PRODUCT_H
#define TESTS_SGEMM_PRODUCT_H

#include "repops/tools/op_data.h"

#include <criterion/criterion.h>

enum { GUARD = 8 /* elements beyond the last row, which nothing may touch */ };

static const char *const backends[] = {"scalar", "avx2", "avx512"};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* NULL if this processor has no such backend. */
static inline ro_ctx *context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL;
}

typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
    float alpha, beta;
    data_class class;
    float *a, *b, *c, *out; /* c before, c after */
    int64_t c_count;
} product;

/* ---- data ---- */

static inline int64_t extent(int64_t rows, int64_t ld, int64_t stride, int64_t batch) {
    return rows * ld + stride * (batch > 0 ? batch - 1 : 0) + GUARD;
}

static inline float *numbers(int64_t count, uint64_t seed, int input, data_class class) {
    uint32_t *x = malloc((size_t)count * sizeof *x);
    cr_assert(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = case_f32(case_word(seed, input, i), class);
    return (float *)x;
}

static inline void fill(product *p, uint64_t seed) {
    const int64_t a_rows = p->trans_a ? p->k : p->m, b_rows = p->trans_b ? p->n : p->k;
    p->c_count = extent(p->m, p->ldc, p->stride_c, p->batch);
    p->a = numbers(extent(a_rows, p->lda, p->stride_a, p->batch), seed, 0, p->class);
    p->b = numbers(extent(b_rows, p->ldb, p->stride_b, p->batch), seed, 1, p->class);
    p->c = numbers(p->c_count, seed, 2, p->class);
    p->out = malloc((size_t)p->c_count * sizeof(float));
}

static inline void release(product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->out);
}

static inline ro_status call(ro_ctx *ctx, const product *p) {
    memcpy(p->out, p->c, (size_t)p->c_count * sizeof(float));
    if (p->batch == 1)
        return ro_sgemm(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b,
                        p->ldb, p->beta, p->out, p->ldc);
    return ro_sgemm_batch(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, p->a, p->lda,
                          p->b, p->ldb, p->beta, p->out, p->ldc, p->stride_a, p->stride_b,
                          p->stride_c, p->batch);
}

#endif
