/* ro_rotary and ro_rotary_backward: checks, and the operators. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"

typedef struct {
    ro_tensor position, turns;
    int64_t count; /* elements of x */
} rotary_inputs;

/* Heads as attention has them, or side by side in the rows of tokens. */
static ro_tensor by_heads(const ro_rotary_layer *l, const float *at) {
    return (ro_tensor){{RO_F32, 4, {l->batch, l->heads, l->tokens, l->head_size}},
                       (void *)(uintptr_t)at};
}

static ro_tensor by_rows(const ro_rotary_layer *l, const float *at) {
    return (ro_tensor){{RO_F32, 3, {l->batch, l->tokens, l->heads * l->head_size}},
                       (void *)(uintptr_t)at};
}

static ro_status check_layer(ro_ctx *ctx, const char *name, const ro_rotary_layer *l) {
    if (!ctx || !l)
        return ro_missing(ctx, name, ctx ? "layer" : "ctx");
    const ro_shape shape = by_heads(l, NULL).shape;
    if (!ro_shape_valid(&shape) || !ro_matrix_fits(l->heads, l->head_size) ||
        !ro_matrix_fits(l->batch, l->tokens))
        return ro_fail(ctx, RO_ERR_ARG, "%s: batch * heads * tokens * head_size must be 0..2^40",
                       name);
    return RO_OK;
}

/* The two operands that are x and y, or dy and dx, and the others. */
static ro_status check_memory(ro_ctx *ctx, const char *name, const ro_rotary_layer *l,
                              const rotary_inputs *in, const ro_operand *from,
                              const ro_operand *to) {
    const int64_t positions = l->tokens * (l->each ? l->batch : 1);
    const ro_operand operands[] = {
        *from,
        {"position", ro_words(in->position.data, positions), RO_READ},
        {"turns", ro_words(in->turns.data, l->head_size / 2 * 2), RO_READ},
        *to};
    return ro_check_operands(ctx, name, operands, 4);
}

static rotary_inputs inputs_of(const ro_rotary_layer *l, const int32_t *position,
                               const int32_t *turns) {
    const ro_shape each = {RO_I32, 2, {l->batch, l->tokens}}, one = {RO_I32, 1, {l->tokens}};
    return (rotary_inputs){{l->each ? each : one, (void *)(uintptr_t)position},
                           {{RO_I32, 2, {l->head_size / 2, 2}}, (void *)(uintptr_t)turns},
                           l->batch * l->heads * l->tokens * l->head_size};
}

static ro_status turn(ro_ctx *ctx, const ro_rotary_layer *l, const rotary_inputs *in, int inverse,
                      const ro_tensor *from, ro_tensor *to) {
    const ro_op_rope_attrs attrs = {l->neighbours != 0, inverse};
    return ro_op_rope(ctx, from, &in->position, &in->turns, &attrs, to);
}

ro_status ro_rotary(ro_ctx *ctx, const ro_rotary_layer *layer, const float *x,
                    const int32_t *position, const int32_t *turns, float *y) {
    ro_status status = check_layer(ctx, "rotary", layer);
    if (status != RO_OK)
        return status;
    const rotary_inputs in = inputs_of(layer, position, turns);
    const ro_operand from = {"x", ro_words(x, in.count), RO_READ};
    const ro_operand to = {"y", ro_words(y, in.count), RO_WRITTEN};
    status = check_memory(ctx, "rotary", layer, &in, &from, &to);
    if (status != RO_OK || in.count == 0)
        return status;
    float *at;
    status = ro_temporary(ctx, in.count, &at);
    const ro_tensor rows = by_rows(layer, x);
    ro_tensor heads = by_heads(layer, at), out = by_heads(layer, y);
    if (status == RO_OK)
        status =
            ro_op_split_heads(ctx, &rows, &(ro_op_split_heads_attrs){1, 0, layer->heads}, &heads);
    if (status == RO_OK)
        status = turn(ctx, layer, &in, 0, &heads, &out);
    ro_free(ctx, at);
    return status;
}

/* dx, not added. */
static ro_status turn_back(ro_ctx *ctx, const ro_rotary_layer *layer, const rotary_inputs *in,
                           const float *dy, float *dx) {
    float *at;
    ro_status status = ro_temporary(ctx, in->count, &at);
    const ro_tensor from = by_heads(layer, dy);
    ro_tensor heads = by_heads(layer, at), rows = by_rows(layer, dx);
    if (status == RO_OK)
        status = turn(ctx, layer, in, 1, &from, &heads);
    if (status == RO_OK)
        status = ro_op_join_heads(ctx, &heads, 1, &rows);
    ro_free(ctx, at);
    return status;
}

ro_status ro_rotary_backward(ro_ctx *ctx, const ro_rotary_layer *layer, const float *dy,
                             const int32_t *position, const int32_t *turns, ro_gradient dx) {
    ro_status status = check_layer(ctx, "rotary_backward", layer);
    if (status != RO_OK)
        return status;
    const rotary_inputs in = inputs_of(layer, position, turns);
    const ro_operand from = {"dy", ro_words(dy, in.count), RO_READ};
    const ro_operand to = {"dx", ro_words(dx.data, in.count), RO_WRITTEN};
    status = check_memory(ctx, "rotary_backward", layer, &in, &from, &to);
    if (status != RO_OK || in.count == 0)
        return status;
    float *at;
    status = ro_gradient_open(ctx, dx, in.count, &at);
    if (status == RO_OK)
        status = turn_back(ctx, layer, &in, dy, at);
    return ro_gradient_close(ctx, dx, in.count, at, status);
}
