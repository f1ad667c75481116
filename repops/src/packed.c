/* Linear layers whose weights stay packed: checks. */
#include "repops/src/packed.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/layers.h"

size_t ro_linear_packed_size(ro_ctx *ctx, const ro_linear_layer *layer) {
    if (!ctx || !layer || ro_check_linear(ctx, "linear_packed_size", layer, NULL) != RO_OK)
        return 0;
    const ro_packing *packing = ro_ctx_packing(ctx);
    return packing && layer->fixed_bits ? packing->size(layer) : 0;
}

static ro_status check(ro_ctx *ctx, const char *what, const ro_linear_layer *layer,
                       const float *z) {
    const ro_status status = ro_check_linear(ctx, what, layer, z);
    if (status == RO_OK && ro_linear_packed_size(ctx, layer) == 0)
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: weights are packed of layers with fixed products, in host memory",
                       what);
    return status;
}

/* "NAME: ... must not be NULL", of what both functions need. */
static ro_status missing(ro_ctx *ctx, const char *what, const ro_linear_layer *layer) {
    return ro_missing(ctx, what, !ctx ? "ctx" : !layer ? "layer" : "packed");
}

static ro_pieces packed_bytes(ro_ctx *ctx, const ro_linear_layer *layer, const void *packed) {
    const int64_t size = (int64_t)ro_linear_packed_size(ctx, layer);
    return (ro_pieces){packed, 1, size, size};
}

ro_status ro_linear_pack(ro_ctx *ctx, const ro_linear_layer *layer, const float *w, void *packed) {
    if (!ctx || !layer || !packed)
        return missing(ctx, "linear_pack", layer);
    ro_status status = check(ctx, "linear_pack", layer, NULL);
    if (status != RO_OK)
        return status;
    const ro_operand operands[] = {{"w", ro_words(w, layer->in * layer->out), RO_READ},
                                   {"packed", packed_bytes(ctx, layer, packed), RO_WRITTEN}};
    status = ro_check_operands(ctx, "linear_pack", operands, 2);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    ro_ctx_packing(ctx)->pack(ctx, layer, w, packed);
    ro_fpenv_leave(env);
    return RO_OK;
}

static ro_status check_memory(ro_ctx *ctx, const ro_linear_job *j, const void *packed) {
    const ro_linear_layer *l = &j->layer;
    const ro_operand operands[] = {
        {"x", ro_words(j->x, l->rows * l->in), RO_READ},
        {"packed", packed_bytes(ctx, l, packed), RO_READ},
        {"bias", ro_words(j->bias, l->out), RO_OPTIONAL},
        {"z", ro_words(j->z, l->rows * l->out), RO_WRITTEN | RO_OPTIONAL},
        {"y", ro_words(j->y, l->rows * l->out), RO_WRITTEN}};
    return ro_check_operands(ctx, "linear_packed", operands, 5);
}

ro_status ro_linear_packed(ro_ctx *ctx, const ro_linear_layer *layer, const float *x,
                           const void *packed, const float *bias, float *z, float *y) {
    if (!ctx || !layer || !packed)
        return missing(ctx, "linear_packed", layer);
    ro_status status = check(ctx, "linear_packed", layer, z);
    if (status != RO_OK)
        return status;
    const ro_packing *packing = ro_ctx_packing(ctx);
    if (!packing->fits(layer, packed))
        return ro_fail(ctx, RO_ERR_ARG,
                       "linear_packed: packed must be of a layer with %lld in, %lld out and "
                       "products of %d bits, and of this backend",
                       (long long)layer->in, (long long)layer->out, layer->fixed_bits);
    if (layer->rows == 0 || layer->out == 0)
        return RO_OK;
    const ro_linear_job job = {*layer, x, NULL, bias, z, y};
    status = check_memory(ctx, &job, packed);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = packing->run(ctx, &job, packed);
    ro_fpenv_leave(env);
    return status;
}
