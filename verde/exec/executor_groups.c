/* Groups of nodes that run as one fused function. */
#include "verde/exec/executor.h"

/* Memory for output i of a group: an input's own, if nobody needs that more. */
static void *group_output(vd_execution *x, const vd_fused *g, uint32_t i) {
    const uint32_t input = vd_fused_in_place(g, i);
    size_t size = vd_shape_bytes(vd_value_shape(x->program, x->graph, g->output[i]));
    if (input != VD_NO_GROUP && vd_owned(x, g->input[input]) && x->uses[g->input[input]] == 1) {
        void *taken = x->value[g->input[input]];
        x->value[g->input[input]] = NULL;
        return taken;
    }
    return vd_memory_alloc(x->memory, size);
}

static vd_status bind_group(vd_execution *x, const vd_fused *g, vd_fused_memory *at, vd_err *err) {
    for (uint32_t i = 0; i < g->input_count; i++)
        at->in[i] = x->value[g->input[i]];
    for (uint32_t i = 0; i < g->output_count; i++) {
        at->out[i] = x->value[g->output[i]] = group_output(x, g, i);
        if (!at->out[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for %s",
                           vd_node_name(x->graph, g->output[i] - x->sources).text);
    }
    return VD_OK;
}

static void release_group(vd_execution *x, const vd_fused *g) {
    for (uint32_t i = 0; i < g->input_count; i++)
        vd_release(x, g->input[i]);
    for (uint32_t i = 0; i < g->output_count; i++)
        vd_drop_unread(x, g->output[i]);
}

/* Whether a parameter's step has all it reads when the turn of `node` comes. */
static bool joins_batch(const vd_execution *x, uint32_t group, uint32_t node) {
    const vd_fused *g = &x->plan.group[group];
    for (uint32_t i = 0; i < g->input_count; i++)
        if (g->input[i] >= x->sources + node)
            return false;
    return g->kind == VD_FUSED_ADAMW && !x->plan.ran[group];
}

vd_status vd_run_group(vd_execution *x, uint32_t first, uint32_t node, vd_err *err) {
    const vd_fused *g = &x->plan.group[first];
    const uint32_t left = x->plan.group_count - first;
    vd_fused_memory at[VD_FUSED_BATCH];
    vd_status status = bind_group(x, g, &at[0], err);
    uint32_t count = 1;
    for (; status == VD_OK && g->kind == VD_FUSED_ADAMW && count < left && count < VD_FUSED_BATCH &&
           joins_batch(x, first + count, node);
         count++)
        status = bind_group(x, &g[count], &at[count], err);
    if (status == VD_OK)
        status = vd_fused_run(g, at, count, x->exec->ro, x->step_word, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        release_group(x, &g[i]);
        x->plan.ran[first + i] = true;
    }
    return status;
}
