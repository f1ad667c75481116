/* This file drops nodes that nothing reads. */
#include <stdlib.h>

#include "verde/graph/build.h"

typedef struct {
    uint32_t sources;
    bool *needed;     /* whether a node is needed */
    uint32_t *number; /* new number of a node's value, once the others are gone */
} pruning;

static void need(const pruning *p, uint32_t value) {
    if (value != UINT32_MAX && value >= p->sources)
        p->needed[value - p->sources] = true;
}

/* Marks from the last node to the first, as a node's inputs come before it. */
static void mark(const pruning *p, const vd_program *program, const vd_graph *g) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        need(p, g->output[i]);
    need(p, g->loss);
    for (uint32_t i = g->node_count; i-- > 0;)
        for (int32_t k = 0; p->needed[i] && k < g->stored[i].input_count; k++)
            need(p, g->stored_edge[g->stored[i].first_input + (uint32_t)k]);
}

static uint32_t renumbered(const pruning *p, uint32_t value) {
    return value == UINT32_MAX || value < p->sources ? value : p->number[value - p->sources];
}

static void move_node(const pruning *p, vd_graph *g, uint32_t from, uint32_t to, uint32_t *edges) {
    vd_node *n = &g->stored[to];
    *n = g->stored[from];
    for (int32_t k = 0; k < n->input_count; k++)
        g->stored_edge[*edges + (uint32_t)k] =
            renumbered(p, g->stored_edge[n->first_input + (uint32_t)k]);
    n->first_input = *edges;
    *edges += (uint32_t)n->input_count;
    p->number[from] = p->sources + to;
}

static void compact(const pruning *p, const vd_program *program, vd_graph *g) {
    uint32_t nodes = 0, edges = 0;
    for (uint32_t i = 0; i < g->node_count; i++)
        if (p->needed[i])
            move_node(p, g, i, nodes++, &edges);
    g->node_count = g->stored_count = nodes;
    g->edge_count = edges;
    for (uint32_t i = 0; i < program->leaf_count; i++)
        g->output[i] = renumbered(p, g->output[i]);
    g->loss = renumbered(p, g->loss);
}

void vd_prune(vd_builder *b) {
    const size_t count = (size_t)b->graph->node_count + 1;
    if (b->status != VD_OK)
        return;
    if (b->graph->repeat_count > 0) {
        vd_builder_fail(b, VD_ERR_LOCAL, "a graph with repeats is not pruned");
        return;
    }
    const pruning p = {vd_source_count(b->program, b->graph), calloc(count, sizeof *p.needed),
                       calloc(count, sizeof *p.number)};
    if (p.needed && p.number) {
        mark(&p, b->program, b->graph);
        compact(&p, b->program, b->graph);
        b->tape_count = 0;
    } else {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
    }
    free(p.needed);
    free(p.number);
}
