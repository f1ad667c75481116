/* This file has the common parts of patterns, and two patterns: softmax cross-entropy with its
 * gradient, SPEC.md section 7.2; a second gradient of a table, section 5. */
#include "verde/exec/fuse_match.h"
#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "repops/op_softmax.h"

/* The largest distance between nodes of a pattern. */
enum { REACH = 64 };

const vd_node *vd_node_of(const vd_matcher *m, uint32_t value, int op) {
    const vd_node *n = value < m->sources ? NULL : &m->graph->stored[value - m->sources];
    return n && n->op == op ? n : NULL;
}

const vd_node *vd_join(const vd_matcher *m, uint32_t value, int op, vd_fused *g) {
    const vd_node *n = vd_node_of(m, value, op);
    const uint32_t node = value - m->sources;
    for (uint32_t i = 0; n && i < g->member_count; i++)
        if (g->member[i] == node)
            return n;
    if (!n || g->member_count == VD_FUSED_MEMBERS)
        return NULL;
    g->member[g->member_count++] = node;
    return n;
}

uint32_t vd_input_of(const vd_matcher *m, const vd_node *n, int i) {
    return m->graph->stored_edge[n->first_input + (uint32_t)i];
}

const ro_shape *vd_shape_in(const vd_matcher *m, uint32_t value) {
    return vd_value_shape(m->program, m->graph, value);
}

uint32_t vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r) {
    for (uint32_t i = from; i < m->graph->node_count && i < from + REACH; i++) {
        const vd_node *n = &m->graph->stored[i];
        if (n->op == r->op && (r->value == VD_NO_GROUP || vd_input_of(m, n, 0) == r->value) &&
            (r->second == VD_NO_GROUP || vd_input_of(m, n, 1) == r->second) &&
            (r->attr < 0 || n->attr[r->attr] == r->wanted))
            return m->sources + i;
    }
    return VD_NO_GROUP;
}

void vd_put_inputs(vd_fused *g, uint32_t count, const uint32_t *value) {
    for (uint32_t i = 0; i < count; i++)
        g->input[i] = value[i];
    g->input_count = count;
}

void vd_put_outputs(vd_fused *g, uint32_t count, const uint32_t *value) {
    for (uint32_t i = 0; i < count; i++)
        g->output[i] = value[i];
    g->output_count = count;
}

bool vd_join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                    uint32_t x, uint32_t second) {
    int64_t cols[8];
    int count = 0;
    for (;;) {
        const vd_node *at = value < m->sources ? NULL : &m->graph->stored[value - m->sources];
        const bool bottom = at && at->op == lowest && vd_input_of(m, at, 0) == x;
        const vd_node *n = vd_join(m, value, bottom ? lowest : level, g);
        if (!n || count == 8)
            return false;
        const int64_t block =
            n->attr[RO_ROWS_COLS] < RO_REDUCE_BLOCK ? n->attr[RO_ROWS_COLS] : RO_REDUCE_BLOCK;
        if (n->attr[RO_ROWS_BLOCK] != block)
            return false;
        cols[count++] = n->attr[RO_ROWS_COLS];
        value = vd_input_of(m, n, 0);
        if (bottom) {
            if (second != VD_NO_GROUP && vd_input_of(m, n, 1) != second)
                return false;
            break;
        }
    }
    int64_t left = g->cols;
    for (int i = count; i-- > 0; left = (left + RO_REDUCE_BLOCK - 1) / RO_REDUCE_BLOCK)
        if (cols[i] != left ||
            (left == 1 && i + 1 < count)) /* reducing one column would turn -0 into +0 */
            return false;
    return left == 1;
}

/* ---- cross-entropy: from xent_grad or xent_ignore_grad ---- */

bool vd_match_cross_entropy(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t dx = m->sources + node;
    const bool ignores = m->graph->stored[node].op == RO_OP_XENT_IGNORE_GRAD;
    const int loss_op = ignores ? RO_OP_XENT_IGNORE : RO_OP_XENT;
    g->kind = VD_FUSED_CROSS_ENTROPY;
    const vd_node *grad = vd_join(m, dx, ignores ? RO_OP_XENT_IGNORE_GRAD : RO_OP_XENT_GRAD, g);
    g->ignore = ignores ? grad->attr[RO_LABELS_IGNORE] : RO_IGNORE_NONE;
    const uint32_t x = vd_input_of(m, grad, 0), max = vd_input_of(m, grad, 1);
    const uint32_t sum = vd_input_of(m, grad, 2), ids = vd_input_of(m, grad, 3);
    const uint32_t dloss = vd_input_of(m, grad, 4);
    const vd_node *filled = vd_join(m, dloss, RO_OP_FILL, g);
    const ro_shape *shape = vd_shape_in(m, x);
    g->cols = shape->dim[shape->ndim - 1];
    g->rows = ro_shape_numel(shape) / g->cols;
    if (g->cols > RO_CROSS_ENTROPY_COLS_MAX || g->rows > INT32_MAX ||
        !vd_join_levels(m, g, max, RO_OP_REDUCE_MAX, RO_OP_REDUCE_MAX, x, VD_NO_GROUP) ||
        !vd_join_levels(m, g, sum, RO_OP_REDUCE_SUM, RO_OP_REDUCE_EXPSUM, x, max))
        return false;
    g->dloss = filled ? ro_attr_to_f32(filled->attr[RO_FILL_VALUE]) : 0;
    const vd_reader forward = {loss_op, x, max, ignores ? 0 : -1, g->ignore};
    const uint32_t loss = vd_find_reader(m, sum - m->sources + 1, &forward);
    if (loss == VD_NO_GROUP)
        return false;
    const vd_node *n = vd_join(m, loss, loss_op, g);
    if (!n || vd_input_of(m, n, 2) != sum || vd_input_of(m, n, 3) != ids)
        return false;
    vd_put_inputs(g, filled ? 2 : 3, (uint32_t[]){x, ids, dloss});
    vd_put_outputs(g, 2, (uint32_t[]){loss, dx});
    return true;
}

/* ---- a second gradient of a table: from embedding_grad ---- */

bool vd_match_embedding_grad(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t gradient = m->sources + node;
    const vd_node *n = vd_join(m, gradient, RO_OP_EMBEDDING_GRAD, g);
    const vd_reader added = {RO_OP_ADD, VD_NO_GROUP, gradient, -1, 0};
    const uint32_t sum = vd_find_reader(m, node + 1, &added);
    g->kind = VD_FUSED_EMBEDDING_GRAD;
    if (sum == VD_NO_GROUP)
        return false;
    const uint32_t before = vd_input_of(m, vd_join(m, sum, RO_OP_ADD, g), 0);
    if (before == gradient || !ro_shape_equal(vd_shape_in(m, before), &n->shape))
        return false;
    g->rows = n->shape.dim[0], g->cols = n->shape.dim[1];
    g->positions = ro_shape_numel(vd_shape_in(m, vd_input_of(m, n, 1)));
    vd_put_inputs(g, 3, (uint32_t[]){before, vd_input_of(m, n, 0), vd_input_of(m, n, 1)});
    vd_put_outputs(g, 1, &sum);
    return true;
}
