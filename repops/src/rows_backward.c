/* ro_layer_norm_backward, ro_softmax_backward and ro_log_softmax_backward: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

typedef ro_status row_grad(ro_ctx *ctx, const ro_row_grad_job *job);

static ro_status check(ro_ctx *ctx, const char *name, const ro_row_grad_job *j) {
    if (j->cols < 0 || j->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 0..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)j->cols);
    if (j->rows < 0 || j->rows > RO_MAX_NUMEL / (j->cols ? j->cols : 1))
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)j->rows);
    return RO_OK;
}

static ro_status run(ro_ctx *ctx, const char *name, const ro_row_grad_job *job, row_grad *fused) {
    ro_status status = check(ctx, name, job);
    if (status != RO_OK || job->cols == 0) /* no gradient has an element then */
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_layer_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                 const float *gamma, const float *mean, const float *rstd,
                                 const float *dy, float *dx, float *dgamma, float *dbeta) {
    const ro_row_grad_job job = {rows, cols, x, gamma, {mean, rstd}, dy, dx, dgamma, dbeta};
    return run(ctx, "layer_norm_backward", &job, ro_ctx_table(ctx)->layer_norm_backward);
}

ro_status ro_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                              const float *dy, float *dx) {
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return run(ctx, "softmax_backward", &job, ro_ctx_table(ctx)->softmax_backward);
}

ro_status ro_log_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                                  const float *dy, float *dx) {
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return run(ctx, "log_softmax_backward", &job, ro_ctx_table(ctx)->log_softmax_backward);
}
