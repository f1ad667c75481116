/* This file keeps weights transposed, and runs convolutions and products with packed weights. */
#include "repops/op_movement.h"
#include "repops/op_product.h"
#include "repops/packed.h"
#include "verde/exec/kept_weights_internal.h"
#include "verde/exec/memory.h"

/* ---- transposed weights ---- */

const float *vd_turned_weights(ro_ctx *ro, int64_t out, int64_t in, const void *w,
                               vd_kept_weights *kept, vd_status *status, vd_err *err) {
    const ro_shape from = {RO_F32, 2, {out, in}}, to = {RO_F32, 2, {in, out}};
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->entry[i].w == w && ro_shape_equal(&kept->entry[i].shape, &to))
            return kept->entry[i].packed;
    const size_t size = (size_t)(in * out) * sizeof(float);
    float *turned =
        !kept->memory && vd_kept_has_room(kept, size) ? vd_memory_alloc(NULL, size) : NULL;
    if (!turned)
        return NULL;
    const ro_call call = {.op = RO_OP_TRANSPOSE,
                          .input_count = 1,
                          .attr = {[RO_TRANSPOSE_D0] = 1, [RO_TRANSPOSE_D1] = 0},
                          .input = &from,
                          .output = to};
    if (ro_run(ro, &call, &w, turned) != RO_OK) {
        *status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
        vd_memory_free(NULL, turned);
        return NULL;
    }
    kept->entry[kept->count++] =
        (vd_kept_entry){.w = w, .shape = to, .packed = turned, .size = size};
    kept->bytes += size;
    return turned;
}

/* ---- convolutions ---- */

/* Packs filters. NULL: the caller keeps an entry without memory, so that it is not tried again. */
static void *pack_conv(ro_ctx *ro, const ro_call *call, const float *w, size_t size,
                       vd_status *status, vd_err *err) {
    void *packed = vd_memory_alloc(NULL, size);
    const ro_status packing = packed ? ro_conv2d_pack(ro, call, w, packed) : RO_OK;
    if (packing == RO_OK)
        return packed;
    vd_memory_free(NULL, packed);
    if (packing != RO_ERR_UNSUPPORTED)
        *status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
    return NULL;
}

static const void *packed_filters(ro_ctx *ro, const ro_call *call, const void *w,
                                  vd_kept_weights *kept, vd_status *status, vd_err *err) {
    /* The size is 0 also for convolutions in groups. */
    const size_t size = ro_conv2d_packed_size(ro, call);
    if (size == 0)
        return NULL;
    for (uint32_t i = 0; i < kept->count; i++)
        if (kept->entry[i].w == w && ro_shape_equal(&kept->entry[i].shape, &call->input[1]))
            return kept->entry[i].packed;
    if (!vd_kept_has_room(kept, size))
        return NULL;
    void *packed = pack_conv(ro, call, w, size, status, err);
    kept->entry[kept->count++] = (vd_kept_entry){
        .w = w, .shape = call->input[1], .packed = packed, .size = packed ? size : 0};
    kept->bytes += packed ? size : 0;
    return packed;
}

/* Runs a product as a linear layer with packed weights. */
static ro_status run_product(const vd_fused *g, const vd_fused_memory *at, ro_ctx *ro,
                             const void *packed) {
    return ro_linear_packed(ro, &g->linear, at->in[0], packed, NULL, NULL, at->out[0]);
}

vd_status vd_conv_run(const vd_fused *g, const vd_fused_memory *at, ro_ctx *ro,
                      vd_kept_weights *kept, vd_err *err) {
    ro_call call = g->conv->call, own = g->conv->own;
    call.input = g->conv->shape, own.input = g->conv->own_shape;
    vd_status status = VD_OK;
    const void *in[] = {at->in[0], at->in[1]}, *packed = NULL, *panels = NULL;
    if (g->conv->turned && kept) {
        const ro_shape *w = &call.input[1];
        in[1] = vd_turned_weights(ro, w->dim[3], w->dim[2], at->in[1], kept, &status, err);
        in[1] = in[1] ? in[1] : at->in[1];
    }
    const bool lies = !g->conv->turned || in[1] != at->in[1];
    if (lies && kept && status == VD_OK)
        packed = packed_filters(ro, &call, in[1], kept, &status, err);
    if (!packed && kept && status == VD_OK && g->linear.size > 0)
        panels = vd_packed_weights(g, ro, at->in[1], kept, &status, err);
    if (status != VD_OK)
        return status;
    const ro_shape turned[] = {own.input[0],
                               {RO_F32, 2, {call.input[1].dim[2], call.input[1].dim[3]}}};
    if (g->conv->turned && lies)
        own.attr[RO_MATMUL_TRANS] = 0, own.input = turned;
    const ro_status ran = panels   ? run_product(g, at, ro, panels)
                          : packed ? ro_conv2d_packed(ro, &call, at->in[0], packed, at->out[0])
                                   : ro_run(ro, &own, in, at->out[0]);
    return ran == RO_OK ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(ro));
}
