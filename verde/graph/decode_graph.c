/* This file decodes graphs from bytes that anyone may have written. PROTOCOL.md sections 1.2,
 * 1.5. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "verde/graph/encode.h"
#include "verde/graph/validate.h"

/* The fewest bytes that a node can have: no name, no input, one dimension. */
enum { NODE_BYTES = 16 };

bool vd_no_memory(vd_err *err) {
    vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return false;
}

bool vd_exceeds(uint64_t count, uint64_t most, const char *what, vd_err *err) {
    if (count > most)
        vd_fail_limit(err, NULL, count, what, most);
    return count > most;
}

/* Reads a shape that ro_infer can judge: ndim is in range, unused dimensions are 0. */
ro_shape vd_get_shape(vd_cursor *in, vd_err *err) {
    ro_shape shape = {.dtype = vd_get_u8(in)};
    shape.ndim = vd_get_u8(in);
    if (shape.ndim < 1 ||
        vd_exceeds((uint64_t)shape.ndim, RO_MAX_DIMS, "dimensions of a tensor", err)) {
        in->failed = true;
        shape.ndim = 0;
    }
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = (int64_t)vd_get_u64(in);
    return shape;
}

/* Refuses a kind that this version does not know, as a later one may. */
static bool refuse_kind(int kind, const char *what, vd_err *err) {
    vd_fail(err, VD_ERR_VERSION, "kind %d of %s is not known to this version", kind, what);
    return false;
}

/* Enlarges a list; the new entries are zeros. */
static bool grow(void *list, uint32_t count, uint32_t more, size_t size, vd_err *err) {
    void *old;
    memcpy(&old, list, sizeof old);
    char *grown = realloc(old, ((size_t)count + more + 1) * size);
    if (!grown)
        return vd_no_memory(err);
    memset(grown + count * size, 0, ((size_t)more + 1) * size);
    memcpy(list, &grown, sizeof grown);
    return true;
}

/* Reads a shifted input, whose first value is *edge, and sets *edge to its number. */
static bool get_shifted(vd_cursor *in, vd_graph *graph, uint32_t count, uint32_t *edge,
                        vd_err *err) {
    const uint32_t at = graph->shifted_count;
    const vd_shifted s = {*edge, count, (int64_t)vd_get_u64(in)};
    const bool is_full = (at & (at - 1)) == 0;
    if (in->failed || s.slope == 0 ||
        (is_full && !grow(&graph->shifted, at, at, sizeof *graph->shifted, err)))
        return false;
    graph->shifted[graph->shifted_count++] = s;
    *edge = at;
    return true;
}

/* Reads a node's edges. `count`: iterations of the repeat that the node is in; 0: it is in none. */
static bool get_edges(vd_cursor *in, vd_graph *graph, vd_node *n, uint32_t count, vd_err *err) {
    n->first_input = graph->edge_count;
    if (graph->edge_count + (uint32_t)n->input_count > graph->edge_capacity)
        return false;
    for (int32_t i = 0; i < n->input_count && !in->failed; i++) {
        const int kind = count ? vd_get_u8(in) : VD_FROM_VALUE;
        if (kind > VD_FROM_SHIFTED)
            return refuse_kind(kind, "an input", err);
        uint32_t *edge = &graph->stored_edge[graph->edge_count];
        graph->stored_from[graph->edge_count++] = (uint8_t)kind;
        *edge = vd_get_u32(in);
        if (kind == VD_FROM_SHIFTED && !get_shifted(in, graph, count, edge, err))
            return false;
    }
    return !in->failed;
}

/* Reads a name; vd_valid_name checks its characters later. */
static bool get_name(vd_cursor *in, vd_graph *graph, vd_node *n, vd_err *err) {
    char name[VD_NAME_SIZE];
    vd_get_string(in, name, sizeof name);
    if (in->failed)
        return false;
    return vd_store_name(graph, n, name, strlen(name)) || vd_no_memory(err);
}

/* Refuses an unknown operator at once, because the number of its attributes is unknown too. */
static bool refuse_operator(const vd_graph *graph, const vd_node *n, vd_err *err) {
    const vd_text why = vd_say_operator(n->op);
    const char *name = vd_stored_name(graph, n);
    vd_fail(err, why.status, "node %u (%s): %s", (uint32_t)(n - graph->stored),
            vd_valid_name(name, 0, 0) ? name : "its name is not printable ASCII", why.text);
    return false;
}

static bool get_node(vd_cursor *in, vd_graph *graph, vd_node *n, uint32_t count, vd_err *err) {
    if (!get_name(in, graph, n, err))
        return false;
    n->op = vd_get_u16(in);
    n->input_count = vd_get_u16(in);
    if (!in->failed && !ro_op_describe(n->op))
        return refuse_operator(graph, n, err);
    if (in->failed || vd_exceeds((uint64_t)n->input_count, RO_MAX_INPUTS, "inputs of a node", err))
        return false;
    for (int i = 0; i < vd_attr_count(n->op); i++)
        n->attr[i] = (int64_t)vd_get_u64(in);
    n->moving = count ? vd_get_u8(in) - 1 : -1;
    if (n->moving >= 0)
        n->slope = (int64_t)vd_get_u64(in);
    if ((n->moving >= 0) != (n->slope != 0) || n->moving >= vd_attr_count(n->op) ||
        !get_edges(in, graph, n, count, err))
        return false;
    n->shape = vd_get_shape(in, err);
    return !in->failed;
}

