/* ro_cross_entropy: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

ro_status ro_cross_entropy(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                           const int32_t *ids, int64_t ignore, const float *dloss, float *loss,
                           float *m, float *l, float *dx) {
    if (rows < 0 || cols < 0 || rows > RO_MAX_NUMEL || (cols > 0 && rows > RO_MAX_NUMEL / cols))
        return ro_fail(ctx, RO_ERR_ARG,
                       "cross_entropy: rows and cols must be 0..2^40 together, got %lld and %lld",
                       (long long)rows, (long long)cols);
    if (cols > RO_CROSS_ENTROPY_COLS_MAX)
        return ro_fail(ctx, RO_ERR_UNSUPPORTED, "cross_entropy: cols must be at most %d, got %lld",
                       RO_CROSS_ENTROPY_COLS_MAX, (long long)cols);
    if (dx && !dloss)
        return ro_fail(ctx, RO_ERR_ARG, "cross_entropy: dx needs dloss");
    const ro_cross_entropy_job job = {rows, cols, x, ids, ignore, dloss, loss, m, l, dx};
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->cross_entropy(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
