/* Canonical bytes of programs. PROTOCOL.md section 1.2. */
#include "verde/graph/graph.h"

#include <stdlib.h>
#include <string.h>

static const char magic[] = "verde program";

static void put_shape(vd_buf *out, const ro_shape *shape) {
    vd_put_u8(out, (uint8_t)shape->dtype);
    vd_put_u8(out, (uint8_t)shape->ndim);
    for (int i = 0; i < shape->ndim; i++)
        vd_put_u64(out, (uint64_t)shape->dim[i]);
}

/* Any bytes give a shape that ro_infer can judge: ndim is in range, unused dimensions are 0. */
static ro_shape get_shape(vd_cursor *in) {
    ro_shape shape = {.dtype = vd_get_u8(in), .ndim = vd_get_u8(in)};
    if (shape.ndim < 1 || shape.ndim > RO_MAX_DIMS) {
        in->failed = true;
        shape.ndim = 0;
    }
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = (int64_t)vd_get_u64(in);
    return shape;
}

static void put_leaf(vd_buf *out, const vd_leaf *leaf) {
    vd_put_string(out, leaf->name);
    put_shape(out, &leaf->shape);
}

static void get_leaf(vd_cursor *in, vd_leaf *leaf) {
    vd_get_string(in, leaf->name, sizeof leaf->name);
    leaf->shape = get_shape(in);
}

static int attr_count(int op) {
    const ro_op_info *info = ro_op_describe(op);
    return info ? info->attr_count : 0;
}

void vd_node_encode(const vd_program *program, const vd_graph *graph, uint32_t node, vd_buf *out) {
    const vd_node *n = vd_node_stored(graph, node);
    (void)program;
    vd_put_string(out, vd_node_name(graph, node).text);
    vd_put_u16(out, (uint16_t)n->op);
    vd_put_u16(out, (uint16_t)n->input_count);
    for (int i = 0; i < attr_count(n->op); i++)
        vd_put_u64(out, (uint64_t)vd_node_attr(graph, node, i));
    for (int32_t i = 0; i < n->input_count; i++)
        vd_put_u32(out, vd_node_input(graph, node, i));
    put_shape(out, &n->shape);
}

static bool get_node(vd_cursor *in, vd_graph *graph, vd_node *n) {
    vd_get_string(in, n->name, sizeof n->name);
    n->op = vd_get_u16(in);
    n->input_count = vd_get_u16(in);
    n->first_input = graph->edge_count;
    if (!ro_op_describe(n->op) || n->input_count > RO_MAX_INPUTS)
        return false;
    for (int i = 0; i < attr_count(n->op); i++)
        n->attr[i] = (int64_t)vd_get_u64(in);
    const uint8_t *edges = vd_get(in, (size_t)n->input_count * 4);
    if (!edges || graph->edge_count + (uint32_t)n->input_count > graph->edge_capacity)
        return false;
    vd_cursor list = vd_cursor_of(edges, (size_t)n->input_count * 4);
    for (int32_t i = 0; i < n->input_count; i++)
        graph->stored_edge[graph->edge_count++] = vd_get_u32(&list);
    n->shape = get_shape(in);
    return !in->failed;
}

static void put_graph(vd_buf *out, const vd_program *program, const vd_graph *graph) {
    vd_put_u32(out, graph->node_count);
    vd_put_u32(out, graph->edge_count);
    for (uint32_t i = 0; i < graph->node_count; i++)
        vd_node_encode(program, graph, i, out);
    for (uint32_t i = 0; i < program->leaf_count; i++)
        vd_put_u32(out, graph->output[i]);
    vd_put_u32(out, graph->loss);
}

/* A node takes at least 16 bytes and an edge 4: counts beyond the input are refused before
 * allocation. */
static bool get_graph(vd_cursor *in, uint32_t leaf_count, vd_graph *graph) {
    uint32_t nodes = vd_get_u32(in), edges = vd_get_u32(in);
    size_t left = in->size - in->at;
    if (in->failed || nodes > VD_NODES_MAX || edges > VD_EDGES_MAX || nodes > left / 16 ||
        edges > left / 4 || leaf_count > left / 4)
        return false;
    graph->stored = calloc(nodes + 1, sizeof *graph->stored);
    graph->stored_edge = calloc(edges + 1, sizeof *graph->stored_edge);
    graph->output = calloc(leaf_count + 1, sizeof *graph->output);
    if (!graph->stored || !graph->stored_edge || !graph->output)
        return false;
    graph->node_capacity = nodes;
    graph->edge_capacity = edges;
    for (; graph->node_count < nodes; graph->node_count++)
        if (!get_node(in, graph, &graph->stored[graph->node_count]))
            return false;
    for (uint32_t i = 0; i < leaf_count; i++)
        graph->output[i] = vd_get_u32(in);
    graph->loss = vd_get_u32(in);
    return !in->failed && graph->edge_count == edges;
}

