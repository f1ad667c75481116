/* Building a repeat. Its body is built once, with the values of iteration 0; vd_repeat_end turns
 * these into edges that hold in all iterations. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "verde/graph/build.h"

void vd_repeat_begin(vd_builder *b, uint32_t count) {
    vd_graph *g = b->graph;
    if (b->status != VD_OK)
        return;
    if (b->repeats || count < 2 || g->repeat_count == VD_REPEATS_MAX) {
        vd_builder_fail(b, VD_ERR_LOCAL, "a repeat of %u, in another one, or too many", count);
        return;
    }
    g->sources = vd_source_count(b->program, g);
    b->repeats = true;
    b->repeat = (vd_repeat){.count = count,
                            .first = g->stored_count,
                            .start = g->node_count,
                            .carried = g->carried_count,
                            .sum = g->sum_count};
}

/* The stored node of the current body that makes a value; UINT32_MAX if there is none. */
static uint32_t in_body(const vd_builder *b, vd_value value) {
    const uint32_t from = b->graph->sources + b->repeat.start;
    if (!b->repeats || value < from || value >= b->graph->sources + b->graph->node_count)
        return UINT32_MAX;
    return b->repeat.first + (value - from);
}

static uint32_t need_in_body(vd_builder *b, vd_value value) {
    const uint32_t node = in_body(b, value);
    if (b->status == VD_OK && node == UINT32_MAX)
        vd_builder_fail(b, VD_ERR_LOCAL, "value %u is none of the repeat's", value);
    return b->status == VD_OK ? node : UINT32_MAX;
}

void vd_move(vd_builder *b, vd_value value, int attr, int64_t slope) {
    const uint32_t node = b->repeats ? need_in_body(b, value) : UINT32_MAX;
    if (node == UINT32_MAX)
        return;
    b->graph->stored[node].moving = attr;
    b->graph->stored[node].slope = slope;
}

static void *grown(vd_builder *b, void *list, uint32_t count, size_t size) {
    void *more = realloc(list, (size_t)(count + 1) * size);
    if (!more)
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
    return more;
}

void vd_repeat_carry(vd_builder *b, vd_value before, vd_value after) {
    vd_graph *g = b->graph;
    const uint32_t node = need_in_body(b, after);
    vd_carried *list =
        node == UINT32_MAX ? NULL : grown(b, g->carried, g->carried_count, sizeof *g->carried);
    if (!list)
        return;
    g->carried = list;
    list[g->carried_count++] = (vd_carried){before, node};
    b->repeat.carried_count++;
}

void vd_repeat_sum(vd_builder *b, const char *name, vd_value x) {
    vd_graph *g = b->graph;
    const uint32_t node = need_in_body(b, x);
    vd_sum *list = node == UINT32_MAX ? NULL : grown(b, g->sum, g->sum_count, sizeof *g->sum);
    if (!list)
        return;
    g->sum = list;
    vd_sum *sum = &list[g->sum_count++];
    memset(sum, 0, sizeof *sum);
    sum->node = node;
    sum->add.op = RO_OP_ADD;
    sum->add.input_count = 2;
    sum->add.shape = g->stored[node].shape;
    vd_name_node(b, &sum->add, name);
    b->repeat.sum_count++;
}

/* Turns an edge to a value of iteration 0 into one that holds in all iterations. */
static void set_edge(vd_builder *b, uint32_t edge) {
    vd_graph *g = b->graph;
    const uint32_t value = g->stored_edge[edge], node = in_body(b, value);
    for (uint32_t i = 0; i < b->repeat.carried_count; i++)
        if (g->carried[b->repeat.carried + i].before == value) {
            g->stored_from[edge] = VD_FROM_CARRIED;
            g->stored_edge[edge] = i;
            return;
        }
    vd_spot s = {.stored = node};
    if (node == UINT32_MAX && value >= g->sources) /* it may be iteration 0 of an earlier repeat */
        s = vd_node_spot(g, value - g->sources);
    if (node == UINT32_MAX && (!s.repeat || s.stored == VD_SPOT_SUM || s.iteration != 0 ||
                               s.repeat->count != b->repeat.count))
        return;
    g->stored_from[edge] = VD_FROM_NODE;
    g->stored_edge[edge] = s.stored;
}

static void set_edges(vd_builder *b) {
    const vd_graph *g = b->graph;
    for (uint32_t i = b->repeat.first; i < g->stored_count; i++)
        for (int32_t k = 0; k < g->stored[i].input_count; k++)
            set_edge(b, g->stored[i].first_input + (uint32_t)k);
}

void vd_repeat_end(vd_builder *b) {
    vd_graph *g = b->graph;
    if (b->status != VD_OK || !b->repeats)
        return;
    vd_repeat *list = grown(b, g->repeat, g->repeat_count, sizeof *g->repeat);
    if (!list)
        return;
    g->repeat = list;
    b->repeat.size = g->stored_count - b->repeat.first;
    const uint64_t nodes = vd_repeat_nodes(&b->repeat);
    if (b->repeat.start + nodes > VD_UNROLLED_MAX) {
        vd_builder_fail(b, VD_ERR_USAGE,
                        "micro_batches must be at most %lld with so many layers, got %u: each has "
                        "%u nodes, of at most %d in a step",
                        (long long)(VD_UNROLLED_MAX / (b->repeat.size + b->repeat.sum_count)),
                        b->repeat.count, b->repeat.size + b->repeat.sum_count, VD_UNROLLED_MAX);
        return;
    }
    set_edges(b);
    g->node_count = b->repeat.start + (uint32_t)nodes;
    list[g->repeat_count++] = b->repeat;
    b->repeats = false;
}

vd_value vd_repeat_last(const vd_builder *b, vd_value first) {
    const vd_graph *g = b->graph;
    if (b->status != VD_OK)
        return 0;
    const vd_spot s = vd_node_spot(g, first - g->sources);
    return g->sources + vd_node_number(g, s.stored, s.repeat ? s.repeat->count - 1 : 0);
}

vd_value vd_repeat_total(const vd_builder *b, uint32_t sum) {
    const vd_graph *g = b->graph;
    return b->status == VD_OK ? vd_repeat_sum_value(g, &g->repeat[g->repeat_count - 1], sum) : 0;
}
