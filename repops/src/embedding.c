/* ro_embedding_backward: checks. */
#include "repops/src/layers.h"

#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

enum { POSITIONS_LOG = 31 };

static ro_status check(ro_ctx *ctx, const ro_embedding_job *j) {
    if (!ro_matrix_fits(j->rows, j->cols) || !ro_matrix_fits(j->positions, j->cols))
        return ro_fail(ctx, RO_ERR_ARG,
                       "embedding_backward: rows * cols and positions * cols must be 0..2^40, got "
                       "%lld rows, %lld positions, %lld cols",
                       (long long)j->rows, (long long)j->positions, (long long)j->cols);
    if (j->positions > INT64_C(1) << POSITIONS_LOG)
        return ro_fail(ctx, RO_ERR_ARG, "embedding_backward: positions must be 0..2^%d, got %lld",
                       POSITIONS_LOG, (long long)j->positions);
    const ro_operand operands[] = {
        {"dy", ro_words(j->dy, j->positions * j->cols), RO_READ},
        {"ids", ro_words(j->ids, j->positions), RO_READ},
        {"table", ro_words(j->table.data, j->rows * j->cols), RO_WRITTEN | RO_OPTIONAL}};
    return ro_check_operands(ctx, "embedding_backward", operands, 3);
}

static ro_status run(ro_ctx *ctx, const ro_embedding_job *job) {
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->embedding_backward(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_embedding_backward(ro_ctx *ctx, int64_t rows, int64_t cols, int64_t positions,
                                const float *dy, const int32_t *ids, ro_gradient table) {
    const ro_embedding_job job = {rows, cols, positions, dy, ids, table};
    if (!ctx)
        return ro_missing(ctx, "embedding_backward", "ctx");
    const ro_status status = check(ctx, &job);
    if (status != RO_OK || !table.data || rows * cols == 0)
        return status;
    return run(ctx, &job);
}
