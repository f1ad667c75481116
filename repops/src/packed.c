/* Linear layers whose weights stay packed: checks. */
#include "repops/src/packed.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/layers.h"

static size_t size_of(ro_ctx *ctx, const ro_linear_layer *own) {
    const ro_packing *packing = ro_ctx_packing(ctx);
    return packing && own->fixed_bits ? packing->size(own) : 0;
}

size_t ro_linear_packed_size(ro_ctx *ctx, const ro_linear_layer *layer) {
    ro_linear_layer own;
    const ro_status status = ro_take_linear(ctx, "linear_packed_size", layer, NULL, &own);
    return status == RO_OK ? size_of(ctx, &own) : 0;
}

/* Both functions need this. */
static ro_status take(ro_ctx *ctx, const char *what, const ro_linear_layer *layer,
                      const void *packed, const float *z, ro_linear_layer *own) {
    const ro_status status = ro_take_linear(ctx, what, layer, z, own);
    if (status != RO_OK)
        return status;
    if (!packed)
        return ro_missing(ctx, what, "packed");
    if (size_of(ctx, own) == 0)
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: weights are packed of layers with fixed products, in host memory",
                       what);
    return RO_OK;
}

static ro_pieces packed_bytes(ro_ctx *ctx, const ro_linear_layer *own, const void *packed) {
    const int64_t size = (int64_t)size_of(ctx, own);
    return (ro_pieces){packed, 1, size, size};
}

ro_status ro_linear_pack(ro_ctx *ctx, const ro_linear_layer *layer, const float *w, void *packed) {
    ro_linear_layer own;
    ro_status status = take(ctx, "linear_pack", layer, packed, NULL, &own);
    if (status != RO_OK)
        return status;
    const ro_operand operands[] = {{"w", ro_words(w, own.in * own.out), RO_READ},
                                   {"packed", packed_bytes(ctx, &own, packed), RO_WRITTEN}};
    status = ro_check_operands(ctx, "linear_pack", operands, 2);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    ro_ctx_packing(ctx)->pack(ctx, &own, w, packed);
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
    ro_linear_job job = {{0}, x, NULL, bias, z, y};
    ro_status status = take(ctx, "linear_packed", layer, packed, z, &job.layer);
    if (status != RO_OK)
        return status;
    const ro_linear_layer *own = &job.layer;
    const ro_packing *packing = ro_ctx_packing(ctx);
    if (!packing->fits(own, packed))
        return ro_fail(ctx, RO_ERR_ARG,
                       "linear_packed: packed must be of a layer with %lld in, %lld out and "
                       "products of %d bits, and of this backend",
                       (long long)own->in, (long long)own->out, own->fixed_bits);
    if (own->rows == 0 || own->out == 0)
        return RO_OK;
    status = check_memory(ctx, &job, packed);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = packing->run(ctx, &job, packed);
    ro_fpenv_leave(env);
    return status;
}
