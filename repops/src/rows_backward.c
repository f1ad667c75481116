/* ro_layer_norm_backward, ro_softmax_backward and ro_log_softmax_backward: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"

typedef ro_status row_grad(ro_ctx *ctx, const ro_row_grad_job *job);

static ro_status check_sizes(ro_ctx *ctx, const char *name, const ro_row_grad_job *j) {
    if (j->cols < 0 || j->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 0..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)j->cols);
    if (j->rows < 0 || j->rows > RO_MAX_NUMEL / (j->cols ? j->cols : 1))
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)j->rows);
    return RO_OK;
}

static ro_status check_norm(ro_ctx *ctx, const char *name, const ro_row_grad_job *j) {
    const int64_t n = j->rows * j->cols;
    const ro_operand operands[] = {{"x", ro_words(j->x, n), RO_READ},
                                   {"gamma", ro_words(j->gamma, j->cols), RO_READ},
                                   {"mean", ro_words(j->statistic[0], j->rows), RO_READ},
                                   {"rstd", ro_words(j->statistic[1], j->rows), RO_READ},
                                   {"dy", ro_words(j->dy, n), RO_READ},
                                   {"dx", ro_words(j->dx, n), RO_WRITTEN, 1 << 0 | 1 << 4},
                                   {"dgamma", ro_words(j->dgamma, j->cols), RO_WRITTEN},
                                   {"dbeta", ro_words(j->dbeta, j->cols), RO_WRITTEN}};
    return ro_check_operands(ctx, name, operands, 8);
}

static ro_status check_softmax(ro_ctx *ctx, const char *name, const ro_row_grad_job *j) {
    const int64_t n = j->rows * j->cols;
    const ro_operand operands[] = {{"y", ro_words(j->x, n), RO_READ},
                                   {"dy", ro_words(j->dy, n), RO_READ},
                                   {"dx", ro_words(j->dx, n), RO_WRITTEN, 1 << 0 | 1 << 1}};
    return ro_check_operands(ctx, name, operands, 3);
}

static ro_status rows_backward_run(ro_ctx *ctx, const char *name, const ro_row_grad_job *job,
                                   int norm, row_grad *fused) {
    ro_status status = check_sizes(ctx, name, job);
    if (status != RO_OK || job->cols == 0) /* without columns all gradients are empty */
        return status;
    status = norm ? check_norm(ctx, name, job) : check_softmax(ctx, name, job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_layer_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                 const float *gamma, const float *mean, const float *rstd,
                                 const float *dy, float *dx, float *dgamma, float *dbeta) {
    const char *name = "layer_norm_backward";
    const ro_row_grad_job job = {rows, cols, x, gamma, {mean, rstd}, dy, dx, dgamma, dbeta};
    return ctx ? rows_backward_run(ctx, name, &job, 1, ro_ctx_table(ctx)->layer_norm_backward)
               : ro_missing(ctx, name, "ctx");
}

ro_status ro_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                              const float *dy, float *dx) {
    const char *name = "softmax_backward";
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return ctx ? rows_backward_run(ctx, name, &job, 0, ro_ctx_table(ctx)->softmax_backward)
               : ro_missing(ctx, name, "ctx");
}

ro_status ro_log_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                                  const float *dy, float *dx) {
    const char *name = "log_softmax_backward";
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return ctx ? rows_backward_run(ctx, name, &job, 0, ro_ctx_table(ctx)->log_softmax_backward)
               : ro_missing(ctx, name, "ctx");
}
