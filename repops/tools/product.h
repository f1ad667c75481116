/* A strided product with generated data, for tests of ro_sgemm, for repops-conform, and for the
 * cases of tests/golden/sgemm.txt. */
#ifndef REPOPS_TOOLS_PRODUCT_H
#define REPOPS_TOOLS_PRODUCT_H

#include "repops/tools/op_data.h"

enum { PRODUCT_GUARD = 8 /* elements after the last row, which must stay untouched */ };

typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k, lda, ldb, ldc, batch, stride_a, stride_b, stride_c;
    float alpha, beta;
    data_class class;
    float *a, *b, *c, *out; /* c before the product, out after it */
    int64_t c_count;
} product;

/* Returns 0 if there is no memory; product_free() is needed even then. */
int product_fill(product *p, uint64_t seed);
void product_free(product *p);

/* Runs ro_sgemm or ro_sgemm_batch on a copy of c in `out`. */
ro_status product_run(ro_ctx *ctx, const product *p);

/* ---- tests/golden/sgemm.txt ---- */

typedef struct {
    char name[40], alpha[24], beta[24], class[12], hash[65];
    int trans;
    long long m, n, k, pad, batch;
} golden_product;

/* Returns 0 if the line is not a case. */
int golden_product_parse(const char *line, golden_product *out);

/* Builds a case with its data. Returns 0 if there is no such class or no memory. */
int golden_product_build(const golden_product *g, product *p);

#endif
