/* This file runs groups of nodes as fused functions. */
#include "repops/op_product.h"
#include "verde/exec/executor.h"
#include "verde/exec/guard.h"

static uint32_t value_of(const vd_execution *x, uint32_t value, uint32_t iteration) {
    return vd_plan_value(&x->plan, x->graph, value, iteration);
}

/* Memory for output i of a group: an input's own, if nobody else reads that input later. */
static void *group_output(vd_execution *x, const vd_fused *g, uint32_t i, uint32_t iteration) {
    const uint32_t input = vd_fused_in_place(g, i);
    const uint32_t output = value_of(x, g->output[i], iteration);
    const size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, output));
    const uint32_t from =
        input == VD_NO_GROUP ? VD_NO_GROUP : value_of(x, g->input[input], iteration);
    return from != VD_NO_GROUP && vd_may_take(x, from, size) ? vd_take_memory(x, from)
                                                             : vd_memory_alloc(x->memory, size);
}

/* Binds the packed operands of the product in a group. */
static void bind_kept(const vd_execution *x, const vd_fused *g, uint32_t iteration,
                      vd_kept_operand *of[2]) {
    of[0] = of[1] = NULL;
    if (g->kind != VD_FUSED_LINEAR || !x->operand_of || !g->linear.fixed_bits)
        return;
    for (uint32_t i = 0; i < g->member_count; i++) {
        const uint32_t node = value_of(x, x->sources + g->member[i], iteration) - x->sources;
        if (vd_node_stored(x->graph, node)->op == RO_OP_MATMUL_FIXED)
            (void)vd_kept_operands_bind(x, node, of);
    }
    if (g->frozen)
        of[1] = NULL;
}

static vd_status bind_group(vd_execution *x, const vd_fused *g, uint32_t iteration,
                            vd_fused_memory *at, vd_err *err) {
    for (uint32_t i = 0; i < g->input_count; i++) {
        const uint32_t value = value_of(x, g->input[i], iteration);
        const vd_status status = vd_part_fetch(x, value, err);
        if (status != VD_OK)
            return status;
        at->in[i] = x->value[value];
    }
    bind_kept(x, g, iteration, at->operand);
    for (uint32_t i = 0; i < g->output_count; i++) {
        const uint32_t output = value_of(x, g->output[i], iteration);
        at->out[i] = x->value[output] = group_output(x, g, i, iteration);
        if (!at->out[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for %s",
                           vd_node_name(x->graph, output - x->sources).text);
    }
    return VD_OK;
}

static vd_status end_group(vd_execution *x, const vd_fused *g, uint32_t iteration, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < g->output_count; i++)
        status = vd_part_made(x, value_of(x, g->output[i], iteration), err);
    for (uint32_t i = 0; i < g->input_count; i++)
        vd_release(x, value_of(x, g->input[i], iteration));
    for (uint32_t i = 0; i < g->output_count; i++)
        vd_drop_unread(x, value_of(x, g->output[i], iteration));
    return status;
}

/* Returns whether a parameter's step can run now: all its inputs were made before `node`. */
static bool joins_batch(const vd_execution *x, uint32_t group, uint32_t node) {
    const vd_fused *g = &x->plan.group[group];
    for (uint32_t i = 0; i < g->input_count; i++)
        if (value_of(x, g->input[i], 0) >= x->sources + node)
            return false;
    return g->kind == VD_FUSED_ADAMW && !x->plan.ran[group] && vd_part_runs_group(x, group, 0) &&
           vd_plan_iterations(&x->plan, x->graph, group) == 1;
}

/* Runs groups. In a repeat, dropout uses the random stream of the iteration. */
static vd_status run_bound(const vd_execution *x, const vd_fused *g, uint32_t iteration,
                           const vd_fused_memory *at, uint32_t count, vd_err *err) {
    if (!g->drops || g->slope == 0)
        return vd_fused_run(g, at, count, x->exec->ro, x->exec->kept, x->step_word, err);
    vd_fused moved = *g;
    moved.dropout.stream += (uint32_t)(g->slope * (int64_t)iteration);
    return vd_fused_run(&moved, at, count, x->exec->ro, x->exec->kept, x->step_word, err);
}

vd_status vd_run_group(vd_execution *x, uint32_t first, uint32_t node, uint32_t iteration,
                       vd_err *err) {
    const vd_fused *g = &x->plan.group[first];
    const uint32_t left = x->plan.group_count - first;
    const bool batches =
        g->kind == VD_FUSED_ADAMW && vd_plan_iterations(&x->plan, x->graph, first) == 1;
    vd_fused_memory at[VD_FUSED_BATCH];
    vd_status status = bind_group(x, g, iteration, &at[0], err);
    uint32_t count = 1;
    for (; status == VD_OK && batches && count < left && count < VD_FUSED_BATCH &&
           joins_batch(x, first + count, node);
         count++)
        status = bind_group(x, &g[count], 0, &at[count], err);
    if (x->exec->guard)
        vd_guard_begin(x->exec->guard, x->step, vd_node_name(x->graph, node).text, false);
    if (status == VD_OK)
        status = run_bound(x, g, iteration, at, count, err);
    if (status == VD_OK)
        status = vd_guard_group(x->exec->guard, g, &at[0], x->exec->kept, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        status = end_group(x, &g[i], iteration, err);
        x->plan.ran[first + i] = iteration + 1;
    }
    return status;
}
