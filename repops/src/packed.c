/* Linear layers whose operands stay packed: checks. */
#include "repops/src/packed.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/layers.h"
#include "repops/src/sized.h"

static size_t size_of(ro_ctx *ctx, const ro_linear_layer *own, ro_packed_operand side) {
    const ro_packing *packing = ro_ctx_packing(ctx);
    return packing ? packing->size(ctx, own, side) : 0;
}

static size_t packed_size(ro_ctx *ctx, const char *what, const ro_linear_layer *layer,
                          ro_packed_operand side) {
    ro_linear_layer own;
    const ro_status status = ro_take_linear(ctx, what, layer, NULL, &own);
    return status == RO_OK ? size_of(ctx, &own, side) : 0;
}

size_t ro_linear_packed_size(ro_ctx *ctx, const ro_linear_layer *layer) {
    return packed_size(ctx, "linear_packed_size", layer, RO_PACKED_W);
}

size_t ro_linear_packed_x_size(ro_ctx *ctx, const ro_linear_layer *layer) {
    return packed_size(ctx, "linear_packed_x_size", layer, RO_PACKED_X);
}

/* Checks what each function here needs, and copies the layer to `own`. */
static ro_status take(ro_ctx *ctx, const char *what, const ro_linear_layer *layer, const float *z,
                      ro_linear_layer *own) {
    const ro_status status = ro_take_linear(ctx, what, layer, z, own);
    if (status == RO_OK && size_of(ctx, own, RO_PACKED_W) == 0)
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: operands are packed of layers with fixed products, and weights of FP32 "
                       "layers that have a size (ro_linear_packed_size)",
                       what);
    return status;
}

/* Returns the memory of a packed operand; empty if it is not packed. */
static ro_pieces packed_bytes(ro_ctx *ctx, const ro_linear_layer *own, ro_packed_operand side,
                              const void *packed) {
    const int64_t size = packed ? (int64_t)size_of(ctx, own, side) : 0;
    return (ro_pieces){packed, 1, size, size};
}

static int64_t numbers_of(const ro_linear_layer *l, ro_packed_operand side) {
    return side == RO_PACKED_X ? l->rows * l->in : l->in * l->out;
}

static ro_status pack(ro_ctx *ctx, const char *what, const ro_linear_layer *layer,
                      ro_packed_operand side, const ro_linear_operands *in, void *packed) {
    const float *from = side == RO_PACKED_X ? in->x : in->w;
    ro_linear_layer own;
    ro_status status = take(ctx, what, layer, NULL, &own);
    if (status == RO_OK && !packed)
        status = ro_missing(ctx, what, "packed");
    if (status == RO_OK && size_of(ctx, &own, side) == 0)
        status = ro_fail(ctx, RO_ERR_ARG, "%s: x is packed of layers with fixed products", what);
    if (status != RO_OK)
        return status;
    const ro_operand operands[] = {
        {side == RO_PACKED_X ? "x" : "w", ro_words(from, numbers_of(&own, side)), RO_READ},
        {"packed", packed_bytes(ctx, &own, side, packed), RO_WRITTEN}};
    status = ro_check_operands(ctx, what, operands, 2);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_packing(ctx)->pack(ctx, &own, side, in, packed);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_linear_pack(ro_ctx *ctx, const ro_linear_layer *layer, const float *w, void *packed) {
    const ro_linear_operands in = {.size = sizeof in, .w = w};
    return pack(ctx, "linear_pack", layer, RO_PACKED_W, &in, packed);
}

static ro_status take_operands(ro_ctx *ctx, const char *what, const ro_linear_operands *given,
                               ro_linear_operands *own) {
    if (!ctx || !given)
        return ro_missing(ctx, what, ctx ? "in" : "ctx");
    return ro_take(ctx, &ro_sized_linear_operands, given, own);
}

ro_status ro_linear_pack_x(ro_ctx *ctx, const ro_linear_layer *layer, const ro_linear_operands *in,
                           void *packed) {
    ro_linear_operands own;
    const ro_status status = take_operands(ctx, "linear_pack_x", in, &own);
    return status == RO_OK ? pack(ctx, "linear_pack_x", layer, RO_PACKED_X, &own, packed) : status;
}

static ro_status check_fits(ro_ctx *ctx, const char *what, const ro_linear_layer *l,
                            const ro_linear_operands *in) {
    const ro_packing *packing = ro_ctx_packing(ctx);
    if (in->packed_w && !packing->fits(l, RO_PACKED_W, in->packed_w))
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: packed must be of a layer with %lld in, %lld out and products of %d "
                       "bits, and of this backend",
                       what, (long long)l->in, (long long)l->out, l->fixed_bits);
    if (in->packed_x && !packing->fits(l, RO_PACKED_X, in->packed_x))
        return ro_fail(ctx, RO_ERR_ARG,
                       "%s: packed_x must be of a layer with %lld rows, %lld in and products of %d "
                       "bits, and of this backend",
                       what, (long long)l->rows, (long long)l->in, l->fixed_bits);
    return RO_OK;
}

