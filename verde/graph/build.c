/* This file adds nodes and leaves to a graph that is being built, and infers their shapes. */
#include "verde/graph/build.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "verde/graph/tape.h"

vd_builder vd_builder_of(vd_program *program, vd_graph *graph) {
    vd_builder b = {.program = program, .graph = graph};
    graph->loss = UINT32_MAX;
    return b;
}

void vd_builder_free(vd_builder *b) {
    free(b->tape);
    free(b->grad);
    free(b->trained);
    free(b->stored);
    b->stored = NULL;
    b->tape = NULL;
    b->grad = NULL;
    b->trained = NULL;
}

void vd_scope(vd_builder *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(b->scope, sizeof b->scope, format, args);
    va_end(args);
}

vd_status vd_builder_fail(vd_builder *b, vd_status status, const char *format, ...) {
    if (b->status != VD_OK)
        return b->status;
    va_list args;
    va_start(args, format);
    vsnprintf(b->err.text, sizeof b->err.text, format, args);
    va_end(args);
    for (char *at = b->err.text; *at; at++) /* VD_NAME_ITERATION is no printable character */
        if (*at > 0 && *at < ' ')
            *at = '*';
    b->status = b->err.status = status;
    return status;
}

ro_shape vd_shape(int dtype, int ndim, const int64_t *dim) {
    ro_shape shape = {.dtype = dtype, .ndim = ndim};
    memcpy(shape.dim, dim, (size_t)ndim * sizeof *dim);
    return shape;
}

vd_value vd_step_value(const vd_builder *b) {
    return b->numbered_step ? b->numbered_step : vd_source_count(b->program, b->graph) - 1;
}

void vd_number_steps(vd_builder *b, int64_t first) {
    const ro_shape one = VD_SHAPE(RO_F32, 1);
    const vd_op fill = {RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32((float)first)}, &one};
    if (first == 0)
        return;
    vd_scope(b, "step");
    const vd_value own = vd_cast(b, "own", vd_step_value(b), RO_F32);
    const vd_value before = vd_emit(b, "before", fill, 0, NULL);
    const vd_value sum = VD_EMIT(b, "sum", ((vd_op){.op = RO_OP_ADD}), own, before);
    b->numbered_step = vd_cast(b, "number", sum, RO_I32);
}

vd_value vd_data_value(const vd_builder *b, uint32_t index) {
    return vd_state_sources(b->program, b->graph) + index;
}

const ro_shape *vd_shape_of(const vd_builder *b, vd_value value) {
    static const ro_shape scalar = {.dtype = RO_F32, .ndim = 1, .dim = {1}};
    return b->status == VD_OK ? vd_value_shape(b->program, b->graph, value) : &scalar;
}

uint32_t vd_add_leaf(vd_builder *b, const char *name, const ro_shape *shape) {
    vd_program *p = b->program;
    vd_leaf *grown = realloc(p->leaf, (p->leaf_count + 1) * sizeof *grown);
    if (!grown) {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
        return 0;
    }
    p->leaf = grown;
    vd_leaf *leaf = &p->leaf[p->leaf_count];
    memset(leaf, 0, sizeof *leaf);
    snprintf(leaf->name, sizeof leaf->name, "%s", name);
    leaf->shape = *shape;
    return p->leaf_count++;
}

/* Makes room for one more node and `inputs` more edges. */
static bool reserve(vd_graph *g, uint32_t inputs) {
    if (g->stored_count == g->node_capacity) {
        uint32_t capacity = g->node_capacity ? 2 * g->node_capacity : 256;
        vd_node *grown = realloc(g->stored, capacity * sizeof *grown);
        if (!grown)
            return false;
        g->stored = grown;
        g->node_capacity = capacity;
    }
    if (g->edge_count + inputs > g->edge_capacity) {
        uint32_t capacity = 2 * g->edge_capacity + inputs + 256;
        uint32_t *grown = realloc(g->stored_edge, capacity * sizeof *grown);
        if (!grown)
            return false;
        g->stored_edge = grown;
        uint8_t *from = realloc(g->stored_from, capacity);
        if (!from)
            return false;
        memset(from + g->edge_count, 0, capacity - g->edge_count); /* VD_FROM_VALUE */
        g->stored_from = from;
        g->edge_capacity = capacity;
    }
    return true;
}

static void infer(vd_builder *b, vd_node *n, uint32_t index) {
    ro_call call;
    char why[256];
    ro_shape *shapes = calloc((size_t)n->input_count + 1, sizeof *shapes);
    if (!shapes) {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
        return;
    }
    vd_node_call(b->program, b->graph, index, &call, shapes);
    if (ro_infer(&call, why, sizeof why) != RO_OK)
        vd_builder_fail(b, VD_ERR_USAGE, "%s: %s", vd_stored_name(b->graph, n), why);
    n->shape = call.output;
    free(shapes);
}

