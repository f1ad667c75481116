/* This file finds the nodes that a graph means among those that it stores. PROTOCOL.md section
 * 1.5. */
#include <string.h>

#include "verde/graph/graph.h"

/* ---- where the nodes of a repeat are ---- */

/* Additions of each sum before iteration m: two halves of a tree are added once both exist. */
static uint32_t merges_before(uint32_t m) {
    return m - (uint32_t)__builtin_popcount(m);
}

/* The number of iteration m's first node, counted from the first node of the repeat. */
static uint64_t begin_of(const vd_repeat *r, uint32_t m) {
    return (uint64_t)m * r->size + (uint64_t)merges_before(m) * r->sum_count;
}

uint64_t vd_repeat_nodes(const vd_repeat *r) {
    return (uint64_t)r->count * r->size + (uint64_t)(r->count - 1) * r->sum_count;
}

/* Finds the iteration of a node. The first guess assumes one addition of each sum per iteration,
 * which is never too few, so the search only goes forward, and a short way. */
static uint32_t iteration_at(const vd_repeat *r, uint32_t offset) {
    uint32_t m = offset / (r->size + r->sum_count);
    while (m + 1 < r->count && begin_of(r, m + 1) <= offset)
        m++;
    return m;
}

static vd_spot spot_in(const vd_repeat *r, uint32_t offset) {
    const uint32_t m = iteration_at(r, offset), at = offset - (uint32_t)begin_of(r, m);
    if (at < r->size)
        return (vd_spot){.repeat = r, .stored = r->first + at, .iteration = m};
    return (vd_spot){.repeat = r,
                     .stored = VD_SPOT_SUM,
                     .iteration = m,
                     .sum = (at - r->size) % r->sum_count,
                     .merge = 1 + (at - r->size) / r->sum_count};
}

vd_spot vd_node_spot(const vd_graph *graph, uint32_t node) {
    for (uint32_t i = graph->repeat_count; i-- > 0;) {
        const vd_repeat *r = &graph->repeat[i];
        if (node < r->start)
            continue;
        const uint64_t nodes = vd_repeat_nodes(r);
        if (node - r->start < nodes)
            return spot_in(r, node - r->start);
        return (vd_spot){.stored = r->first + r->size + (uint32_t)(node - r->start - nodes)};
    }
    return (vd_spot){.stored = node};
}

const vd_repeat *vd_repeat_of(const vd_graph *graph, uint32_t stored) {
    for (uint32_t i = 0; i < graph->repeat_count; i++)
        if (stored >= graph->repeat[i].first &&
            stored - graph->repeat[i].first < graph->repeat[i].size)
            return &graph->repeat[i];
    return NULL;
}

uint64_t vd_inputs_meant(const vd_graph *graph) {
    uint64_t inputs = 0;
    for (uint32_t i = 0; i < graph->stored_count; i++) {
        const vd_repeat *r = vd_repeat_of(graph, i);
        inputs += (uint64_t)graph->stored[i].input_count * (r ? r->count : 1);
    }
    for (uint32_t i = 0; i < graph->repeat_count; i++)
        inputs += (uint64_t)2 * (graph->repeat[i].count - 1) * graph->repeat[i].sum_count;
    return inputs;
}

static uint32_t body_number(const vd_repeat *r, uint32_t stored, uint32_t iteration) {
    return r->start + (uint32_t)begin_of(r, iteration) + stored - r->first;
}

uint32_t vd_node_number(const vd_graph *graph, uint32_t stored, uint32_t iteration) {
    uint32_t number = stored;
    for (uint32_t i = 0; i < graph->repeat_count; i++) {
        const vd_repeat *r = &graph->repeat[i];
        if (stored < r->first)
            break;
        if (stored - r->first < r->size)
            return body_number(r, stored, iteration);
        number = r->start + (uint32_t)vd_repeat_nodes(r) + (stored - r->first - r->size);
    }
    return number;
}

/* ---- sums ---- */

/* The first iteration in the subtree that addition number `merge` after an iteration completes. */
static uint32_t first_added(uint32_t iteration, uint32_t merge) {
    for (; merge > 0; merge--)
        iteration &= iteration - 1;
    return iteration;
}

