#include "repops/tools/product.h"
#include "repops/tools/case_run.h"
#include "repops/tools/golden.h"

#include <stdio.h>

/* ---- data ---- */

static int64_t extent(int64_t rows, int64_t ld, int64_t stride, int64_t batch) {
    return rows * ld + stride * (batch > 0 ? batch - 1 : 0) + PRODUCT_GUARD;
}

static float *numbers(int64_t count, uint64_t seed, int input, data_class class) {
    uint32_t *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = case_f32(case_word(seed, input, i), class);
    return (float *)x;
}

int product_fill(product *p, uint64_t seed) {
    const int64_t a_rows = p->trans_a ? p->k : p->m, b_rows = p->trans_b ? p->n : p->k;
    p->c_count = extent(p->m, p->ldc, p->stride_c, p->batch);
    p->a = numbers(extent(a_rows, p->lda, p->stride_a, p->batch), seed, 0, p->class);
    p->b = numbers(extent(b_rows, p->ldb, p->stride_b, p->batch), seed, 1, p->class);
    p->c = numbers(p->c_count, seed, 2, p->class);
    p->out = malloc((size_t)p->c_count * sizeof(float));
    return p->a && p->b && p->c && p->out;
}

void product_free(product *p) {
    free(p->a);
    free(p->b);
    free(p->c);
    free(p->out);
}

static ro_status multiply(ro_ctx *ctx, const product *p, const float *a, const float *b, float *c) {
    if (p->batch == 1)
        return ro_sgemm(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, a, p->lda, b,
                        p->ldb, p->beta, c, p->ldc);
    return ro_sgemm_batch(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, a, p->lda, b,
                          p->ldb, p->beta, c, p->ldc, p->stride_a, p->stride_b, p->stride_c,
                          p->batch);
}

ro_status product_run(ro_ctx *ctx, const product *p) {
    const int64_t a_rows = p->trans_a ? p->k : p->m, b_rows = p->trans_b ? p->n : p->k;
    const size_t a_size = sizeof(float) * (size_t)extent(a_rows, p->lda, p->stride_a, p->batch);
    const size_t b_size = sizeof(float) * (size_t)extent(b_rows, p->ldb, p->stride_b, p->batch);
    const size_t c_size = sizeof(float) * (size_t)p->c_count;
    ro_status status = RO_ERR_MEMORY;
    memcpy(p->out, p->c, c_size);
    float *a = case_upload(ctx, p->a, a_size), *b = case_upload(ctx, p->b, b_size);
    float *c = case_upload(ctx, p->out, c_size);
    if (a && b && c)
        status = multiply(ctx, p, a, b, c);
    if (status == RO_OK && c != p->out)
        status = ro_read(ctx, p->out, c, c_size);
    if (a)
        case_drop(ctx, p->a, a);
    if (b)
        case_drop(ctx, p->b, b);
    if (c)
        case_drop(ctx, p->out, c);
    return status;
}

/* ---- golden cases ---- */

int golden_product_parse(const char *line, golden_product *out) {
    *out = (golden_product){.hash = "-"};
    return sscanf(line, "%39s %d %lldx%lldx%lld %lld %lld %23s %23s %11s %64s", out->name,
                  &out->trans, &out->m, &out->n, &out->k, &out->pad, &out->batch, out->alpha,
                  out->beta, out->class, out->hash) >= 10;
}

int golden_product_build(const golden_product *g, product *p) {
    *p = (product){.trans_a = g->trans & 1, .trans_b = g->trans >> 1};
    p->m = g->m, p->n = g->n, p->k = g->k, p->batch = g->batch;
    p->lda = (p->trans_a ? p->m : p->k) + g->pad, p->stride_a = p->lda * (p->trans_a ? p->k : p->m);
    p->ldb = (p->trans_b ? p->k : p->n) + g->pad, p->stride_b = p->ldb * (p->trans_b ? p->n : p->k);
    p->ldc = p->n + g->pad, p->stride_c = p->ldc * p->m;
    p->alpha = strtof(g->alpha, NULL), p->beta = strtof(g->beta, NULL);
    p->class = golden_class(g->class);
    return p->class != DATA_END && product_fill(p, golden_seed(g->name));
}
