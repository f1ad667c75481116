/* ro_layer_norm, ro_softmax and ro_log_softmax: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

static ro_status run(ro_ctx *ctx, const char *name, const ro_row_job *job,
                     ro_status (*fused)(ro_ctx *ctx, const ro_row_job *job)) {
    if (job->cols < 1 || job->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 1..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)job->cols);
    if (job->rows < 0 || job->rows > RO_MAX_NUMEL / job->cols)
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)job->rows);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_layer_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps, const float *x,
                        const float *gamma, const float *beta, float *y, float *mean, float *rstd) {
    const ro_row_job job = {rows, cols, eps, x, gamma, beta, y, {mean, rstd}};
    return run(ctx, "layer_norm", &job, ro_ctx_table(ctx)->layer_norm);
}

ro_status ro_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y, float *m,
                     float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "softmax", &job, ro_ctx_table(ctx)->softmax);
}

ro_status ro_log_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y,
                         float *m, float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "log_softmax", &job, ro_ctx_table(ctx)->log_softmax);
}
