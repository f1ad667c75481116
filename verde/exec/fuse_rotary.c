/* This file finds rows of tokens that are split into heads and rotated by position, and the
 * gradient of this, SPEC.md section 13: from rope. */
#include "repops/op_attention.h"
#include "repops/op_movement.h"
#include "verde/exec/fuse_match.h"

static ro_rotary_layer layer_of(const vd_matcher *m, const vd_node *rope) {
    const int64_t *dim = rope->shape.dim;
    return (ro_rotary_layer){.size = sizeof(ro_rotary_layer),
                             .batch = dim[0],
                             .heads = dim[1],
                             .tokens = dim[2],
                             .head_size = dim[3],
                             .neighbours = rope->attr[RO_ROPE_PAIRS] != 0,
                             .each = vd_shape_in(m, vd_input_of(m, rope, 1))->ndim == 2};
}

/* Joins the only reader of the gradient, if it joins heads into rows; VD_NO_GROUP: it does not. */
static uint32_t rows_of(const vd_matcher *m, uint32_t gradient, vd_fused *g) {
    const vd_reader reader = {RO_OP_JOIN_HEADS, gradient, VD_NO_GROUP, -1, 0};
    const uint32_t join = vd_find_reader(m, gradient - m->sources + 1, &reader);
    const vd_node *n = join == VD_NO_GROUP ? NULL : vd_join(m, join, RO_OP_JOIN_HEADS, g);
    return n && n->input_count == 1 ? join : VD_NO_GROUP;
}

/* Returns the rows that become heads; VD_NO_GROUP: they are parts of wider rows, or no split. */
static uint32_t split_rows(const vd_matcher *m, uint32_t heads, vd_fused *g) {
    const vd_node *n = vd_join(m, heads, RO_OP_SPLIT_HEADS, g);
    return n && n->attr[RO_SPLIT_HEADS_PARTS] == 1 ? vd_input_of(m, n, 0) : VD_NO_GROUP;
}

bool vd_match_rotary(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t value = m->sources + node;
    const vd_node *n = vd_join(m, value, RO_OP_ROPE, g);
    const bool inverse = n->attr[RO_ROPE_INVERSE] != 0;
    const uint32_t x = vd_input_of(m, n, 0), from = inverse ? x : split_rows(m, x, g);
    const uint32_t to = inverse ? rows_of(m, value, g) : value;
    if (from == VD_NO_GROUP || to == VD_NO_GROUP || n->shape.ndim != 4)
        return false;
    g->kind = inverse ? VD_FUSED_ROTARY_GRAD : VD_FUSED_ROTARY;
    g->rotary = layer_of(m, n);
    vd_put_inputs(g, 3, (uint32_t[]){from, vd_input_of(m, n, 1), vd_input_of(m, n, 2)});
    vd_put_outputs(g, 1, &to);
    return true;
}