static ro_status check_memory(ro_ctx *ctx, const char *what, const ro_linear_job *j,
                              const ro_linear_operands *in) {
    const ro_linear_layer *l = &j->layer;
    const ro_operand operands[] = {
        {"x", ro_words(j->x, in->packed_x ? 0 : l->rows * l->in), RO_READ},
        {"w", ro_words(j->w, in->packed_w ? 0 : l->in * l->out), RO_READ},
        {"packed_x", packed_bytes(ctx, l, RO_PACKED_X, in->packed_x), RO_READ},
        {"packed", packed_bytes(ctx, l, RO_PACKED_W, in->packed_w), RO_READ},
        {"bias", ro_words(j->bias, l->out), RO_OPTIONAL},
        {"z", ro_words(j->z, l->rows * l->out), RO_WRITTEN | RO_OPTIONAL},
        {"y", ro_words(j->y, l->rows * l->out), RO_WRITTEN}};
    return ro_check_operands(ctx, what, operands, 7);
}

static ro_status run(ro_ctx *ctx, const char *what, const ro_linear_layer *own,
                     const ro_linear_operands *in, const float *bias, float *z, float *y) {
    const ro_linear_job job = {
        *own, in->packed_x ? NULL : in->x, in->packed_w ? NULL : in->w, bias, z, y};
    ro_status status = check_fits(ctx, what, own, in);
    if (status != RO_OK || own->rows == 0 || own->out == 0)
        return status;
    status = check_memory(ctx, what, &job, in);
    if (status != RO_OK)
        return status;
    const ro_fpenv env = ro_fpenv_enter();
    status = ro_ctx_packing(ctx)->run(ctx, &job, in);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_linear_packed(ro_ctx *ctx, const ro_linear_layer *layer, const float *x,
                           const void *packed, const float *bias, float *z, float *y) {
    const ro_linear_operands in = {.size = sizeof in, .x = x, .packed_w = packed};
    ro_linear_layer own;
    ro_status status = take(ctx, "linear_packed", layer, z, &own);
    if (status == RO_OK && !packed)
        status = ro_missing(ctx, "linear_packed", "packed");
    return status == RO_OK ? run(ctx, "linear_packed", &own, &in, bias, z, y) : status;
}

ro_status ro_linear_of_packed(ro_ctx *ctx, const ro_linear_layer *layer,
                              const ro_linear_operands *in, const float *bias, float *z, float *y) {
    ro_linear_operands operands;
    ro_linear_layer own;
    ro_status status = take_operands(ctx, "linear_of_packed", in, &operands);
    if (status == RO_OK)
        status = take(ctx, "linear_of_packed", layer, z, &own);
    return status == RO_OK ? run(ctx, "linear_of_packed", &own, &operands, bias, z, y) : status;
}
