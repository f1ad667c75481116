/* This file lets values share the memory of another value instead of a copy: reshapes, and slices
 * whose elements are contiguous. The memory is freed after the last read of all sharers. */
#include <stdlib.h>

#include "repops/op_movement.h"
#include "verde/exec/executor.h"

/* Alignment in bytes of tensors that kernels read, as vd_memory_alloc gives it. */
enum { ALIGNMENT = 64 };

static void read_by(uint32_t *last, uint32_t value, uint32_t node) {
    if (last[value] < node)
        last[value] = node;
}

/* Returns for each value the last node that reads it or a reshape of it; node_count if the next
 * state or the loss takes it. NULL: out of memory. */
static uint32_t *last_readers(const vd_execution *x) {
    const vd_graph *g = x->graph;
    uint32_t *last = calloc((size_t)x->count + 1, sizeof *last);
    for (uint32_t i = 0; last && i < x->program->leaf_count; i++)
        read_by(last, g->output[i], g->node_count);
    if (last && g->loss != UINT32_MAX)
        read_by(last, g->loss, g->node_count);
    for (uint32_t i = g->node_count; last && i-- > 0;) {
        const vd_node *n = vd_node_stored(g, i);
        for (int32_t k = 0; k < n->input_count; k++)
            read_by(last, vd_node_input(g, i, k), i);
        if (n->op == RO_OP_RESHAPE)
            read_by(last, vd_node_input(g, i, 0), last[x->sources + i]);
    }
    return last;
}

/* The offset of a slice in its input, in bytes; -1: its elements are not contiguous and aligned. */
static int64_t slice_offset(const vd_execution *x, uint32_t node) {
    const vd_node *n = vd_node_stored(x->graph, node);
    const ro_shape *in = vd_value_shape(x->program, x->graph, vd_node_input(x->graph, node, 0));
    const int64_t axis = n->attr[RO_SLICE_AXIS];
    int64_t stride = (int64_t)(vd_shape_bytes(in) / (size_t)ro_shape_numel(in));
    for (int64_t d = 0; d < axis; d++)
        if (in->dim[d] != 1)
            return -1;
    for (int64_t d = axis + 1; d < in->ndim; d++)
        stride *= in->dim[d];
    const int64_t offset = vd_node_attr(x->graph, node, RO_SLICE_START) * stride;
    return n->attr[RO_SLICE_STEP] == 1 && offset % ALIGNMENT == 0 ? offset : -1;
}

/* Returns whether the node can share its input's memory. A slice may only if this keeps no memory
 * longer than separate tensors would, so that estimates of memory stay true. */
static bool shares(const vd_execution *x, uint32_t node, const uint32_t *last) {
    const vd_node *n = vd_node_stored(x->graph, node);
    const vd_planned p = vd_plan_of(&x->plan, x->graph, node);
    const uint32_t value = x->sources + node;
    if (p.idle || p.group != VD_NO_GROUP || x->uses[value] == 0)
        return false;
    if (n->op != RO_OP_SLICE)
        return n->op == RO_OP_RESHAPE;
    const uint32_t in = vd_node_input(x->graph, node, 0);
    return slice_offset(x, node) >= 0 && last[value] <= last[x->root[in]];
}

vd_status vd_alias_plan(vd_execution *x, vd_err *err) {
    x->root = malloc(((size_t)x->count + 1) * sizeof *x->root);
    uint32_t *last = last_readers(x);
    for (uint32_t i = 0; x->root && i < x->count; i++)
        x->root[i] = i;
    for (uint32_t i = 0; x->root && last && i < x->graph->node_count; i++) {
        if (!shares(x, i, last))
            continue;
        const uint32_t value = x->sources + i, root = x->root[vd_node_input(x->graph, i, 0)];
        x->root[value] = root;
        x->uses[root] += x->uses[value] - 1; /* the node itself no longer reads its input */
        x->uses[value] = 0;
    }
    free(last);
    return x->root && last ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

uint32_t vd_root(const vd_execution *x, uint32_t value) {
    return x->root ? x->root[value] : value;
}

bool vd_alias_bind(vd_execution *x, uint32_t node) {
    const uint32_t value = x->sources + node;
    if (vd_root(x, value) == value)
        return false;
    const vd_node *n = vd_node_stored(x->graph, node);
    const uint32_t in = vd_node_input(x->graph, node, 0);
    const int64_t offset = n->op == RO_OP_SLICE ? slice_offset(x, node) : 0;
    x->value[value] = (unsigned char *)x->value[in] + offset;
    return true;
}

bool vd_may_take(const vd_execution *x, uint32_t value, size_t size) {
    const uint32_t root = vd_root(x, value);
    return vd_owned(x, value) && x->uses[root] == 1 &&
           vd_shape_bytes(vd_value_shape(x->program, x->graph, root)) == size;
}

void *vd_take_memory(vd_execution *x, uint32_t value) {
    const uint32_t root = vd_root(x, value);
    void *taken = x->value[root];
    x->value[root] = NULL;
    return taken;
}
