/* ro_layer_norm_backward, ro_softmax_backward and ro_log_softmax_backward: checks, and their
 * operators one by one where a backend has nothing better. What reads dy and x for sums comes
 * first: dx may be one of them. */
#include "repops/device.h"
#include "repops/src/by_operators.h"
#include "repops/src/fpenv.h"

typedef ro_status row_grad(ro_ctx *ctx, const ro_row_grad_job *job);

/* Where sums stand: one number for each row, twice, and room for lower levels. */
typedef struct {
    float *sg, *sgx, *room;
} sums;

static ro_shape whole(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 2, {j->rows, j->cols}};
}

static ro_shape of_rows(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 1, {j->rows}};
}

static ro_shape of_columns(const ro_row_grad_job *j) {
    return (ro_shape){RO_F32, 1, {j->cols}};
}

static int64_t room_of(const ro_row_grad_job *j) {
    const int64_t rows = j->rows * ro_blocks_of(j->cols, RO_REDUCE_BLOCK);
    const int64_t columns = j->dgamma ? j->cols * ro_blocks_of(j->rows, RO_COLUMN_GROUP) : 0;
    return 2 * (rows > columns ? rows : columns);
}

static ro_status norm_column_sums(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j);
    const float *mean = j->statistic[0], *rstd = j->statistic[1];
    const ro_reduction gamma = {RO_OP_LN_DGAMMA,  RO_OP_SUM_ROWS,           j->rows, j->cols, 4,
                                {x, x, row, row}, {j->dy, j->x, mean, rstd}};
    const ro_reduction beta = {RO_OP_SUM_ROWS, RO_OP_SUM_ROWS, j->rows, j->cols, 1, {x}, {j->dy}};
    const ro_status status = ro_reduce_columns(ctx, &gamma, s->room, j->dgamma);
    return status == RO_OK ? ro_reduce_columns(ctx, &beta, s->room, j->dbeta) : status;
}

static ro_status norm_row_sums(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j), col = of_columns(j);
    const ro_reduction sg = {RO_OP_REDUCE_DOT, RO_OP_REDUCE_SUM, j->rows, j->cols, 2,
                             {x, col},         {j->dy, j->gamma}};
    const ro_reduction sgx = {RO_OP_REDUCE_LN_GX,
                              RO_OP_REDUCE_SUM,
                              j->rows,
                              j->cols,
                              5,
                              {x, col, x, row, row},
                              {j->dy, j->gamma, j->x, j->statistic[0], j->statistic[1]}};
    const ro_status status = ro_reduce_rows(ctx, &sg, s->room, s->sg);
    return status == RO_OK ? ro_reduce_rows(ctx, &sgx, s->room, s->sgx) : status;
}

static ro_status norm_by_operators(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), row = of_rows(j), col = of_columns(j);
    const ro_shape in[] = {x, col, x, row, row, row, row};
    const void *data[] = {j->dy, j->gamma, j->x, j->statistic[0], j->statistic[1], s->sg, s->sgx};
    const ro_call call = {RO_OP_LN_DX, 7, {0}, in, x};
    ro_status status = norm_column_sums(ctx, j, s);
    if (status == RO_OK)
        status = norm_row_sums(ctx, j, s);
    return status == RO_OK ? ro_run(ctx, &call, data, j->dx) : status;
}

static ro_status softmax_by_operators(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), in[] = {x, x, of_rows(j)};
    const ro_reduction sum = {RO_OP_REDUCE_DOT, RO_OP_REDUCE_SUM, j->rows, j->cols, 2,
                              {x, x},           {j->dy, j->x}};
    const ro_call call = {RO_OP_SOFTMAX_GRAD, 3, {0}, in, x};
    const ro_status status = ro_reduce_rows(ctx, &sum, s->room, s->sg);
    return status == RO_OK ? ro_run(ctx, &call, (const void *[]){j->x, j->dy, s->sg}, j->dx)
                           : status;
}

static ro_status log_softmax_by_operators(ro_ctx *ctx, const ro_row_grad_job *j, const sums *s) {
    const ro_shape x = whole(j), in[] = {x, x, of_rows(j)};
    const ro_reduction sum = {RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, j->rows, j->cols, 1, {x},
                              {j->dy}};
    const ro_call call = {RO_OP_LOG_SOFTMAX_GRAD, 3, {0}, in, x};
    const ro_status status = ro_reduce_rows(ctx, &sum, s->room, s->sg);
    return status == RO_OK ? ro_run(ctx, &call, (const void *[]){j->x, j->dy, s->sg}, j->dx)
                           : status;
}

static ro_status run_operators(ro_ctx *ctx, const ro_row_grad_job *j,
                               ro_status (*by_operators)(ro_ctx *, const ro_row_grad_job *,
                                                         const sums *)) {
    sums s;
    s.sg = ro_alloc(ctx, (size_t)(2 * j->rows + room_of(j)) * sizeof(float));
    if (!s.sg)
        return RO_ERR_MEMORY;
    s.sgx = s.sg + j->rows, s.room = s.sgx + j->rows;
    const ro_status status = by_operators(ctx, j, &s);
    ro_free(ctx, s.sg);
    return status;
}

static ro_status check(ro_ctx *ctx, const char *name, const ro_row_grad_job *j) {
    if (j->cols < 1 || j->cols > RO_ROW_COLS_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: cols must be 1..%d, got %lld", name, RO_ROW_COLS_MAX,
                       (long long)j->cols);
    if (j->rows < 0 || j->rows > RO_MAX_NUMEL / j->cols)
        return ro_fail(ctx, RO_ERR_ARG, "%s: rows * cols must be 0..2^40, got %lld rows", name,
                       (long long)j->rows);
    return RO_OK;
}

static ro_status run(ro_ctx *ctx, const char *name, const ro_row_grad_job *job, row_grad *fused,
                     ro_status (*by_operators)(ro_ctx *, const ro_row_grad_job *, const sums *)) {
    ro_status status = check(ctx, name, job);
    if (status != RO_OK)
        return status;
    if (!fused)
        return run_operators(ctx, job, by_operators);
    const ro_fpenv env = ro_fpenv_enter();
    status = fused(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_layer_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                                 const float *gamma, const float *mean, const float *rstd,
                                 const float *dy, float *dx, float *dgamma, float *dbeta) {
    const ro_row_grad_job job = {rows, cols, x, gamma, {mean, rstd}, dy, dx, dgamma, dbeta};
    return run(ctx, "layer_norm_backward", &job, ro_ctx_table(ctx)->layer_norm_backward,
               norm_by_operators);
}

ro_status ro_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                              const float *dy, float *dx) {
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return run(ctx, "softmax_backward", &job, ro_ctx_table(ctx)->softmax_backward,
               softmax_by_operators);
}

ro_status ro_log_softmax_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *y,
                                  const float *dy, float *dx) {
    const ro_row_grad_job job = {.rows = rows, .cols = cols, .x = y, .dy = dy, .dx = dx};
    return run(ctx, "log_softmax_backward", &job, ro_ctx_table(ctx)->log_softmax_backward,
               log_softmax_by_operators);
}
