/* This file unrolls repeats, so that every node of a graph is stored by itself. */
#include <stdlib.h>
#include <string.h>

#include "verde/graph/graph.h"

static bool put_node(const vd_graph *from, uint32_t node, vd_graph *to) {
    const vd_node *n = vd_node_stored(from, node);
    const vd_name name = vd_node_name(from, node);
    vd_node *copy = &to->stored[to->stored_count++];
    *copy = *n;
    for (int i = 0; i < RO_MAX_ATTRS; i++)
        copy->attr[i] = vd_node_attr(from, node, i);
    copy->slope = copy->moving = 0;
    copy->first_input = to->edge_count;
    for (int32_t i = 0; i < n->input_count; i++)
        to->stored_edge[to->edge_count++] = vd_node_input(from, node, i);
    return vd_store_name(to, copy, name.text, strlen(name.text));
}

static vd_status no_memory(uint32_t nodes, vd_graph *out, vd_err *err) {
    free(out->stored);
    free(out->stored_edge);
    free(out->names);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory for %u nodes", nodes);
}

vd_status vd_graph_unroll(vd_graph *graph, vd_err *err) {
    size_t edges = 0;
    if (graph->repeat_count == 0)
        return VD_OK;
    for (uint32_t i = 0; i < graph->node_count; i++)
        edges += (size_t)vd_node_stored(graph, i)->input_count;
    vd_graph out = {.node_count = graph->node_count,
                    .stored = calloc((size_t)graph->node_count + 1, sizeof *out.stored),
                    .node_capacity = graph->node_count,
                    .stored_edge = calloc(edges + 1, sizeof *out.stored_edge),
                    .edge_capacity = (uint32_t)edges,
                    .output = graph->output,
                    .loss = graph->loss};
    if (!out.stored || !out.stored_edge || edges > UINT32_MAX)
        return no_memory(graph->node_count, &out, err);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (!put_node(graph, i, &out))
            return no_memory(graph->node_count, &out, err);
    free(graph->stored);
    free(graph->stored_edge);
    free(graph->stored_from);
    free(graph->repeat);
    free(graph->carried);
    free(graph->shifted);
    free(graph->sum);
    free(graph->names);
    *graph = out;
    return VD_OK;
}
