/* Typed calls: allocation of tensors, and the code that all calls share. */
#include "repops/src/typed.h"

#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/op_movement.h"

#include <string.h>

/* ---- tensors ---- */

/* Clears a tensor with operator `fill`, which works on a device too. The last word may reach into
 * the padding of the block. */
static ro_status clear(ro_ctx *ctx, int64_t words, void *block) {
    const ro_call call = {RO_OP_FILL, 0, {0}, NULL, {RO_F32, 1, {words}}};
    return ro_run(ctx, &call, NULL, block);
}

/* Allocates memory for a tensor of this shape, contents undefined: whole words, at least one. */
static ro_status allocate(ro_ctx *ctx, const ro_shape *shape, int64_t *words, void **out) {
    const int64_t size = ro_shape_numel(shape) * (int64_t)ro_dtype_size(shape->dtype);
    *words = size > 4 ? (size + 3) / 4 : 1;
    *out = ro_alloc(ctx, (size_t)*words * 4);
    return *out ? RO_OK : ro_ctx_on(ctx) ? RO_ERR_DEVICE : RO_ERR_MEMORY;
}

ro_status ro_tensor_alloc(ro_ctx *ctx, ro_tensor *t) {
    if (!ctx || !t)
        return ro_missing(ctx, "tensor_alloc", ctx ? "t" : "ctx");
    if (!ro_shape_valid(&t->shape))
        return ro_fail(ctx, RO_ERR_ARG, "tensor_alloc: the tensor has no valid shape");
    if (t->data)
        return ro_fail(ctx, RO_ERR_ARG, "tensor_alloc: the tensor has memory already");
    int64_t words;
    void *block = NULL;
    ro_status status = allocate(ctx, &t->shape, &words, &block);
    if (status == RO_OK)
        status = clear(ctx, words, block);
    if (status == RO_OK)
        t->data = block;
    else
        ro_free(ctx, block);
    return status;
}

void ro_tensor_free(ro_ctx *ctx, ro_tensor *t) {
    if (!t)
        return;
    ro_free(ctx, t->data);
    memset(t, 0, sizeof *t);
}

/* ---- calls ---- */

int64_t ro_last_of(const ro_tensor *t) {
    return t && t->shape.ndim >= 1 && t->shape.ndim <= RO_MAX_DIMS ? t->shape.dim[t->shape.ndim - 1]
                                                                   : 0;
}

static ro_status infer(ro_ctx *ctx, ro_call *call) {
    char why[256];
    const ro_status status = ro_infer(call, why, sizeof why);
    return status == RO_OK ? RO_OK : ro_fail(ctx, status, "%s", why);
}

/* Runs a call. `out` changes only if everything succeeds. */
static ro_status run_call(ro_ctx *ctx, ro_call *call, const void *const *data, ro_tensor *out) {
    void *made = NULL;
    int64_t words;
    ro_status status = infer(ctx, call);
    if (status == RO_OK && !out->data)
        status = allocate(ctx, &call->output, &words, &made);
    if (status == RO_OK)
        status = ro_run(ctx, call, data, made ? made : out->data);
    if (status != RO_OK) {
        ro_free(ctx, made);
        return status;
    }
    out->shape = call->output;
    out->data = made ? made : out->data;
    return RO_OK;
}

static ro_call call_of(int op, int32_t count, const int64_t *attr, const ro_shape *shape,
                       const ro_tensor *out) {
    ro_call call = {.op = op, .input_count = count, .input = shape, .output = out->shape};
    if (attr)
        memcpy(call.attr, attr, sizeof call.attr);
    return call;
}

ro_status ro_typed_call(ro_ctx *ctx, int op, int32_t count, const ro_tensor *const *in,
                        const int64_t *attr, ro_tensor *out) {
    enum { MOST = 8 };
    const char *name = ro_op_describe(op)->name;
    ro_shape shape[MOST];
    const void *data[MOST];
    if (!ctx || !out)
        return ro_missing(ctx, name, ctx ? "out" : "ctx");
    for (int32_t i = 0; i < count; i++) {
        if (!in[i])
            return ro_fail(ctx, RO_ERR_ARG, "%s: input %d must not be NULL", name, (int)i);
        shape[i] = in[i]->shape;
        data[i] = in[i]->data;
    }
    ro_call call = call_of(op, count, attr, shape, out);
    return run_call(ctx, &call, data, out);
}

ro_status ro_typed_row(ro_ctx *ctx, int op, int32_t count, const ro_tensor *in,
                       const ro_tensor *const *last, const int64_t *attr, ro_tensor *out) {
    const ro_op_info *info = ro_op_describe(op);
    const int32_t most = info->max_inputs - (last != NULL);
    if (!ctx || !out)
        return ro_missing(ctx, info->name, ctx ? "out" : "ctx");
    if (count < 1 || count > most)
        return ro_fail(ctx, RO_ERR_ARG, "%s: count must be 1..%d, got %d", info->name, (int)most,
                       (int)count);
    if (!in || (last && !*last))
        return ro_fail(ctx, RO_ERR_ARG, "%s: input %d must not be NULL", info->name,
                       in ? (int)count : 0);
    const int32_t inputs = count + (last != NULL);
    void *block = ro_host_alloc(ctx, (size_t)inputs * (sizeof(ro_shape) + sizeof(void *)));
    if (!block)
        return ro_fail(ctx, RO_ERR_MEMORY, "%s: no memory for %d shapes", info->name, (int)inputs);
    ro_shape *shape = block;
    const void **data = (const void **)(shape + inputs);
    for (int32_t i = 0; i < inputs; i++) {
        const ro_tensor *t = i < count ? &in[i] : *last;
        shape[i] = t->shape;
        data[i] = t->data;
    }
    ro_call call = call_of(op, inputs, attr, shape, out);
    const ro_status status = run_call(ctx, &call, data, out);
    ro_host_free(ctx, block);
    return status;
}
