/* The parts of patterns, and the patterns softmax cross-entropy with its gradient, SPEC.md section
 * 7.2; layer norm and its gradients, section 7.1; AdamW and SGD, section 9. */
#include "verde/exec/fuse_match.h"

/* How far apart the nodes of one pattern may be. */
enum { REACH = 64 };

const vd_node *vd_join(const vd_matcher *m, uint32_t value, int op, vd_fused *g) {
    if (value < m->sources || m->graph->node[value - m->sources].op != op)
        return NULL;
    const uint32_t node = value - m->sources;
    for (uint32_t i = 0; i < g->member_count; i++)
        if (g->member[i] == node)
            return &m->graph->node[node];
    if (g->member_count == VD_FUSED_MEMBERS)
        return NULL;
    g->member[g->member_count++] = node;
    return &m->graph->node[node];
}

uint32_t vd_input_of(const vd_matcher *m, const vd_node *n, int i) {
    return m->graph->edge[n->first_input + (uint32_t)i];
}

const ro_shape *vd_shape_in(const vd_matcher *m, uint32_t value) {
    return vd_value_shape(m->program, m->graph, value);
}

uint32_t vd_find_reader(const vd_matcher *m, uint32_t from, const vd_reader *r) {
    for (uint32_t i = from; i < m->graph->node_count && i < from + REACH; i++) {
        const vd_node *n = &m->graph->node[i];
        if (n->op == r->op && vd_input_of(m, n, 0) == r->value &&
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

/* ---- cross-entropy: from xent_grad or xent_ignore_grad ---- */

/* R of rows of `cols` elements in blocks of RO_REDUCE_BLOCK, all levels down to the one that reads
 * x (and `second`, if it reads two): its nodes join. */
static bool join_levels(const vd_matcher *m, vd_fused *g, uint32_t value, int level, int lowest,
                        uint32_t x, uint32_t second) {
    int64_t cols[8];
    int count = 0;
    for (;;) {
        const vd_node *at = value < m->sources ? NULL : &m->graph->node[value - m->sources];
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
        if (cols[i] != left || (left == 1 && i + 1 < count)) /* of one column: -0 becomes +0 */
            return false;
    return left == 1;
}

bool vd_match_cross_entropy(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t dx = m->sources + node;
    const bool ignores = m->graph->node[node].op == RO_OP_XENT_IGNORE_GRAD;
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
        !join_levels(m, g, max, RO_OP_REDUCE_MAX, RO_OP_REDUCE_MAX, x, VD_NO_GROUP) ||
        !join_levels(m, g, sum, RO_OP_REDUCE_SUM, RO_OP_REDUCE_EXPSUM, x, max))
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

/* ---- layer norm: from layernorm ---- */

bool vd_match_layer_norm(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t y = m->sources + node;
    g->kind = VD_FUSED_LAYER_NORM;
    const vd_node *n = vd_join(m, y, RO_OP_LAYERNORM, g);
    const uint32_t x = vd_input_of(m, n, 0), mean = vd_input_of(m, n, 1);
    const uint32_t rstd = vd_input_of(m, n, 2);
    const vd_node *divide = vd_join(m, mean, RO_OP_DIV_CONST, g);
    const vd_node *root = vd_join(m, rstd, RO_OP_LN_RSTD, g);
    const ro_shape *shape = vd_shape_in(m, x);
    g->cols = shape->dim[shape->ndim - 1];
    if (!divide || !root || g->cols < 1 || g->cols > RO_ROW_COLS_MAX ||
        root->attr[RO_LN_RSTD_N] != g->cols ||
        divide->attr[RO_DIV_CONST_DIVISOR] != ro_attr_f32((float)g->cols) ||
        !join_levels(m, g, vd_input_of(m, divide, 0), RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, x,
                     VD_NO_GROUP) ||
        !join_levels(m, g, vd_input_of(m, root, 0), RO_OP_REDUCE_SUM, RO_OP_REDUCE_SQDEV, x, mean))
        return false;
    g->rows = ro_shape_numel(shape) / g->cols;
    g->eps = ro_attr_to_f32(root->attr[RO_LN_RSTD_EPS]);
    vd_put_inputs(g, 3, (uint32_t[]){x, vd_input_of(m, n, 3), vd_input_of(m, n, 4)});
    vd_put_outputs(g, 3, (uint32_t[]){y, mean, rstd});
    return true;
}

/* ---- gradients of layer norm: from ln_dx ---- */

/* K of x's rows, from the node that reads `lowest`'s inputs upwards: its nodes join. */
static uint32_t join_column_levels(const vd_matcher *m, vd_fused *g, uint32_t from,
                                   const vd_reader *lowest) {
    uint32_t value = vd_find_reader(m, from, lowest);
    vd_reader next = {RO_OP_SUM_ROWS, value, VD_NO_GROUP, 0, g->cols};
    if (value == VD_NO_GROUP || !vd_join(m, value, lowest->op, g))
        return VD_NO_GROUP;
    for (int64_t left = g->rows; left > RO_COLUMN_GROUP;) {
        left = (left + RO_COLUMN_GROUP - 1) / RO_COLUMN_GROUP;
        if (left == 1)
            break;
        next.value = value;
        value = vd_find_reader(m, value - m->sources + 1, &next);
        if (value == VD_NO_GROUP || !vd_join(m, value, RO_OP_SUM_ROWS, g))
            return VD_NO_GROUP;
    }
    return value;
}

/* Inputs `first` and `first` + 1 of n. */
static bool reads_statistics(const vd_matcher *m, const vd_node *n, int first, uint32_t mean,
                             uint32_t rstd) {
    return vd_input_of(m, n, first) == mean && vd_input_of(m, n, first + 1) == rstd;
}

static const vd_node *member_of(const vd_matcher *m, const vd_fused *g, int op) {
    for (uint32_t i = 0; i < g->member_count; i++)
        if (m->graph->node[g->member[i]].op == op)
            return &m->graph->node[g->member[i]];
    return NULL;
}

bool vd_match_layer_norm_grad(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t dx = m->sources + node;
    g->kind = VD_FUSED_LAYER_NORM_GRAD;
    const vd_node *n = vd_join(m, dx, RO_OP_LN_DX, g);
    const uint32_t dy = vd_input_of(m, n, 0), gamma = vd_input_of(m, n, 1);
    const uint32_t x = vd_input_of(m, n, 2), mean = vd_input_of(m, n, 3);
    const uint32_t rstd = vd_input_of(m, n, 4);
    const ro_shape *shape = vd_shape_in(m, x);
    g->cols = shape->dim[shape->ndim - 1];
    if (g->cols < 1 || g->cols > RO_ROW_COLS_MAX ||
        !join_levels(m, g, vd_input_of(m, n, 5), RO_OP_REDUCE_SUM, RO_OP_REDUCE_DOT, dy, gamma) ||
        !join_levels(m, g, vd_input_of(m, n, 6), RO_OP_REDUCE_SUM, RO_OP_REDUCE_LN_GX, dy, gamma))
        return false;
    g->rows = ro_shape_numel(shape) / g->cols;
    const vd_node *gx = member_of(m, g, RO_OP_REDUCE_LN_GX);
    if (vd_input_of(m, gx, 2) != x || !reads_statistics(m, gx, 3, mean, rstd))
        return false;
    const uint32_t dgamma =
        join_column_levels(m, g, node + 1, &(vd_reader){RO_OP_LN_DGAMMA, dy, x, 0, g->cols});
    const uint32_t dbeta = join_column_levels(
        m, g, node + 1, &(vd_reader){RO_OP_SUM_ROWS, dy, VD_NO_GROUP, 0, g->cols});
    const vd_node *products = member_of(m, g, RO_OP_LN_DGAMMA);
    if (dgamma == VD_NO_GROUP || dbeta == VD_NO_GROUP ||
        !reads_statistics(m, products, 2, mean, rstd))
        return false;
    vd_put_inputs(g, 5, (uint32_t[]){dy, x, gamma, mean, rstd});
    vd_put_outputs(g, 3, (uint32_t[]){dx, dgamma, dbeta});
    return true;
}

/* ---- AdamW: from adamw_w ---- */

bool vd_match_adamw(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t w = m->sources + node;
    g->kind = VD_FUSED_ADAMW;
    const vd_node *n = vd_join(m, w, RO_OP_ADAMW_W, g);
    const uint32_t m_out = vd_input_of(m, n, 1), v_out = vd_input_of(m, n, 2);
    const vd_node *first = vd_join(m, m_out, RO_OP_ADAMW_M, g);
    const vd_node *second = vd_join(m, v_out, RO_OP_ADAMW_V, g);
    if (!first || !second)
        return false;
    const uint32_t gradient = vd_input_of(m, first, 1), clip = vd_input_of(m, first, 2);
    if (vd_input_of(m, second, 1) != gradient || vd_input_of(m, second, 2) != clip)
        return false;
    g->adamw = (ro_adamw_step){.count = ro_shape_numel(&n->shape),
                               .beta1 = ro_attr_to_f32(first->attr[RO_ADAMW_M_BETA]),
                               .beta2 = ro_attr_to_f32(second->attr[RO_ADAMW_V_BETA]),
                               .eps = ro_attr_to_f32(n->attr[RO_ADAMW_W_EPS]),
                               .decay = ro_attr_to_f32(n->attr[RO_ADAMW_W_DECAY])};
    vd_put_inputs(g, 8,
                  (uint32_t[]){vd_input_of(m, n, 0), vd_input_of(m, first, 0),
                               vd_input_of(m, second, 0), gradient, clip, vd_input_of(m, n, 3),
                               vd_input_of(m, n, 4), vd_input_of(m, n, 5)});
    vd_put_outputs(g, 3, (uint32_t[]){w, m_out, v_out});
    return true;
}

/* ---- SGD: from sgd_w or sgd_nesterov ---- */

bool vd_match_sgd(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t w = m->sources + node;
    const vd_node *n = &m->graph->node[node];
    const bool nesterov = n->op == RO_OP_SGD_NESTEROV;
    g->kind = VD_FUSED_SGD;
    vd_join(m, w, n->op, g);
    const uint32_t m_out = vd_input_of(m, n, 1);
    const vd_node *first = vd_join(m, m_out, RO_OP_SGD_M, g);
    if (!first || vd_input_of(m, first, 2) != vd_input_of(m, n, 0))
        return false;
    const uint32_t gradient = vd_input_of(m, first, 1), clip = vd_input_of(m, first, 3);
    if (nesterov && (vd_input_of(m, n, 2) != gradient || vd_input_of(m, n, 3) != clip ||
                     n->attr[RO_SGD_MOMENTUM] != first->attr[RO_SGD_MOMENTUM] ||
                     n->attr[RO_SGD_DECAY] != first->attr[RO_SGD_DECAY]))
        return false;
    g->sgd = (ro_sgd_step){.count = ro_shape_numel(&n->shape),
                           .momentum = ro_attr_to_f32(first->attr[RO_SGD_MOMENTUM]),
                           .decay = ro_attr_to_f32(first->attr[RO_SGD_DECAY]),
                           .nesterov = nesterov};
    vd_put_inputs(g, 5,
                  (uint32_t[]){vd_input_of(m, n, 0), vd_input_of(m, first, 0), gradient, clip,
                               vd_input_of(m, n, nesterov ? 4 : 2)});
    vd_put_outputs(g, 2, (uint32_t[]){w, m_out});
    return true;
}