/* Reads nodes; refuses impossible counts before it allocates memory. `count`: as for get_edges. */
static bool get_nodes(vd_cursor *in, uint32_t nodes, vd_graph *g, uint32_t count, vd_err *err) {
    const uint32_t edges = vd_get_u32(in);
    const size_t left = in->size - in->at;
    if (in->failed || nodes == 0 || nodes > left / NODE_BYTES || edges > left / 4 ||
        vd_exceeds((uint64_t)nodes + g->stored_count, VD_NODES_MAX, "nodes", err) ||
        vd_exceeds((uint64_t)nodes + g->node_count, VD_UNROLLED_MAX, "nodes", err) ||
        vd_exceeds((uint64_t)edges + g->edge_count, VD_EDGES_MAX, "inputs of nodes", err))
        return false;
    if (!grow(&g->stored, g->stored_count, nodes, sizeof *g->stored, err) ||
        !grow(&g->stored_edge, g->edge_count, edges, sizeof *g->stored_edge, err) ||
        !grow(&g->stored_from, g->edge_count, edges, sizeof *g->stored_from, err))
        return false;
    g->node_capacity = g->stored_count + nodes;
    g->edge_capacity = g->edge_count + edges;
    for (; g->stored_count < g->node_capacity; g->stored_count++)
        if (!get_node(in, g, &g->stored[g->stored_count], count, err))
            return false;
    g->node_count += count ? 0 : nodes;
    return g->edge_count == g->edge_capacity;
}

static bool get_carried(vd_cursor *in, vd_graph *g, vd_repeat *r, vd_err *err) {
    const uint32_t count = vd_get_u32(in);
    r->carried = g->carried_count;
    if (in->failed || count > (in->size - in->at) / 8 ||
        vd_exceeds(count, VD_SUMS_MAX, "carried values of a repeat", err) ||
        !grow(&g->carried, g->carried_count, count, sizeof *g->carried, err))
        return false;
    r->carried_count = count;
    for (uint32_t i = 0; i < count; i++) {
        vd_carried *c = &g->carried[g->carried_count++];
        c->before = vd_get_u32(in);
        c->node = vd_get_u32(in);
    }
    return !in->failed;
}

static bool get_sum(vd_cursor *in, vd_graph *g, const vd_repeat *r, vd_sum *sum, vd_err *err) {
    sum->node = vd_get_u32(in);
    if (in->failed || sum->node < r->first || sum->node - r->first >= r->size ||
        !get_name(in, g, &sum->add, err))
        return false;
    sum->add.op = RO_OP_ADD;
    sum->add.input_count = 2;
    sum->add.moving = -1;
    sum->add.shape = g->stored[sum->node].shape;
    return true;
}

static bool get_sums(vd_cursor *in, vd_graph *g, vd_repeat *r, vd_err *err) {
    const uint32_t count = vd_get_u32(in);
    r->sum = g->sum_count;
    if (in->failed || count > (in->size - in->at) / 6 ||
        vd_exceeds(count, VD_SUMS_MAX, "sums of a repeat", err) ||
        !grow(&g->sum, g->sum_count, count, sizeof *g->sum, err))
        return false;
    r->sum_count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!get_sum(in, g, r, &g->sum[g->sum_count++], err))
            return false;
    return true;
}

static bool get_repeat(vd_cursor *in, vd_graph *g, vd_err *err) {
    vd_repeat r = {.count = vd_get_u32(in), .first = g->stored_count, .start = g->node_count};
    if (r.count < 2 || vd_exceeds(g->repeat_count + 1, VD_REPEATS_MAX, "repeats", err) ||
        !get_nodes(in, vd_get_u32(in), g, r.count, err))
        return false;
    r.size = g->stored_count - r.first;
    if (!get_carried(in, g, &r, err) || !get_sums(in, g, &r, err) ||
        vd_exceeds(vd_repeat_nodes(&r) + g->node_count, VD_UNROLLED_MAX, "nodes", err) ||
        !grow(&g->repeat, g->repeat_count, 1, sizeof *g->repeat, err))
        return false;
    g->node_count += (uint32_t)vd_repeat_nodes(&r);
    g->repeat[g->repeat_count++] = r;
    return true;
}

static bool get_segments(vd_cursor *in, vd_graph *g, vd_err *err) {
    const uint32_t first = vd_get_u32(in);
    int last = -1;
    if (first != VD_SEGMENTS)
        return get_nodes(in, first, g, 0, err);
    for (uint32_t left = vd_get_u32(in); left > 0 && !in->failed; left--) {
        const int kind = vd_get_u8(in);
        if (kind > VD_SEGMENT_REPEAT)
            return refuse_kind(kind, "a segment", err);
        const bool ok = kind == VD_SEGMENT_PLAIN
                            ? last != VD_SEGMENT_PLAIN && get_nodes(in, vd_get_u32(in), g, 0, err)
                            : get_repeat(in, g, err);
        if (!ok)
            return false;
        last = kind;
    }
    return !in->failed && g->repeat_count > 0;
}

static bool get_outputs(vd_cursor *in, uint32_t leaves, vd_graph *graph, vd_err *err) {
    if (leaves > (in->size - in->at) / 4)
        return false;
    graph->output = calloc(leaves + 1, sizeof *graph->output);
    if (!graph->output)
        return vd_no_memory(err);
    for (uint32_t i = 0; i < leaves; i++)
        graph->output[i] = vd_get_u32(in);
    graph->loss = vd_get_u32(in);
    return !in->failed;
}

bool vd_get_graph(vd_cursor *in, const vd_program *program, vd_graph *graph, vd_err *err) {
    vd_err why = {0};
    graph->sources = vd_source_count(program, graph);
    if (get_segments(in, graph, &why) && get_outputs(in, program->leaf_count, graph, &why))
        return true;
    if (why.text[0])
        vd_fail(err, why.status, "%s graph, %s", vd_graph_name(program, graph), why.text);
    return false;
}