/* The value of a sum after addition number `merge` behind an iteration; 0: the body's value. */
static uint32_t sum_value(const vd_graph *graph, const vd_repeat *r, uint32_t sum,
                          uint32_t iteration, uint32_t merge) {
    if (merge == 0)
        return graph->sources + body_number(r, graph->sum[r->sum + sum].node, iteration);
    return graph->sources + r->start + (uint32_t)begin_of(r, iteration) + r->size +
           (merge - 1) * r->sum_count + sum;
}

/* Returns an operand of an addition. Side 1 is the addition before it, or the body's value; side 0
 * is the finished subtree to the left. */
static uint32_t added_value(const vd_graph *graph, const vd_spot *s, int32_t side) {
    const uint32_t split = first_added(s->iteration, s->merge - 1);
    if (side == 1)
        return sum_value(graph, s->repeat, s->sum, s->iteration, s->merge - 1);
    const uint32_t size = split - first_added(s->iteration, s->merge);
    return sum_value(graph, s->repeat, s->sum, split - 1, (uint32_t)__builtin_ctz(size));
}

uint32_t vd_repeat_sum_value(const vd_graph *graph, const vd_repeat *r, uint32_t sum) {
    return graph->sources + r->start + (uint32_t)vd_repeat_nodes(r) - r->sum_count + sum;
}

/* ---- inputs ---- */

uint32_t vd_shifted_value(const vd_shifted *s, uint32_t iteration) {
    return (uint32_t)((int64_t)s->first + s->slope * (int64_t)iteration);
}

uint32_t vd_edge_value(const vd_graph *graph, const vd_repeat *r, uint32_t edge,
                       uint32_t iteration) {
    const uint32_t number = graph->stored_edge[edge];
    if (!r || !graph->stored_from || graph->stored_from[edge] == VD_FROM_VALUE)
        return number;
    if (graph->stored_from[edge] == VD_FROM_NODE)
        return graph->sources + vd_node_number(graph, number, iteration);
    if (graph->stored_from[edge] == VD_FROM_SHIFTED)
        return vd_shifted_value(&graph->shifted[number], iteration);
    const vd_carried *c = &graph->carried[r->carried + number];
    return iteration == 0 ? c->before : graph->sources + body_number(r, c->node, iteration - 1);
}

uint32_t vd_node_input(const vd_graph *graph, uint32_t node, int32_t i) {
    const vd_spot s = vd_node_spot(graph, node);
    if (s.stored == VD_SPOT_SUM)
        return added_value(graph, &s, i);
    return vd_edge_value(graph, s.repeat, graph->stored[s.stored].first_input + (uint32_t)i,
                         s.iteration);
}

/* ---- the rest of a node ---- */

static const vd_node *stored_at(const vd_graph *graph, const vd_spot *s) {
    return s->stored == VD_SPOT_SUM ? &graph->sum[s->repeat->sum + s->sum].add
                                    : &graph->stored[s->stored];
}

const vd_node *vd_node_stored(const vd_graph *graph, uint32_t node) {
    const vd_spot s = vd_node_spot(graph, node);
    return stored_at(graph, &s);
}

int64_t vd_node_attr(const vd_graph *graph, uint32_t node, int attr) {
    const vd_spot s = vd_node_spot(graph, node);
    const vd_node *n = stored_at(graph, &s);
    const bool moves = s.repeat && n->slope != 0 && n->moving == attr;
    return n->attr[attr] + (moves ? n->slope * (int64_t)s.iteration : 0);
}

vd_name vd_node_name(const vd_graph *graph, uint32_t node) {
    const vd_spot s = vd_node_spot(graph, node);
    const char *from = vd_stored_name(graph, stored_at(graph, &s));
    vd_name name = {{0}};
    size_t at = 0;
    for (; *from && at + 1 < sizeof name.text; from++) {
        const bool number = s.repeat && (*from == VD_NAME_ITERATION || *from == VD_NAME_LAST);
        const bool first = s.stored == VD_SPOT_SUM && *from == VD_NAME_ITERATION;
        if (number)
            at += (size_t)snprintf(name.text + at, sizeof name.text - at, "%u",
                                   first ? first_added(s.iteration, s.merge) : s.iteration);
        else
            name.text[at++] = *from;
    }
    return name;
}
