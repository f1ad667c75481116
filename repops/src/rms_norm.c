/* ro_rms_norm and ro_rms_norm_backward: checks; on a device also the composition from operators. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/op_movement.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"

static ro_status check_sizes(ro_ctx *ctx, const char *name, int64_t rows, int64_t cols) {
    if (!ctx)
        return ro_missing(ctx, name, "ctx");
    if (cols < 0 || cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 0..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)cols);
    if (!ro_matrix_fits(rows, cols))
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)rows);
    return RO_OK;
}

static ro_status fill_nan(ro_ctx *ctx, int64_t count, float *to) {
    const ro_call call = {RO_OP_FILL, 0, {RO_QNAN_BITS}, NULL, {RO_F32, 1, {count}}};
    return ro_run(ctx, &call, NULL, to);
}

/* ---- forward ---- */

static ro_status norm(ro_ctx *ctx, const ro_row_job *job) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->rms_norm(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_rms_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps, const float *x,
                      const float *gamma, float *y, float *rstd) {
    ro_status status = check_sizes(ctx, "rms_norm", rows, cols);
    if (status != RO_OK)
        return status;
    const ro_operand operands[] = {{"x", ro_words(x, rows * cols), RO_READ},
                                   {"gamma", ro_words(gamma, cols), RO_READ},
                                   {"y", ro_words(y, rows * cols), RO_WRITTEN, 1 << 0},
                                   {"rstd", ro_words(rstd, rows), RO_WRITTEN}};
    status = ro_check_operands(ctx, "rms_norm", operands, 4);
    if (status != RO_OK || rows == 0)
        return status;
    if (cols == 0)
        return fill_nan(ctx, rows, rstd);
    const ro_row_job job = {rows, cols, eps, x, gamma, NULL, y, {rstd}};
    return norm(ctx, &job);
}

/* ---- backward ---- */

/* Computes the gradients on a device by layer norm's kernel, without a mean. dgamma may be NULL. */
static ro_status device_gradients(ro_ctx *ctx, const ro_rms_grad_job *j, float *dx, float *dgamma) {
    const ro_row_grad_job rows = {j->rows, j->cols, j->x,   j->gamma, {NULL, j->rstd},
                                  j->dy,   dx,      dgamma, NULL};
    return ro_ctx_table(ctx)->layer_norm_backward(ctx, &rows);
}

static ro_status add_input_gradient(ro_ctx *ctx, const ro_rms_grad_job *j) {
    const int64_t count = j->rows * j->cols;
    float *at;
    ro_status status = ro_gradient_open(ctx, j->dx, count, &at);
    if (status == RO_OK)
        status = device_gradients(ctx, j, at, NULL);
    return ro_gradient_close(ctx, j->dx, count, at, status);
}

static ro_status add_scale_gradient(ro_ctx *ctx, const ro_rms_grad_job *j) {
    const ro_tensor x = ro_matrix(j->x, j->rows, j->cols), dy = ro_matrix(j->dy, j->rows, j->cols);
    const ro_tensor rstd = ro_matrix(j->rstd, j->rows, 1);
    float *at;
    ro_status status = ro_gradient_open(ctx, j->dgamma, j->cols, &at);
    if (status == RO_OK)
        status = ro_column_levels(ctx, RO_OP_RMS_DGAMMA, j->rows, j->cols, 3,
                                  (const ro_tensor *const[]){&dy, &x, &rstd}, at);
    return ro_gradient_close(ctx, j->dgamma, j->cols, at, status);
}

static ro_status gradients_by_operators(ro_ctx *ctx, const ro_rms_grad_job *j) {
    ro_status status = RO_OK;
    if (j->dgamma.data && j->dx.data && !j->dgamma.add && !j->dx.add)
        return device_gradients(ctx, j, j->dx.data, j->dgamma.data);
    if (j->dgamma.data) /* dgamma comes first, as dx may overwrite dy or x, which it reads */
        status = add_scale_gradient(ctx, j);
    if (status == RO_OK && j->dx.data && j->rows > 0)
        status = add_input_gradient(ctx, j);
    return status;
}

static ro_status fused_gradients(ro_ctx *ctx, const ro_rms_grad_job *job) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->rms_norm_backward(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

static ro_status check_backward(ro_ctx *ctx, const ro_rms_grad_job *j) {
    const int64_t n = j->rows * j->cols;
    const int wanted = RO_WRITTEN | RO_OPTIONAL;
    const ro_operand operands[] = {
        {"x", ro_words(j->x, n), RO_READ},
        {"gamma", ro_words(j->gamma, j->cols), RO_READ},
        {"rstd", ro_words(j->rstd, j->rows), RO_READ},
        {"dy", ro_words(j->dy, n), RO_READ},
        {"dx", ro_words(j->dx.data, n), wanted, j->dx.add ? 0 : 1 << 0 | 1 << 3},
        {"dgamma", ro_words(j->dgamma.data, j->cols), wanted}};
    return ro_check_operands(ctx, "rms_norm_backward", operands, 6);
}

ro_status ro_rms_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                               const float *gamma, const float *rstd, const float *dy,
                               ro_gradient dx, ro_gradient dgamma) {
    ro_status status = check_sizes(ctx, "rms_norm_backward", rows, cols);
    if (status != RO_OK || cols == 0) /* without columns all gradients are empty */
        return status;
    const ro_rms_grad_job job = {rows, cols, x, gamma, rstd, dy, dx, dgamma};
    status = check_backward(ctx, &job);
    if (status != RO_OK || (!dx.data && !dgamma.data))
        return status;
    return ro_ctx_table(ctx)->rms_norm_backward ? fused_gradients(ctx, &job)
                                                : gradients_by_operators(ctx, &job);
}
