/* ro_layer_norm, ro_softmax and ro_log_softmax: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/math.h"

static ro_status fill(ro_ctx *ctx, int64_t count, uint32_t bits, float *out) {
    const ro_call call = {RO_OP_FILL, 0, {bits}, NULL, {RO_F32, 1, {count}}};
    return ro_run(ctx, &call, NULL, out);
}

/* Of rows without columns only the statistics have elements. By an operator, so that they may be on
 * a device. */
static ro_status without_columns(ro_ctx *ctx, const ro_row_job *job, const uint32_t bits[2]) {
    const ro_status status = fill(ctx, job->rows, bits[0], job->statistic[0]);
    return status == RO_OK ? fill(ctx, job->rows, bits[1], job->statistic[1]) : status;
}

/* nothing: the statistics of no columns. */
static ro_status run(ro_ctx *ctx, const char *name, const ro_row_job *job,
                     const uint32_t nothing[2],
                     ro_status (*fused)(ro_ctx *ctx, const ro_row_job *job)) {
    if (job->cols < 0 || job->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 0..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)job->cols);
    if (job->rows < 0 || job->rows > RO_MAX_NUMEL / (job->cols ? job->cols : 1))
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)job->rows);
    if (job->cols == 0)
        return without_columns(ctx, job, nothing);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

static const uint32_t mean_of_nothing[2] = {RO_QNAN_BITS, RO_QNAN_BITS}; /* 0 / 0, and from it */
static const uint32_t softmax_of_nothing[2] = {0xff800000, 0};           /* -inf, +0 */

ro_status ro_layer_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps, const float *x,
                        const float *gamma, const float *beta, float *y, float *mean, float *rstd) {
    const ro_row_job job = {rows, cols, eps, x, gamma, beta, y, {mean, rstd}};
    return run(ctx, "layer_norm", &job, mean_of_nothing, ro_ctx_table(ctx)->layer_norm);
}

ro_status ro_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y, float *m,
                     float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "softmax", &job, softmax_of_nothing, ro_ctx_table(ctx)->softmax);
}

ro_status ro_log_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y,
                         float *m, float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "log_softmax", &job, softmax_of_nothing, ro_ctx_table(ctx)->log_softmax);
}
