/* ro_layer_norm, ro_softmax and ro_log_softmax: checks, and their operators one by one where a
 * backend has nothing better. */
#include "repops/src/by_operators.h"
#include "repops/src/fpenv.h"

static ro_status reduce(ro_ctx *ctx, const ro_row_job *j, int op, int next, const float *second,
                        float *out) {
    const ro_reduction r = {op,
                            next,
                            j->rows,
                            j->cols,
                            second ? 2 : 1,
                            {{RO_F32, 2, {j->rows, j->cols}}, {RO_F32, 1, {j->rows}}},
                            {j->x, second}};
    return ro_reduce_rows(ctx, &r, j->y, out); /* y has room for all levels */
}

static ro_status run_one(ro_ctx *ctx, int op, const int64_t attr[2], const ro_shape *in, int inputs,
                         const void *const *data, ro_shape output, float *out) {
    const ro_call call = {op, inputs, {attr[0], attr[1]}, in, output};
    return ro_run(ctx, &call, data, out);
}

static ro_status norm_by_operators(ro_ctx *ctx, const ro_row_job *j) {
    const ro_shape x = {RO_F32, 2, {j->rows, j->cols}}, row = {RO_F32, 1, {j->rows}};
    const ro_shape col = {RO_F32, 1, {j->cols}};
    float *mean = j->statistic[0], *rstd = j->statistic[1];
    const int64_t divide[] = {ro_attr_f32((float)j->cols), 0};
    const int64_t root[] = {j->cols, ro_attr_f32(j->eps)}, none[] = {0, 0};
    ro_status status = reduce(ctx, j, RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, NULL, mean);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_DIV_CONST, divide, &row, 1, (const void *[]){mean}, row, mean);
    if (status == RO_OK)
        status = reduce(ctx, j, RO_OP_REDUCE_SQDEV, RO_OP_REDUCE_SUM, mean, rstd);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_LN_RSTD, root, &row, 1, (const void *[]){rstd}, row, rstd);
    if (status == RO_OK)
        status = run_one(ctx, RO_OP_LAYERNORM, none, (const ro_shape[]){x, row, row, col, col}, 5,
                         (const void *[]){j->x, mean, rstd, j->gamma, j->beta}, x, j->y);
    return status;
}

static ro_status either_by_operators(ro_ctx *ctx, const ro_row_job *j, int op) {
    const ro_shape x = {RO_F32, 2, {j->rows, j->cols}}, row = {RO_F32, 1, {j->rows}};
    float *m = j->statistic[0], *l = j->statistic[1];
    ro_status status = reduce(ctx, j, RO_OP_REDUCE_MAX, RO_OP_REDUCE_MAX, NULL, m);
    if (status == RO_OK)
        status = reduce(ctx, j, RO_OP_REDUCE_EXPSUM, RO_OP_REDUCE_SUM, m, l);
    if (status == RO_OK)
        status = run_one(ctx, op, (const int64_t[]){0, 0}, (const ro_shape[]){x, row, row}, 3,
                         (const void *[]){j->x, m, l}, x, j->y);
    return status;
}

static ro_status softmax_by_operators(ro_ctx *ctx, const ro_row_job *j) {
    return either_by_operators(ctx, j, RO_OP_SOFTMAX);
}

static ro_status log_softmax_by_operators(ro_ctx *ctx, const ro_row_job *j) {
    return either_by_operators(ctx, j, RO_OP_LOG_SOFTMAX);
}

static ro_status run(ro_ctx *ctx, const char *name, const ro_row_job *job,
                     void (*fused)(ro_ctx *ctx, const ro_row_job *job),
                     ro_status (*by_operators)(ro_ctx *ctx, const ro_row_job *job)) {
    if (job->cols < 1 || job->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 1..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)job->cols);
    if (job->rows < 0 || job->rows > RO_MAX_NUMEL / job->cols)
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)job->rows);
    if (!fused)
        return by_operators(ctx, job);
    const ro_fpenv env = ro_fpenv_enter();
    fused(ctx, job);
    ro_fpenv_leave(env);
    return RO_OK;
}

ro_status ro_layer_norm(ro_ctx *ctx, int64_t rows, int64_t cols, float eps, const float *x,
                        const float *gamma, const float *beta, float *y, float *mean, float *rstd) {
    const ro_row_job job = {rows, cols, eps, x, gamma, beta, y, {mean, rstd}};
    return run(ctx, "layer_norm", &job, ro_ctx_table(ctx)->layer_norm, norm_by_operators);
}

ro_status ro_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y, float *m,
                     float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "softmax", &job, ro_ctx_table(ctx)->softmax, softmax_by_operators);
}

ro_status ro_log_softmax(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x, float *y,
                         float *m, float *l) {
    const ro_row_job job = {.rows = rows, .cols = cols, .x = x, .y = y, .statistic = {m, l}};
    return run(ctx, "log_softmax", &job, ro_ctx_table(ctx)->log_softmax, log_softmax_by_operators);
}
