/* ro_linear: checks. */
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"

/* 0 if a matrix of `rows` by `cols` is too large. */
static int fits(int64_t rows, int64_t cols) {
    return rows >= 0 && cols >= 0 && rows <= RO_MAX_NUMEL && cols <= RO_MAX_NUMEL &&
           (cols == 0 || rows <= RO_MAX_NUMEL / cols);
}

static ro_status check(ro_ctx *ctx, const ro_linear_layer *l, const float *z) {
    if (!fits(l->rows, l->in) || !fits(l->in, l->out) || !fits(l->rows, l->out))
        return ro_fail(ctx, RO_ERR_ARG,
                       "linear: rows * in, in * out and rows * out must be 0..2^40, got %lld rows, "
                       "%lld in, %lld out",
                       (long long)l->rows, (long long)l->in, (long long)l->out);
    if (l->activation < RO_ACTIVATION_NONE || l->activation > RO_ACTIVATION_SILU)
        return ro_fail(ctx, RO_ERR_ARG, "linear: no activation has the number %d",
                       (int)l->activation);
    if (z && l->activation == RO_ACTIVATION_NONE)
        return ro_fail(ctx, RO_ERR_ARG, "linear: z must be NULL without an activation");
    return RO_OK;
}

ro_status ro_linear(ro_ctx *ctx, const ro_linear_layer *layer, const float *x, const float *w,
                    const float *bias, float *z, float *y) {
    ro_status status = check(ctx, layer, z);
    if (status != RO_OK || layer->rows == 0 || layer->out == 0)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->linear(ctx, &(ro_linear_job){*layer, x, w, bias, z, y});
    ro_fpenv_leave(env);
    return status;
}
