/* Layer norm and its gradients, SPEC.md section 7.1; RMS norm and its gradients, section 7.3. */
#include "repops/op_elementwise.h"
#include "repops/op_norm.h"
#include "repops/op_reduce.h"
#include "verde/exec/fuse_match.h"

static void set_size(const vd_matcher *m, vd_fused *g, uint32_t x) {
    const ro_shape *shape = vd_shape_in(m, x);
    g->cols = shape->dim[shape->ndim - 1];
    g->rows = g->cols < 1 ? 0 : ro_shape_numel(shape) / g->cols;
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
    set_size(m, g, x);
    if (!divide || !root || g->cols < 1 || g->cols > RO_ROW_COLS_MAX ||
        root->attr[RO_LN_RSTD_N] != g->cols ||
        divide->attr[RO_DIV_CONST_DIVISOR] != ro_attr_f32((float)g->cols) ||
        !vd_join_levels(m, g, vd_input_of(m, divide, 0), RO_OP_REDUCE_SUM, RO_OP_REDUCE_SUM, x,
                        VD_NO_GROUP) ||
        !vd_join_levels(m, g, vd_input_of(m, root, 0), RO_OP_REDUCE_SUM, RO_OP_REDUCE_SQDEV, x,
                        mean))
        return false;
    g->eps = ro_attr_to_f32(root->attr[RO_LN_RSTD_EPS]);
    vd_put_inputs(g, 3, (uint32_t[]){x, vd_input_of(m, n, 3), vd_input_of(m, n, 4)});
    vd_put_outputs(g, 3, (uint32_t[]){y, mean, rstd});
    return true;
}

/* ---- gradients of layer norm: from ln_dx ---- */

/* Joins the reduction K of x's rows, from the node like `lowest` on, and returns its result. */
static uint32_t join_column_levels(const vd_matcher *m, vd_fused *g, uint32_t from,
                                   const vd_reader *lowest) {
    uint32_t value = vd_find_reader(m, from, lowest);
    vd_reader next = {RO_OP_SUM_ROWS, value, VD_NO_GROUP, RO_COLUMNS_COLS, g->cols};
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

/* Returns whether a and b are inputs `first` and `first` + 1 of n. */
static bool reads_both(const vd_matcher *m, const vd_node *n, int first, uint32_t a, uint32_t b) {
    return vd_input_of(m, n, first) == a && vd_input_of(m, n, first + 1) == b;
}

static const vd_node *member_of(const vd_matcher *m, const vd_fused *g, int op) {
    for (uint32_t i = 0; i < g->member_count; i++)
        if (m->graph->stored[g->member[i]].op == op)
            return &m->graph->stored[g->member[i]];
    return NULL;
}

bool vd_match_layer_norm_grad(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t dx = m->sources + node;
    g->kind = VD_FUSED_LAYER_NORM_GRAD;
    const vd_node *n = vd_join(m, dx, RO_OP_LN_DX, g);
    const uint32_t dy = vd_input_of(m, n, 0), gamma = vd_input_of(m, n, 1);
    const uint32_t x = vd_input_of(m, n, 2), mean = vd_input_of(m, n, 3);
    const uint32_t rstd = vd_input_of(m, n, 4);
    set_size(m, g, x);
    if (g->cols < 1 || g->cols > RO_ROW_COLS_MAX ||
        !vd_join_levels(m, g, vd_input_of(m, n, 5), RO_OP_REDUCE_SUM, RO_OP_REDUCE_DOT, dy,
                        gamma) ||
        !vd_join_levels(m, g, vd_input_of(m, n, 6), RO_OP_REDUCE_SUM, RO_OP_REDUCE_LN_GX, dy,
                        gamma))
        return false;
    const vd_node *gx = member_of(m, g, RO_OP_REDUCE_LN_GX);
    if (vd_input_of(m, gx, 2) != x || !reads_both(m, gx, 3, mean, rstd))
        return false;
    const uint32_t dgamma = join_column_levels(
        m, g, node + 1, &(vd_reader){RO_OP_LN_DGAMMA, dy, x, RO_COLUMNS_COLS, g->cols});
    const uint32_t dbeta = join_column_levels(
        m, g, node + 1, &(vd_reader){RO_OP_SUM_ROWS, dy, VD_NO_GROUP, RO_COLUMNS_COLS, g->cols});
    const vd_node *products = member_of(m, g, RO_OP_LN_DGAMMA);
    if (dgamma == VD_NO_GROUP || dbeta == VD_NO_GROUP || !reads_both(m, products, 2, mean, rstd))
        return false;
    vd_put_inputs(g, 5, (uint32_t[]){dy, x, gamma, mean, rstd});
    vd_put_outputs(g, 3, (uint32_t[]){dx, dgamma, dbeta});
    return true;
}

/* ---- RMS norm: from rmsnorm ---- */

bool vd_match_rms_norm(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t y = m->sources + node;
    g->kind = VD_FUSED_RMS_NORM;
    const vd_node *n = vd_join(m, y, RO_OP_RMSNORM, g);
    const uint32_t x = vd_input_of(m, n, 0), rstd = vd_input_of(m, n, 1);
    const vd_node *root = vd_join(m, rstd, RO_OP_LN_RSTD, g);
    set_size(m, g, x);
    if (!root || g->cols < 1 || g->cols > RO_ROW_COLS_MAX || root->attr[RO_LN_RSTD_N] != g->cols ||
        !vd_join_levels(m, g, vd_input_of(m, root, 0), RO_OP_REDUCE_SUM, RO_OP_REDUCE_DOT, x, x))
        return false;
    g->eps = ro_attr_to_f32(root->attr[RO_LN_RSTD_EPS]);
    vd_put_inputs(g, 2, (uint32_t[]){x, vd_input_of(m, n, 2)});
    vd_put_outputs(g, 2, (uint32_t[]){y, rstd});
    return true;
}

/* ---- gradients of RMS norm: from rms_dx ---- */

bool vd_match_rms_norm_grad(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t dx = m->sources + node;
    g->kind = VD_FUSED_RMS_NORM_GRAD;
    const vd_node *n = vd_join(m, dx, RO_OP_RMS_DX, g);
    const uint32_t dy = vd_input_of(m, n, 0), gamma = vd_input_of(m, n, 1);
    const uint32_t x = vd_input_of(m, n, 2), rstd = vd_input_of(m, n, 3);
    set_size(m, g, x);
    if (g->cols < 1 || g->cols > RO_ROW_COLS_MAX ||
        !vd_join_levels(m, g, vd_input_of(m, n, 4), RO_OP_REDUCE_SUM, RO_OP_REDUCE_RMS_GX, dy,
                        gamma))
        return false;
    const vd_node *gx = member_of(m, g, RO_OP_REDUCE_RMS_GX);
    if (!reads_both(m, gx, 2, x, rstd))
        return false;
    const vd_reader scale = {RO_OP_RMS_DGAMMA, dy, x, RO_COLUMNS_COLS, g->cols};
    vd_put_inputs(g, 4, (uint32_t[]){dy, x, gamma, rstd});
    vd_put_outputs(g, 1, (uint32_t[]){dx});
    if (vd_find_reader(m, node + 1, &scale) == VD_NO_GROUP) /* gamma is not trained */
        return true;
    const uint32_t dgamma = join_column_levels(m, g, node + 1, &scale);
    if (dgamma == VD_NO_GROUP || vd_input_of(m, member_of(m, g, RO_OP_RMS_DGAMMA), 2) != rstd)
        return false;
    vd_put_outputs(g, 2, (uint32_t[]){dx, dgamma});
    return true;
}