void vd_name_node(vd_builder *b, vd_node *node, const char *name) {
    char text[VD_NAME_SIZE];
    int length = snprintf(text, sizeof text, "%s%s%s", b->scope, b->scope[0] ? "." : "", name);
    if (length >= VD_NAME_SIZE) {
        vd_builder_fail(b, VD_ERR_USAGE, "%s.%s: name longer than %d", b->scope, name,
                        VD_NAME_SIZE - 1);
        length = VD_NAME_SIZE - 1;
    }
    if (!vd_store_name(b->graph, node, text, (size_t)length))
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
}

vd_value vd_emit(vd_builder *b, const char *name, vd_op op, int32_t input_count,
                 const vd_value *input) {
    vd_graph *g = b->graph;
    if (b->status != VD_OK)
        return 0;
    if (g->stored_count >= VD_NODES_MAX || g->edge_count + (uint32_t)input_count > VD_EDGES_MAX) {
        vd_builder_fail(b, VD_ERR_USAGE,
                        "%s: a graph has at most %d nodes, which read at most %d values", name,
                        VD_NODES_MAX, VD_EDGES_MAX);
        return 0;
    }
    if (input_count > RO_MAX_INPUTS || !reserve(g, (uint32_t)input_count)) {
        vd_builder_fail(b, VD_ERR_LOCAL, "%s: out of memory, or too many inputs", name);
        return 0;
    }
    uint32_t index = g->node_count;
    vd_node *n = &g->stored[g->stored_count];
    memset(n, 0, sizeof *n);
    vd_name_node(b, n, name);
    n->op = op.op;
    n->input_count = input_count;
    memcpy(n->attr, op.attr, sizeof n->attr);
    n->first_input = g->edge_count;
    if (op.shape)
        n->shape = *op.shape;
    for (int32_t i = 0; i < input_count; i++)
        g->stored_edge[g->edge_count++] = input[i];
    infer(b, n, index);
    g->stored_count++;
    g->node_count++;
    return vd_source_count(b->program, g) + index;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* The shape of a row reduction: [leading dimensions, blocks]; [blocks] if a row is the whole
 * tensor. */
static ro_shape reduced_shape(const ro_shape *in, int64_t cols, int64_t blocks) {
    ro_shape shape = {.dtype = RO_F32, .ndim = 1, .dim = {blocks}};
    if (cols == ro_shape_numel(in))
        return shape;
    shape = *in;
    shape.dim[shape.ndim - 1] = blocks;
    return shape;
}

vd_value vd_reduce(vd_builder *b, const char *name, int op, int64_t cols, int32_t input_count,
                   const vd_value *input) {
    int next = op == RO_OP_REDUCE_MAX ? RO_OP_REDUCE_MAX : RO_OP_REDUCE_SUM;
    int64_t block = cols < RO_REDUCE_BLOCK ? cols : RO_REDUCE_BLOCK, left = ceil_div(cols, block);
    ro_shape shape = reduced_shape(vd_shape_of(b, input[0]), cols, left);
    vd_value x = vd_emit(b, name, (vd_op){op, {cols, block}, &shape}, input_count, input);
    while (left > 1 && b->status == VD_OK) {
        block = left < RO_REDUCE_BLOCK ? left : RO_REDUCE_BLOCK;
        int64_t blocks = ceil_div(left, block);
        shape.dim[shape.ndim - 1] = blocks;
        x = VD_EMIT(b, name, ((vd_op){next, {left, block}, &shape}), x);
        left = blocks;
    }
    return x;
}

vd_value vd_column_sum(vd_builder *b, const char *name, int op, const ro_shape *shape,
                       int32_t input_count, const vd_value *input) {
    int64_t cols = ro_shape_numel(shape);
    int64_t rows = ceil_div(ro_shape_numel(vd_shape_of(b, input[0])), cols);
    vd_value x = VD_NONE;
    do {
        rows = ceil_div(rows, RO_COLUMN_GROUP);
        ro_shape partial = rows == 1 ? *shape : VD_SHAPE(RO_F32, rows, cols);
        vd_op sum = {op, {cols}, &partial};
        x = x == VD_NONE ? vd_emit(b, name, sum, input_count, input) : VD_EMIT(b, name, sum, x);
        op = RO_OP_SUM_ROWS;
    } while (rows > 1 && b->status == VD_OK);
    return x;
}

vd_value vd_div_const(vd_builder *b, const char *name, vd_value x, double divisor) {
    return VD_EMIT(
        b, name,
        ((vd_op){RO_OP_DIV_CONST, {[RO_DIV_CONST_DIVISOR] = ro_attr_f32((float)divisor)}, NULL}),
        x);
}
