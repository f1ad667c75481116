/* ro_rotary and ro_rotary_backward: checks. */
#include "repops/src/layers.h"

#include "repops/src/backend.h"
#include "repops/src/fpenv.h"
#include "repops/src/sized.h"

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
    const ro_shape shape = {RO_F32, 4, {l->batch, l->heads, l->tokens, l->head_size}};
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

/* `from` and `to` are the names of the two operands in messages: x and y, or dy and dx. */
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

/* ---- the functions ---- */

static ro_status run(ro_ctx *ctx, const ro_rotary_job *job) {
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
    return status == RO_OK && count_of(&job.layer) > 0 ? run(ctx, &job) : status;
}

ro_status ro_rotary_backward(ro_ctx *ctx, const ro_rotary_layer *layer, const float *dy,
                             const int32_t *position, const int32_t *turns, ro_gradient dx) {
    ro_rotary_job job = {{0}, dy, position, turns, dx, 1};
    ro_status status = take(ctx, "rotary_backward", layer, &job.layer);
    if (status == RO_OK)
        status = check_memory(ctx, "rotary_backward", &job, "dy", "dx");
    return status == RO_OK && count_of(&job.layer) > 0 ? run(ctx, &job) : status;
}
