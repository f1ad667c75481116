/* ro_linear: checks. */
#include "repops/src/backend.h"
#include "repops/src/fixed.h"
#include "repops/src/fpenv.h"
#include "repops/src/layers.h"
#include "repops/src/sized.h"

static ro_status linear_check(ro_ctx *ctx, const char *what, const ro_linear_layer *l,
                              const float *z) {
    if (!ro_matrix_fits(l->rows, l->in) || !ro_matrix_fits(l->in, l->out) ||
        !ro_matrix_fits(l->rows, l->out))
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: rows * in, in * out and rows * out must be 0..2^40, got %lld rows, "
                       "%lld in, %lld out",
                       what, (long long)l->rows, (long long)l->in, (long long)l->out);
    if (l->activation < RO_ACTIVATION_NONE || l->activation > RO_ACTIVATION_SILU)
        return ro_fail(ctx, RO_ERR_ARG, "%s: no activation has the number %d", what,
                       (int)l->activation);
    if (z && l->activation == RO_ACTIVATION_NONE)
        return ro_fail(ctx, RO_ERR_ARG, "%s: z must be NULL without an activation", what);
    if (l->fixed_bits != 0 && !ro_fixed_has(l->fixed_bits))
        return ro_fail(ctx, RO_ERR_ARG, "%s: fixed_bits must be 0, %d, %d or %d, got %d", what,
                       RO_FIXED_8, RO_FIXED_16, RO_FIXED_24, l->fixed_bits);
    return RO_OK;
}

ro_status ro_take_linear(ro_ctx *ctx, const char *what, const ro_linear_layer *given,
                         const float *z, ro_linear_layer *own) {
    if (!ctx || !given)
        return ro_missing(ctx, what, ctx ? "layer" : "ctx");
    const ro_status status = ro_take(ctx, &ro_sized_linear_layer, given, own);
    return status == RO_OK ? linear_check(ctx, what, own, z) : status;
}

static ro_status check_memory(ro_ctx *ctx, const ro_linear_job *j) {
    const ro_linear_layer *l = &j->layer;
    const ro_operand operands[] = {
        {"x", ro_words(j->x, l->rows * l->in), RO_READ},
        {"w", ro_words(j->w, l->in * l->out), RO_READ},
        {"bias", ro_words(j->bias, l->out), RO_OPTIONAL},
        {"z", ro_words(j->z, l->rows * l->out), RO_WRITTEN | RO_OPTIONAL},
        {"y", ro_words(j->y, l->rows * l->out), RO_WRITTEN}};
    return ro_check_operands(ctx, "linear", operands, 5);
}

ro_status ro_linear(ro_ctx *ctx, const ro_linear_layer *layer, const float *x, const float *w,
                    const float *bias, float *z, float *y) {
    ro_linear_job job = {{0}, x, w, bias, z, y};
    ro_status status = ro_take_linear(ctx, "linear", layer, z, &job.layer);
    if (status != RO_OK || job.layer.rows == 0 || job.layer.out == 0)
        return status;
    status = check_memory(ctx, &job);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_table(ctx)->linear(ctx, &job);
    ro_fpenv_leave(env);
    return status;
}
