/* ro_cross_entropy: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"

static ro_status check_memory(ro_ctx *ctx, const ro_cross_entropy_job *j) {
    const int64_t n = j->rows * j->cols;
    const ro_operand operands[] = {{"x", ro_words(j->x, n), RO_READ},
                                   {"ids", ro_words(j->ids, j->rows), RO_READ},
                                   {"dloss", ro_words(j->dloss, j->rows), RO_OPTIONAL},
                                   {"loss", ro_words(j->loss, j->rows), RO_WRITTEN},
                                   {"m", ro_words(j->m, j->rows), RO_WRITTEN | RO_OPTIONAL},
                                   {"l", ro_words(j->l, j->rows), RO_WRITTEN | RO_OPTIONAL},
                                   {"dx", ro_words(j->dx, n), RO_WRITTEN | RO_OPTIONAL, 1 << 0}};
    return ro_check_operands(ctx, "cross_entropy", operands, 7);
}

ro_status ro_cross_entropy(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                           const int32_t *ids, int64_t ignore, const float *dloss, float *loss,
                           float *m, float *l, float *dx) {
    if (!ctx)
        return ro_missing(ctx, "cross_entropy", "ctx");
    if (rows < 0 || cols < 0 || rows > RO_MAX_NUMEL || (cols > 0 && rows > RO_MAX_NUMEL / cols))
        return ro_fail(ctx, RO_ERR_ARG,
                       "cross_entropy: rows and cols must be 0..2^40 together, got %lld and %lld",
                       (long long)rows, (long long)cols);
    if (cols > RO_CROSS_ENTROPY_COLS_MAX)
        return ro_fail(ctx, RO_ERR_UNSUPPORTED, "cross_entropy: cols must be at most %d, got %lld",
                       RO_CROSS_ENTROPY_COLS_MAX, (long long)cols);
    if (dx && !dloss && rows > 0 && cols > 0)
        return ro_fail(ctx, RO_ERR_ARG, "cross_entropy: dx needs dloss");
    const ro_cross_entropy_job job = {rows, cols, x, ids, ignore, dloss, loss, m, l, dx};
    ro_status status = check_memory(ctx, &job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->cross_entropy(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
