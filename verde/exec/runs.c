/* This file finds how an executor runs each node of a graph, for people. */
#include <stdlib.h>

#include "verde/exec/executor.h"

const char *vd_fused_name(vd_fused_kind kind) {
    static const char *const names[] = {
        [VD_FUSED_ATTENTION] = "attention",
        [VD_FUSED_ATTENTION_GRAD] = "attention, gradient",
        [VD_FUSED_LINEAR] = "linear layer",
        [VD_FUSED_CROSS_ENTROPY] = "cross-entropy",
        [VD_FUSED_LAYER_NORM] = "layer norm",
        [VD_FUSED_LAYER_NORM_GRAD] = "layer norm, gradient",
        [VD_FUSED_RMS_NORM] = "RMS norm",
        [VD_FUSED_RMS_NORM_GRAD] = "RMS norm, gradient",
        [VD_FUSED_ADAMW] = "AdamW",
        [VD_FUSED_ADAMW_BF16] = "AdamW of bf16",
        [VD_FUSED_SGD] = "SGD",
        [VD_FUSED_EMBEDDING_GRAD] = "gradient added to a table's",
        [VD_FUSED_ROTARY] = "rotary positions",
        [VD_FUSED_ROTARY_GRAD] = "rotary positions, gradient",
        [VD_FUSED_CONV] = "convolution",
        [VD_FUSED_ELEMENTS] = "elements",
    };
    return names[kind];
}

static vd_node_run run_of(const vd_execution *x, uint32_t node) {
    const vd_planned p = vd_plan_of(&x->plan, x->graph, node);
    if (p.group != VD_NO_GROUP)
        return (vd_node_run){VD_RUNS_FUSED, vd_fused_name(x->plan.group[p.group].kind), p.group};
    if (p.idle)
        return (vd_node_run){.how = VD_RUNS_NOT};
    return (vd_node_run){vd_root(x, x->sources + node) == x->sources + node ? VD_RUNS_ITSELF
                                                                            : VD_RUNS_SHARED,
                         NULL, 0};
}

vd_status vd_exec_runs(const vd_program *program, const vd_graph *graph, vd_node_run *out,
                       vd_err *err) {
    vd_execution *x = calloc(1, sizeof *x);
    if (!x)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    x->program = program, x->graph = graph;
    x->sources = vd_source_count(program, graph), x->count = x->sources + graph->node_count;
    vd_status status = vd_plan_create(program, graph, VD_FUSE_LAYERS, &x->plan, err);
    x->uses = x->plan.uses;
    if (status == VD_OK)
        status = vd_alias_plan(x, err);
    for (uint32_t i = 0; status == VD_OK && i < graph->node_count; i++)
        out[i] = run_of(x, i);
    vd_plan_free(&x->plan);
    free(x->root);
    free(x);
    return status;
}
