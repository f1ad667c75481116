/* Convolutions whose weights stay packed: checks. */
#include "repops/op_image.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/operands.h"
#include "repops/src/packed.h"

/* Checks and copies the call. Returns NULL if it is no conv2d, its shapes do not fit, or the
 * backend keeps no weights. */
static const ro_conv_packing *packing_of(ro_ctx *ctx, const ro_call *call, ro_call *own) {
    char why[200];
    if (!ctx || !call || call->op != RO_OP_CONV2D || call->input_count != 2)
        return NULL;
    *own = *call;
    const ro_packing *packing = ro_ctx_packing(ctx);
    return packing && ro_infer(own, why, sizeof why) == RO_OK ? packing->conv : NULL;
}

static size_t size_of(const ro_conv_packing *packing, const ro_call *own) {
    return packing && ro_shape_numel(&own->output) > 0 && ro_shape_numel(&own->input[0]) > 0
               ? packing->size(own)
               : 0;
}

size_t ro_conv2d_packed_size(ro_ctx *ctx, const ro_call *call) {
    ro_call own;
    const ro_conv_packing *packing = packing_of(ctx, call, &own);
    return size_of(packing, &own);
}

/* Checks what both functions need. */
static ro_status take(ro_ctx *ctx, const char *what, const ro_call *call, const void *packed,
                      ro_call *own, const ro_conv_packing **packing) {
    *packing = NULL;
    if (!ctx || !call || !packed)
        return ro_missing(ctx, what, !ctx ? "ctx" : !call ? "call" : "packed");
    *packing = packing_of(ctx, call, own);
    if (size_of(*packing, own) > 0)
        return RO_OK;
    return ro_fail(ctx, RO_ERR_ARG, "%s: no weights of this call are kept packed", what);
}

static ro_pieces packed_bytes(const ro_conv_packing *packing, const ro_call *own,
                              const void *packed) {
    const int64_t size = (int64_t)packing->size(own);
    return (ro_pieces){packed, 1, size, size};
}

ro_status ro_conv2d_pack(ro_ctx *ctx, const ro_call *call, const float *w, void *packed) {
    ro_call own;
    const ro_conv_packing *packing;
    ro_status status = take(ctx, "conv2d_pack", call, packed, &own, &packing);
    if (status != RO_OK)
        return status;
    const ro_operand operands[] = {{"w", ro_words(w, ro_shape_numel(&own.input[1])), RO_READ, 0},
                                   {"packed", packed_bytes(packing, &own, packed), RO_WRITTEN, 0}};
    status = ro_check_operands(ctx, "conv2d_pack", operands, 2);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    const int kept = packing->pack(ctx, &own, w, packed);
    ro_fpenv_leave(env);
    return kept ? RO_OK
                : ro_fail(ctx, RO_ERR_UNSUPPORTED,
                          "conv2d_pack: a weight is not finite, or nothing is gained by keeping "
                          "weights of this shape that are no integers from -128 to 127");
}

ro_status ro_conv2d_packed(ro_ctx *ctx, const ro_call *call, const float *x, const void *packed,
                           float *y) {
    ro_call own;
    const ro_conv_packing *packing;
    ro_status status = take(ctx, "conv2d_packed", call, packed, &own, &packing);
    if (status != RO_OK)
        return status;
    if (!packing->fits(&own, packed))
        return ro_fail(ctx, RO_ERR_ARG,
                       "conv2d_packed: packed must be of weights of this shape and this backend");
    const ro_operand operands[] = {{"x", ro_words(x, ro_shape_numel(&own.input[0])), RO_READ, 0},
                                   {"packed", packed_bytes(packing, &own, packed), RO_READ, 0},
                                   {"y", ro_words(y, ro_shape_numel(&own.output)), RO_WRITTEN, 0}};
    status = ro_check_operands(ctx, "conv2d_packed", operands, 3);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = packing->run(ctx, &own, x, packed, y);
    ro_fpenv_leave(env);
    return status;
}
