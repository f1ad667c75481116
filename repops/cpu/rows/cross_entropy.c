/* Fused softmax cross-entropy, SPEC.md section 7.2. A row of logits is read from memory once; its
 * exponentials are stored where its gradient will be. */
#include "repops/cpu/rows/levels.h"
#include "repops/cpu/rows/max.h"

static void scale_exponentials(float *e, float r, float dloss, int64_t cols) {
    for (int64_t i = 0; i < cols; i++)
        e[i] = ro_canon(e[i] * r * dloss);
}

/* Writes the results of an ignored row, which do not depend on its x. */
static void clear_row(const ro_cross_entropy_job *j, int64_t row) {
    j->loss[row] = 0.0f;
    if (j->dx)
        memset(j->dx + row * j->cols, 0, (size_t)j->cols * sizeof(float));
}

static void run_row(const ro_cross_entropy_job *j, int64_t row) {
    const float *x = j->x + row * j->cols, m = max_of(x, j->cols);
    float *dx = j->dx ? j->dx + row * j->cols : NULL;
    const int32_t id = j->ids[row];
    const int valid = id >= 0 && id < j->cols;
    const float target = valid ? x[id] - m : 0.0f; /* read before the row is overwritten in place */
    const float l = sum_of_exponentials(x, m, j->cols, dx, NULL);
    if (j->m)
        j->m[row] = m;
    if (j->l)
        j->l[row] = l;
    j->loss[row] = valid ? ro_canon(ro_log(l) - target) : ro_from_bits(RO_QNAN_BITS);
    if (!dx)
        return;
    const float r = 1.0f / l, dloss = j->dloss[row];
    scale_exponentials(dx, r, dloss, j->cols);
    if (valid)
        dx[id] = ro_canon((ro_exp(target) * r - 1.0f) * dloss);
}

static void run_rows(void *user, int64_t first, int64_t last, int worker) {
    const ro_cross_entropy_job *j = user;
    (void)worker;
    for (int64_t row = first; row < last; row++) {
        const int ignored = j->ids[row] == j->ignore;
        if (!ignored || j->m || j->l)
            run_row(j, row);
        if (ignored)
            clear_row(j, row);
    }
}

static ro_status cross_entropy(ro_ctx *ctx, const ro_cross_entropy_job *job) {
    const int64_t grain = 1 + (1 << 14) / max_i64(1, job->cols);
    ro_pool_for(ro_ctx_pool(ctx), job->rows, grain, run_rows, (void *)(uintptr_t)job);
    return RO_OK;
}
RO_FUSED(cross_entropy, cross_entropy)
