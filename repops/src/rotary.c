/* ro_rotary and ro_rotary_backward: checks, and the operators for a device. */
#include "repops/src/layers.h"

#include "repops/device.h"
#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/sized.h"

/* Heads as attention has them, or side by side in the rows of tokens. */
static ro_tensor by_heads(const ro_rotary_layer *l, const float *at) {
    return (ro_tensor){{RO_F32, 4, {l->batch, l->heads, l->tokens, l->head_size}},
                       (void *)(uintptr_t)at};
}

static ro_tensor by_rows(const ro_rotary_layer *l, const float *at) {
    return (ro_tensor){{RO_F32, 3, {l->batch, l->tokens, l->heads * l->head_size}},
                       (void *)(uintptr_t)at};
}

static int64_t count_of(const ro_rotary_layer *l) {
    return l->batch * l->heads * l->tokens * l->head_size;
}

/* ---- checks ---- */

static ro_status take(ro_ctx *ctx, const char *name, const ro_rotary_layer *given,
                      ro_rotary_layer *l) {
    if (!ctx || !given)
        return ro_missing(ctx, name, ctx ? "layer" : "ctx");
    const ro_status status = ro_take(ctx, &ro_sized_rotary_layer, given, l);
    if (status != RO_OK)
        return status;
    l->neighbours = l->neighbours != 0;
    const ro_shape shape = by_heads(l, NULL).shape;
    if (!ro_shape_valid(&shape) || !ro_matrix_fits(l->heads, l->head_size) ||
        !ro_matrix_fits(l->batch, l->tokens))
        return ro_fail(ctx, RO_ERR_ARG, "%s: batch * heads * tokens * head_size must be 0..2^40",
                       name);
    if (l->heads < 1)
        return ro_fail(ctx, RO_ERR_ARG, "%s: heads must be at least 1, got 0", name);
    if (l->head_size % 2 != 0 || l->head_size > RO_ROTARY_HEAD_MAX)
        return ro_fail(ctx, RO_ERR_ARG, "%s: head_size must be even and at most %d, got %lld", name,
                       RO_ROTARY_HEAD_MAX, (long long)l->head_size);
    return RO_OK;
}

/* The two operands that are x and y, or dy and dx, have names of their own. */
static ro_status check_memory(ro_ctx *ctx, const char *name, const ro_rotary_job *j,
                              const char *from, const char *to) {
    const ro_rotary_layer *l = &j->layer;
    const int64_t positions = l->tokens * (l->each ? l->batch : 1), count = count_of(l);
    const ro_operand operands[] = {{from, ro_words(j->from, count), RO_READ},
                                   {"position", ro_words(j->position, positions), RO_READ},
                                   {"turns", ro_words(j->turns, l->head_size), RO_READ},
                                   {to, ro_words(j->to.data, count), RO_WRITTEN}};
    return ro_check_operands(ctx, name, operands, 4);
}

/* ---- by operators ---- */

static ro_status turn(ro_ctx *ctx, const ro_rotary_job *j, const ro_tensor *from, ro_tensor *to) {
    const ro_rotary_layer *l = &j->layer;
    const ro_shape each = {RO_I32, 2, {l->batch, l->tokens}}, one = {RO_I32, 1, {l->tokens}};
    const ro_tensor position = {l->each ? each : one, (void *)(uintptr_t)j->position};
    const ro_tensor turns = {{RO_I32, 2, {l->head_size / 2, 2}}, (void *)(uintptr_t)j->turns};
    const ro_op_rope_attrs attrs = {l->neighbours, j->inverse};
    return ro_op_rope(ctx, from, &position, &turns, &attrs, to);
}

static ro_status turn_forward(ro_ctx *ctx, const ro_rotary_job *j, float *split) {
    const ro_rotary_layer *l = &j->layer;
    const ro_tensor rows = by_rows(l, j->from);
    ro_tensor heads = by_heads(l, split), out = by_heads(l, j->to.data);
    const ro_status status =
        ro_op_split_heads(ctx, &rows, &(ro_op_split_heads_attrs){1, 0, l->heads}, &heads);
    return status == RO_OK ? turn(ctx, j, &heads, &out) : status;
}

static ro_status turn_back(ro_ctx *ctx, const ro_rotary_job *j, float *turned) {
    const int64_t count = count_of(&j->layer);
    const ro_tensor from = by_heads(&j->layer, j->from);
    ro_tensor heads = by_heads(&j->layer, turned);
    float *at;
    ro_status status = ro_gradient_open(ctx, j->to, count, &at);
    ro_tensor rows = by_rows(&j->layer, at);
    if (status == RO_OK)
        status = turn(ctx, j, &from, &heads);
    if (status == RO_OK)
        status = ro_op_join_heads(ctx, &heads, 1, &rows);
    return ro_gradient_close(ctx, j->to, count, at, status);
}

static ro_status rotary_by_operators(ro_ctx *ctx, const ro_rotary_job *j) {
    float *heads = NULL;
    ro_status status = ro_temporary(ctx, count_of(&j->layer), &heads);
    if (status == RO_OK)
        status = (j->inverse ? turn_back : turn_forward)(ctx, j, heads);
    ro_free(ctx, heads);
    return status;
}

/* ---- the functions ---- */

static ro_status rotary_run(ro_ctx *ctx, const ro_rotary_job *job) {
    if (!ro_ctx_table(ctx)->rotary)
        return rotary_by_operators(ctx, job);
    const ro_fpenv env = ro_fpenv_enter();
    const ro_status status = ro_ctx_table(ctx)->rotary(ctx, job);
    ro_fpenv_leave(env);
    return status;
}

ro_status ro_rotary(ro_ctx *ctx, const ro_rotary_layer *layer, const float *x,
                    const int32_t *position, const int32_t *turns, float *y) {
    ro_rotary_job job = {{0}, x, position, turns, {y, 0}, 0};
    ro_status status = take(ctx, "rotary", layer, &job.layer);
    if (status == RO_OK)
        status = check_memory(ctx, "rotary", &job, "x", "y");
    return status == RO_OK && count_of(&job.layer) > 0 ? rotary_run(ctx, &job) : status;
}

ro_status ro_rotary_backward(ro_ctx *ctx, const ro_rotary_layer *layer, const float *dy,
                             const int32_t *position, const int32_t *turns, ro_gradient dx) {
    ro_rotary_job job = {{0}, dy, position, turns, dx, 1};
    ro_status status = take(ctx, "rotary_backward", layer, &job.layer);
    if (status == RO_OK)
        status = check_memory(ctx, "rotary_backward", &job, "dy", "dx");
    return status == RO_OK && count_of(&job.layer) > 0 ? rotary_run(ctx, &job) : status;
}
