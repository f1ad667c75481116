/* ro_layer_norm, ro_softmax and ro_log_softmax: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/math.h"
#include "repops/src/operands.h"
#include "repops/op_movement.h"

static ro_status rows_fill(ro_ctx *ctx, int64_t count, uint32_t bits, float *out) {
    const ro_call call = {RO_OP_FILL, 0, {bits}, NULL, {RO_F32, 1, {count}}};
    return ro_run(ctx, &call, NULL, out);
}

/* Fills the statistics of rows without columns; the other outputs are empty. An operator writes
 * them, since they may be on a device. */
static ro_status without_columns(ro_ctx *ctx, const ro_row_job *job, const uint32_t bits[2]) {
    const ro_status status = rows_fill(ctx, job->rows, bits[0], job->statistic[0]);
    return status == RO_OK ? rows_fill(ctx, job->rows, bits[1], job->statistic[1]) : status;
}

typedef struct {
    const char *name, *statistic[2];
    uint32_t nothing[2]; /* bits of the statistics of a row without columns */
    int scaled;          /* nonzero: gamma and beta are read */
} row_function;

static const row_function layer_norm = {"layer_norm",
                                        {"mean", "rstd"},
                                        {RO_QNAN_BITS, RO_QNAN_BITS},
                                        1}; /* 0 / 0, which rstd inherits */
static const row_function softmax = {"softmax", {"m", "l"}, {RO_MINUS_INFINITY_BITS, 0}, 0};
static const row_function log_softmax = {"log_softmax", {"m", "l"}, {RO_MINUS_INFINITY_BITS, 0}, 0};

static ro_status rows_check(ro_ctx *ctx, const row_function *f, const ro_row_job *j) {
    if (j->cols < 0 || j->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 0..%d, got %lld", f->name,
                       RO_ROW_COLS_MAX, (long long)j->cols);
    if (j->rows < 0 || j->rows > RO_MAX_NUMEL / (j->cols ? j->cols : 1))
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", f->name,
                       (long long)j->rows);
    const int64_t n = j->rows * j->cols, scaled = f->scaled ? j->cols : 0;
    const ro_operand operands[] = {
        {"x", ro_words(j->x, n), RO_READ},
        {"gamma", ro_words(j->gamma, scaled), RO_READ},
        {"beta", ro_words(j->beta, scaled), RO_READ},
        {"y", ro_words(j->y, n), RO_WRITTEN},
        {f->statistic[0], ro_words(j->statistic[0], j->rows), RO_WRITTEN},
        {f->statistic[1], ro_words(j->statistic[1], j->rows), RO_WRITTEN}};
    return ro_check_operands(ctx, f->name, operands, 6);
}

static ro_status rows_run(ro_ctx *ctx, const row_function *f, const ro_row_job *job,
                          ro_status (*fused)(ro_ctx *ctx, const ro_row_job *job)) {
    ro_status status = rows_check(ctx, f, job);
    if (status != RO_OK)
        return status;
    if (job->cols == 0)
        return without_columns(ctx, job, f->nothing);
    const ro_fpenv env = ro_fpenv_enter();
    status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_layer_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps, const float *x,
                        const float *gamma, const float *beta, float *y, float *mean, float *rstd) {
    const ro_row_job job = {rows, cols, eps, x, gamma, beta, y, {mean, rstd}};
    return ctx ? rows_run(ctx, &layer_norm, &job, ro_ctx_table(ctx)->layer_norm)
               : ro_missing(ctx, layer_norm.name, "ctx");
}

ro_status ro_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y, float *m,
                     float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return ctx ? rows_run(ctx, &softmax, &job, ro_ctx_table(ctx)->softmax)
               : ro_missing(ctx, softmax.name, "ctx");
}

ro_status ro_log_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y,
                         float *m, float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return ctx ? rows_run(ctx, &log_softmax, &job, ro_ctx_table(ctx)->log_softmax)
               : ro_missing(ctx, log_softmax.name, "ctx");
}