static void put_rounding(vd_buf *out, const vd_program_rounding *r) {
    uint16_t count = 0;
    for (int op = 0; op < RO_OP_END; op++)
        count += r->threshold[op] != 0;
    vd_put_u8(out, (uint8_t)r->bits);
    vd_put_u8(out, (uint8_t)r->encoding);
    vd_put_u16(out, count);
    for (int op = 0; op < RO_OP_END; op++) {
        uint64_t value;
        memcpy(&value, &r->threshold[op], sizeof value);
        if (r->threshold[op] != 0) {
            vd_put_u16(out, (uint16_t)op);
            vd_put_u64(out, value);
        }
    }
}

/* Operators ascend, so that one table has one spelling. */
static bool get_rounding(vd_cursor *in, vd_program_rounding *r) {
    int last = -1;
    r->bits = vd_get_u8(in);
    r->encoding = vd_get_u8(in);
    for (uint16_t left = vd_get_u16(in); left > 0 && !in->failed; left--) {
        const int op = vd_get_u16(in);
        const uint64_t value = vd_get_u64(in);
        if (op <= last || op >= RO_OP_END || value == 0)
            return false;
        memcpy(&r->threshold[op], &value, sizeof value);
        last = op;
    }
    return !in->failed && r->bits != 0;
}

void vd_program_encode(const vd_program *program, vd_buf *out) {
    vd_put_string(out, magic);
    vd_put_u16(out, VD_ENCODING_VERSION);
    vd_put_u16(out, RO_SPEC_VERSION);
    vd_put_u64(out, program->seed);
    vd_put_u64(out, (uint64_t)program->steps);
    vd_put_u64(out, (uint64_t)program->checkpoint_interval);
    vd_put_u32(out, program->data_count);
    for (uint32_t i = 0; i < program->data_count; i++) {
        put_leaf(out, &program->data[i].tensor);
        vd_put(out, program->data[i].root, sizeof program->data[i].root);
    }
    vd_put_u32(out, program->leaf_count);
    for (uint32_t i = 0; i < program->leaf_count; i++)
        put_leaf(out, &program->leaf[i]);
    put_graph(out, program, &program->init);
    put_graph(out, program, &program->step);
    if (program->rounding.bits)
        put_rounding(out, &program->rounding);
}

static bool get_header(vd_cursor *in, vd_program *p) {
    char text[sizeof magic];
    vd_get_string(in, text, sizeof text);
    if (in->failed || strcmp(text, magic) != 0 || vd_get_u16(in) != VD_ENCODING_VERSION ||
        vd_get_u16(in) != RO_SPEC_VERSION)
        return false;
    p->seed = vd_get_u64(in);
    p->steps = (int64_t)vd_get_u64(in);
    p->checkpoint_interval = (int64_t)vd_get_u64(in);
    return !in->failed;
}

/* The fewest bytes of a leaf: an empty name, a shape of one dimension. */
enum { LEAF_BYTES = 2 + 2 + 8 };

/* Counts beyond the input are refused before allocation. */
static bool get_data(vd_cursor *in, vd_program *p) {
    const uint32_t count = vd_get_u32(in);
    if (in->failed || count > VD_DATA_MAX ||
        count > (in->size - in->at) / (LEAF_BYTES + sizeof p->data->root) ||
        vd_program_take_data(p, count, NULL) != VD_OK)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        get_leaf(in, &p->data[i].tensor);
        const uint8_t *root = vd_get(in, sizeof p->data[i].root);
        if (!root)
            return false;
        memcpy(p->data[i].root, root, sizeof p->data[i].root);
    }
    return !in->failed;
}

static bool get_layout(vd_cursor *in, vd_program *p) {
    uint32_t leaves = vd_get_u32(in);
    if (in->failed || leaves > VD_LEAVES_MAX || leaves > (in->size - in->at) / LEAF_BYTES)
        return false;
    p->leaf = calloc(leaves + 1, sizeof *p->leaf);
    if (!p->leaf)
        return false;
    for (; p->leaf_count < leaves && !in->failed; p->leaf_count++)
        get_leaf(in, &p->leaf[p->leaf_count]);
    return !in->failed;
}

vd_status vd_program_decode(const void *bytes, size_t size, vd_program *out, vd_err *err) {
    *out = (vd_program){0};
    vd_cursor in = vd_cursor_of(bytes, size);
    if (size > VD_PROGRAM_BYTES_MAX)
        return vd_fail(err, VD_ERR_PEER, "program: %zu bytes, expected at most %d", size,
                       VD_PROGRAM_BYTES_MAX);
    if (!get_header(&in, out) || !get_data(&in, out) || !get_layout(&in, out) ||
        !get_graph(&in, out->leaf_count, &out->init) ||
        !get_graph(&in, out->leaf_count, &out->step) ||
        (in.at < in.size && !get_rounding(&in, &out->rounding)) || !vd_cursor_done(&in)) {
        vd_program_free(out);
        return vd_fail(err, VD_ERR_PEER,
                       "program: malformed at byte %zu, expected encoding version %d of "
                       "specification %d",
                       in.at, VD_ENCODING_VERSION, RO_SPEC_VERSION);
    }
    vd_status status = vd_program_validate(out, err);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
