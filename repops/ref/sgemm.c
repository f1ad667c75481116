/* An element of a strided product. SPEC.md section 3.1. */
#include "repops/ref/ref.h"

/* Returns one chunk's sum. a_step and b_step are strides of k. */
static float chunk_sum(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t k) {
    float acc = 0;
    for (int64_t p = 0; p < k; p++)
        acc = ro_fma(a[p * a_step], b[p * b_step], acc);
    return acc;
}

float ro_ref_sgemm(int trans_a, int trans_b, int64_t i, int64_t j, int64_t k, float alpha,
                   const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                   const float *c, int64_t ldc) {
    const int64_t a_step = trans_a ? lda : 1, b_step = trans_b ? 1 : ldb;
    const float *row = a + (trans_a ? i : i * lda), *col = b + (trans_b ? j * ldb : j);
    float tot = 0;
    if (alpha == 0)
        k = 0;
    for (int64_t p = 0; p < k; p += RO_DOT_CHUNK) {
        const int64_t steps = k - p < RO_DOT_CHUNK ? k - p : RO_DOT_CHUNK;
        tot = tot + chunk_sum(row + p * a_step, a_step, col + p * b_step, b_step, steps);
    }
    const float t = tot * alpha;
    return ro_canon(beta == 0 ? t : ro_fma(beta, c[i * ldc + j], t));
}
