/* This file lets attention read and write heads directly in rows of tokens, in place of copies by
 * split_heads and join_heads (SPEC.md section 5). A split without other readers need not run; a
 * join becomes a member of the group. */
#include "repops/op_movement.h"
#include "verde/exec/fuse_match.h"

enum { Q, K, V, OUT, DOUT = 6 }; /* inputs; the first outputs are gradients of Q, K, V */

/* Heads as columns of a matrix. */
typedef struct {
    uint32_t matrix;
    int64_t row, first; /* elements per row; offset of these heads in it */
} columns;

/* Finds the matrix that `value` was split from, if it was split into `heads` heads. */
static bool split_from(const vd_matcher *m, uint32_t value, int64_t heads, columns *out) {
    const vd_node *n = vd_node_of(m, value, RO_OP_SPLIT_HEADS);
    if (!n || n->attr[RO_SPLIT_HEADS_HEADS] != heads)
        return false;
    const int64_t width = heads * n->shape.dim[3];
    *out = (columns){vd_input_of(m, n, 0), n->attr[RO_SPLIT_HEADS_PARTS] * width,
                     n->attr[RO_SPLIT_HEADS_PART] * width};
    return true;
}

/* The node that joins exactly these values; VD_NO_GROUP: there is none, or it is in a group. */
static uint32_t join_of(const vd_matcher *m, const vd_plan *plan, int count,
                        const uint32_t *value) {
    const uint32_t second = count > 1 ? value[1] : VD_NO_GROUP;
    const vd_reader wanted = {RO_OP_JOIN_HEADS, value[0], second, -1, 0};
    const uint32_t join = vd_find_reader(m, value[0] - m->sources + 1, &wanted);
    if (join == VD_NO_GROUP || plan->group_of[join - m->sources] != VD_NO_GROUP)
        return VD_NO_GROUP;
    const vd_node *n = &m->graph->stored[join - m->sources];
    if (n->input_count != count || (count == 3 && vd_input_of(m, n, 2) != value[2]))
        return VD_NO_GROUP;
    return join;
}

static bool add_join(const vd_matcher *m, vd_plan *plan, vd_fused *g, uint32_t join) {
    if (!vd_join(m, join, RO_OP_JOIN_HEADS, g))
        return false;
    plan->group_of[join - m->sources] = (uint32_t)(g - plan->group);
    return true;
}

static int64_t heads_of(const ro_attention *a, int i) {
    return i == Q ? a->heads : a->kv_heads;
}

static int64_t *row_of(ro_attention *a, int i) {
    return i == Q ? &a->q_row : i == K ? &a->k_row : &a->v_row;
}

static void read_columns(vd_fused *g, int i, const columns *from) {
    g->input[i] = from->matrix;
    g->first[i] = from->first;
    *row_of(&g->attention, i) = from->row;
}

/* ---- q, k, v and their gradients ---- */

static void lay_inputs(const vd_matcher *m, vd_fused *g) {
    columns from;
    for (int i = Q; i <= V; i++)
        if (split_from(m, g->input[i], heads_of(&g->attention, i), &from))
            read_columns(g, i, &from);
}

/* Reads q, k and v as columns of one matrix, and writes their gradients as columns of one. */
static bool lay_joined(const vd_matcher *m, vd_plan *plan, vd_fused *g) {
    const ro_attention *a = &g->attention;
    columns from[3];
    for (int i = Q; i <= V; i++)
        if (m->uses[g->output[i]] != 1 || !split_from(m, g->input[i], a->heads, &from[i]) ||
            from[i].row != 3 * a->heads * a->head_size)
            return false;
    const uint32_t join = join_of(m, plan, 3, g->output);
    if (join == VD_NO_GROUP || !add_join(m, plan, g, join))
        return false;
    for (int i = Q; i <= V; i++)
        read_columns(g, i, &from[i]);
    g->joined = true;
    vd_put_outputs(g, 1, &join);
    return true;
}

/* Reads the attention's stored result and its gradient from rows, if both were split from such. */
static void lay_stored_result(const vd_matcher *m, vd_fused *g) {
    const int64_t heads = g->attention.heads, width = heads * g->attention.head_size;
    columns out, dout;
    if (!split_from(m, g->input[OUT], heads, &out) || out.row != width ||
        !split_from(m, g->input[DOUT], heads, &dout) || dout.row != width)
        return;
    g->input[OUT] = out.matrix, g->input[DOUT] = dout.matrix;
    g->attention.out_row = width;
}

/* Writes each gradient into rows, like the value that it belongs to. */
static void lay_gradients(const vd_matcher *m, vd_plan *plan, vd_fused *g) {
    columns from;
    if (lay_joined(m, plan, g))
        return;
    for (int i = Q; i <= V; i++) {
        const int64_t heads = heads_of(&g->attention, i);
        if (m->uses[g->output[i]] != 1 || !split_from(m, g->input[i], heads, &from) ||
            from.row != heads * g->attention.head_size)
            continue;
        const uint32_t join = join_of(m, plan, 1, &g->output[i]);
        if (join == VD_NO_GROUP || !add_join(m, plan, g, join))
            continue;
        read_columns(g, i, &from);
        g->output[i] = join;
    }
}

/* ---- results ---- */

/* Returns whether a gradient's group reads `out` only as the attention's result, and can read it
 * from rows. */
static bool reads_result(const vd_matcher *m, const vd_fused *g, uint32_t out, columns *dout) {
    for (uint32_t i = 0; i < g->input_count; i++)
        if ((g->input[i] == out) != (i == OUT))
            return false;
    const int64_t width = g->attention.heads * g->attention.head_size;
    return split_from(m, g->input[DOUT], g->attention.heads, dout) && dout->row == width;
}

/* Writes results into rows, if only a join and gradients read them; the gradients then read the
 * joined rows. */
static void lay_results(const vd_matcher *m, vd_plan *plan, vd_fused *g) {
    const uint32_t out = g->output[0], join = join_of(m, plan, 1, &out);
    uint32_t reads = 1;
    columns dout;
    for (uint32_t i = 0; i < plan->group_count; i++)
        if (plan->group[i].kind == VD_FUSED_ATTENTION_GRAD &&
            reads_result(m, &plan->group[i], out, &dout))
            reads += vd_reads_of(m, &plan->group[i], out);
    if (join == VD_NO_GROUP || m->uses[out] != reads || !add_join(m, plan, g, join))
        return;
    g->output[0] = join;
    g->attention.out_row = g->attention.heads * g->attention.head_size;
    for (uint32_t i = 0; i < plan->group_count; i++) {
        vd_fused *gradient = &plan->group[i];
        if (gradient->kind != VD_FUSED_ATTENTION_GRAD || !reads_result(m, gradient, out, &dout))
            continue;
        gradient->input[OUT] = join, gradient->input[DOUT] = dout.matrix;
        gradient->attention.out_row = dout.row;
    }
}

void vd_lay_heads(const vd_matcher *m, vd_plan *plan) {
    for (uint32_t i = 0; i < plan->group_count; i++) {
        vd_fused *g = &plan->group[i];
        if (g->kind == VD_FUSED_ATTENTION)
            lay_inputs(m, g), lay_results(m, plan, g);
        if (g->kind == VD_FUSED_ATTENTION_GRAD)
            lay_stored_result(m, g), lay_gradients(m, plan, g);
    }
}
