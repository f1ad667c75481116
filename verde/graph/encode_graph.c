/* Canonical bytes of graphs and their nodes. PROTOCOL.md sections 1.2 and 1.5. */
#include <stdlib.h>
#include <string.h>

#include "verde/graph/encode.h"

void vd_put_shape(vd_buf *out, const ro_shape *shape) {
    vd_put_u8(out, (uint8_t)shape->dtype);
    vd_put_u8(out, (uint8_t)shape->ndim);
    for (int i = 0; i < shape->ndim; i++)
        vd_put_u64(out, (uint64_t)shape->dim[i]);
}

int vd_attr_count(int op) {
    const ro_op_info *info = ro_op_describe(op);
    return info ? info->attr_count : 0;
}

void vd_node_encode(const vd_program *program, const vd_graph *graph, uint32_t node, vd_buf *out) {
    const vd_node *n = vd_node_stored(graph, node);
    (void)program;
    vd_put_string(out, vd_node_name(graph, node).text);
    vd_put_u16(out, (uint16_t)n->op);
    vd_put_u16(out, (uint16_t)n->input_count);
    for (int i = 0; i < vd_attr_count(n->op); i++)
        vd_put_u64(out, (uint64_t)vd_node_attr(graph, node, i));
    for (int32_t i = 0; i < n->input_count; i++)
        vd_put_u32(out, vd_node_input(graph, node, i));
    vd_put_shape(out, &n->shape);
}

static void put_body_edge(vd_buf *out, const vd_graph *graph, uint32_t edge) {
    const uint32_t number = graph->stored_edge[edge];
    const bool is_shifted = graph->stored_from[edge] == VD_FROM_SHIFTED;
    vd_put_u8(out, graph->stored_from[edge]);
    vd_put_u32(out, is_shifted ? graph->shifted[number].first : number);
    if (is_shifted)
        vd_put_u64(out, (uint64_t)graph->shifted[number].slope);
}

/* Writes a node as it is stored. */
static void put_node(const vd_encoding *e, const vd_graph *graph, const vd_node *n, bool in_body) {
    vd_buf *out = e->out;
    vd_put_name(e, vd_stored_name(graph, n));
    vd_put_u16(out, (uint16_t)n->op);
    vd_put_u16(out, (uint16_t)n->input_count);
    for (int i = 0; i < vd_attr_count(n->op); i++)
        vd_put_u64(out, (uint64_t)n->attr[i]);
    if (in_body)
        vd_put_u8(out, (uint8_t)(n->slope ? n->moving + 1 : 0));
    if (in_body && n->slope)
        vd_put_u64(out, (uint64_t)n->slope);
    for (uint32_t i = n->first_input; i < n->first_input + (uint32_t)n->input_count; i++) {
        if (in_body)
            put_body_edge(out, graph, i);
        else
            vd_put_u32(out, graph->stored_edge[i]);
    }
    vd_put_shape(out, &n->shape);
    vd_encoding_pass(e, false);
}

static void put_nodes(const vd_encoding *e, const vd_graph *graph, uint32_t first, uint32_t count,
                      bool in_body) {
    uint32_t edges = 0;
    for (uint32_t i = first; i < first + count; i++)
        edges += (uint32_t)graph->stored[i].input_count;
    vd_put_u32(e->out, count);
    vd_put_u32(e->out, edges);
    for (uint32_t i = first; i < first + count; i++)
        put_node(e, graph, &graph->stored[i], in_body);
}

static void put_plain(const vd_encoding *e, const vd_graph *graph, uint32_t first, uint32_t end) {
    if (first == end)
        return;
    vd_put_u8(e->out, VD_SEGMENT_PLAIN);
    put_nodes(e, graph, first, end - first, false);
}

static void put_repeat(const vd_encoding *e, const vd_graph *graph, const vd_repeat *r) {
    vd_buf *out = e->out;
    vd_put_u8(out, VD_SEGMENT_REPEAT);
    vd_put_u32(out, r->count);
    put_nodes(e, graph, r->first, r->size, true);
    vd_put_u32(out, r->carried_count);
    for (uint32_t i = r->carried; i < r->carried + r->carried_count; i++) {
        vd_put_u32(out, graph->carried[i].before);
        vd_put_u32(out, graph->carried[i].node);
    }
    vd_put_u32(out, r->sum_count);
    for (uint32_t i = r->sum; i < r->sum + r->sum_count; i++) {
        vd_put_u32(out, graph->sum[i].node);
        vd_put_name(e, vd_stored_name(graph, &graph->sum[i].add));
    }
}

static uint32_t segments(const vd_graph *graph) {
    uint32_t count = graph->repeat_count, at = 0;
    for (uint32_t i = 0; i < graph->repeat_count; i++) {
        count += graph->repeat[i].first > at;
        at = graph->repeat[i].first + graph->repeat[i].size;
    }
    return count + (graph->stored_count > at);
}

static void put_outputs(vd_buf *out, const vd_program *program, const vd_graph *graph) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        vd_put_u32(out, graph->output[i]);
    vd_put_u32(out, graph->loss);
}

void vd_put_graph(const vd_encoding *e, const vd_program *program, const vd_graph *graph) {
    uint32_t at = 0;
    if (graph->repeat_count == 0) {
        put_nodes(e, graph, 0, graph->stored_count, false);
        put_outputs(e->out, program, graph);
        return;
    }
    vd_put_u32(e->out, VD_SEGMENTS);
    vd_put_u32(e->out, segments(graph));
    for (uint32_t i = 0; i < graph->repeat_count; i++) {
        const vd_repeat *r = &graph->repeat[i];
        put_plain(e, graph, at, r->first);
        put_repeat(e, graph, r);
        at = r->first + r->size;
    }
    put_plain(e, graph, at, graph->stored_count);
    put_outputs(e->out, program, graph);
}
