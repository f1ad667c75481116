/* ro_rms_norm and ro_rms_norm_backward: checks, and the operators. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"

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

static ro_status statistics(ro_ctx *ctx, const ro_tensor *x, float eps, ro_tensor *rstd) {
    const int64_t rows = x->shape.dim[0], cols = x->shape.dim[1];
    float *at;
    ro_status status = ro_temporary(ctx, rows, &at);
    if (status == RO_OK)
        status = ro_reduce_levels(ctx, RO_OP_REDUCE_DOT, rows, cols, 2,
                                  (const ro_tensor *const[]){x, x}, at);
    const ro_tensor ss = ro_matrix(at, rows, 1);
    if (status == RO_OK)
        status = ro_op_ln_rstd(ctx, &ss, &(ro_op_ln_rstd_attrs){cols, eps}, rstd);
    ro_free(ctx, at);
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
    const ro_tensor tx = ro_matrix(x, rows, cols), tgamma = ro_matrix(gamma, 1, cols);
    ro_tensor trstd = ro_matrix(rstd, rows, 1), ty = ro_matrix(y, rows, cols);
    status = statistics(ctx, &tx, eps, &trstd);
    return status == RO_OK ? ro_op_rmsnorm(ctx, &tx, &trstd, &tgamma, &ty) : status;
}

/* ---- backward ---- */

typedef struct {
    int64_t rows, cols;
    ro_tensor x, gamma, rstd, dy;
} norm_inputs;

static ro_status input_gradient(ro_ctx *ctx, const norm_inputs *in, float *to) {
    const ro_tensor *const of[] = {&in->dy, &in->gamma, &in->x, &in->rstd};
    float *at;
    ro_status status = ro_temporary(ctx, in->rows, &at);
    if (status == RO_OK)
        status = ro_reduce_levels(ctx, RO_OP_REDUCE_RMS_GX, in->rows, in->cols, 4, of, at);
    const ro_tensor sgx = ro_matrix(at, in->rows, 1);
    ro_tensor dx = ro_matrix(to, in->rows, in->cols);
    if (status == RO_OK)
        status = ro_op_rms_dx(ctx, &in->dy, &in->gamma, &in->x, &in->rstd, &sgx, &dx);
    ro_free(ctx, at);
    return status;
}

static ro_status add_input_gradient(ro_ctx *ctx, const norm_inputs *in, ro_gradient dx) {
    const int64_t count = in->rows * in->cols;
    float *at;
    ro_status status = ro_gradient_open(ctx, dx, count, &at);
    if (status == RO_OK)
        status = input_gradient(ctx, in, at);
    return ro_gradient_close(ctx, dx, count, at, status);
}

static ro_status add_scale_gradient(ro_ctx *ctx, const norm_inputs *in, ro_gradient dgamma) {
    const ro_tensor *const of[] = {&in->dy, &in->x, &in->rstd};
    float *at;
    ro_status status = ro_gradient_open(ctx, dgamma, in->cols, &at);
    if (status == RO_OK)
        status = ro_column_levels(ctx, RO_OP_RMS_DGAMMA, in->rows, in->cols, 3, of, at);
    return ro_gradient_close(ctx, dgamma, in->cols, at, status);
}

static ro_status check_backward(ro_ctx *ctx, const norm_inputs *in, ro_gradient dx,
                                ro_gradient dgamma) {
    const int64_t n = in->rows * in->cols;
    const int wanted = RO_WRITTEN | RO_OPTIONAL;
    const ro_operand operands[] = {
        {"x", ro_words(in->x.data, n), RO_READ},
        {"gamma", ro_words(in->gamma.data, in->cols), RO_READ},
        {"rstd", ro_words(in->rstd.data, in->rows), RO_READ},
        {"dy", ro_words(in->dy.data, n), RO_READ},
        {"dx", ro_words(dx.data, n), wanted, dx.add ? 0 : 1 << 0 | 1 << 3},
        {"dgamma", ro_words(dgamma.data, in->cols), wanted}};
    return ro_check_operands(ctx, "rms_norm_backward", operands, 6);
}

ro_status ro_rms_norm_backward(ro_ctx *ctx, int64_t rows, int64_t cols, const float *x,
                               const float *gamma, const float *rstd, const float *dy,
                               ro_gradient dx, ro_gradient dgamma) {
    ro_status status = check_sizes(ctx, "rms_norm_backward", rows, cols);
    if (status != RO_OK || cols == 0) /* no gradient has an element then */
        return status;
    const norm_inputs in = {rows,
                            cols,
                            ro_matrix(x, rows, cols),
                            ro_matrix(gamma, 1, cols),
                            ro_matrix(rstd, rows, 1),
                            ro_matrix(dy, rows, cols)};
    status = check_backward(ctx, &in, dx, dgamma);
    if (status == RO_OK && dgamma.data) /* first: dx may overwrite what it reads */
        status = add_scale_gradient(ctx, &in, dgamma);
    if (status == RO_OK && dx.data && rows > 0)
        status = add_input_gradient(ctx, &in, dx);
    return status;
}
