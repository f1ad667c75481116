/* This file finds attention in a graph, composed of nodes as in SPEC.md section 8. */
#include "repops/operators.h"
#include "verde/exec/fuse_match.h"

/* ---- forward and backward ---- */

static bool is_product(const vd_node *n, int trans, float alpha, int chunk, int mask,
                       int64_t window) {
    return n && n->attr[RO_MATMUL_BATCH_DIMS] == 2 && n->attr[RO_MATMUL_TRANS] == trans &&
           n->attr[RO_MATMUL_ALPHA] == ro_attr_f32(alpha) && n->attr[RO_MATMUL_CHUNK] == chunk &&
           n->attr[RO_MATMUL_MASK] == mask && n->attr[RO_MATMUL_WINDOW] == window;
}

/* Which keys a query sees, by the attributes of a node. */
typedef struct {
    bool placed;    /* `first` is the key at which the first query stands */
    uint32_t first; /* a value; VD_NO_GROUP if not `placed` */
    int causal;
    int64_t window;
} seen_keys;

/* Reads this from a node. `places`: the input with the first query's key, if the operator has
 * it. */
static seen_keys keys_seen(const vd_matcher *m, const vd_node *n, int places) {
    if (n->op == RO_OP_ATTN_MAX_AT || n->op == RO_OP_ATTN_EXP_AT || n->op == RO_OP_ATTN_AV_AT)
        return (seen_keys){true, vd_input_of(m, n, places), 1, n->attr[RO_PLACED_WINDOW]};
    return (seen_keys){false, VD_NO_GROUP, (int)n->attr[RO_MASKED_CAUSAL],
                       n->attr[RO_MASKED_WINDOW]};
}

static bool same_mask(const seen_keys *a, const seen_keys *b) {
    return a->placed == b->placed && a->first == b->first && a->causal == b->causal &&
           a->window == b->window;
}

/* Joins the node if it is of operator `op`, or of `op_at`, which places queries. */
static const vd_node *join_masked(const vd_matcher *m, uint32_t value, int op, int op_at,
                                  vd_fused *g) {
    return vd_join(m, value, vd_node_of(m, value, op) ? op : op_at, g);
}

/* The input of an expand node that repeats this axis so often; VD_NO_GROUP: `value` is none. */
static uint32_t unexpanded(const vd_matcher *m, uint32_t value, int64_t axis, int64_t times) {
    const vd_node *n = value < m->sources ? NULL : &m->graph->stored[value - m->sources];
    if (value == VD_NO_GROUP || !n || n->op != RO_OP_EXPAND || n->attr[RO_EXPAND_AXIS] != axis ||
        n->attr[RO_EXPAND_COUNT] != times)
        return VD_NO_GROUP;
    return vd_input_of(m, n, 0);
}

/* The value [B, S], a number for each key, that `value` repeats for all heads and queries;
 * VD_NO_GROUP if there is none. The repeating nodes do not join, because other groups read them. */
static uint32_t bias_of(const vd_matcher *m, uint32_t value, const ro_attention *a) {
    value = unexpanded(m, value, 2, a->queries);
    value = value == VD_NO_GROUP ? value : unexpanded(m, value, 1, a->heads);
    if (value == VD_NO_GROUP || value < m->sources)
        return VD_NO_GROUP;
    const vd_node *n = &m->graph->stored[value - m->sources];
    const ro_shape wide = {RO_F32, 4, {a->batch, 1, 1, a->keys}};
    if (n->op != RO_OP_RESHAPE || !ro_shape_equal(&n->shape, &wide))
        return VD_NO_GROUP;
    return vd_input_of(m, n, 0);
}

/* Joins s = q k^T * scale of [B, H, T, D] and [B, H, S, D], and a bias of keys, or VD_NO_GROUP. */
static bool join_scores(const vd_matcher *m, uint32_t s, vd_fused *g, uint32_t *q, uint32_t *k,
                        uint32_t *bias) {
    const bool adds = s >= m->sources && m->graph->stored[s - m->sources].op == RO_OP_ADD;
    const vd_node *sum = adds ? vd_join(m, s, RO_OP_ADD, g) : NULL;
    const vd_node *n = vd_join(m, adds ? vd_input_of(m, sum, 0) : s, RO_OP_MATMUL, g);
    if (!n || n->shape.ndim != 4)
        return false;
    g->attention.scale = ro_attr_to_f32(n->attr[RO_MATMUL_ALPHA]);
    if (n->attr[RO_MATMUL_BATCH_DIMS] != 2 || n->attr[RO_MATMUL_TRANS] != 2 ||
        n->attr[RO_MATMUL_CHUNK] != RO_DOT_CHUNK || n->attr[RO_MATMUL_MASK] != 0)
        return false;
    *q = vd_input_of(m, n, 0), *k = vd_input_of(m, n, 1);
    const ro_shape *queries = vd_shape_in(m, *q), *keys = vd_shape_in(m, *k);
    if (queries->ndim != 4 || keys->ndim != 4) /* a product takes more dimensions than attention */
        return false;
    ro_attention *a = &g->attention;
    a->size = sizeof *a;
    a->batch = queries->dim[0], a->heads = a->kv_heads = queries->dim[1];
    a->queries = queries->dim[2], a->head_size = queries->dim[3];
    a->keys = keys->dim[2];
    *bias = adds ? bias_of(m, vd_input_of(m, sum, 1), a) : VD_NO_GROUP;
    return adds == (*bias != VD_NO_GROUP) && a->head_size <= RO_ATTENTION_HEAD_MAX &&
           a->heads <= RO_ATTENTION_HEADS_MAX &&
           a->keys <= (int64_t)RO_REDUCE_BLOCK * RO_ATTN_BLOCK;
}

/* Returns whether a value is the step's number, perhaps with *more added as by vd_number_steps. */
static bool is_step(const vd_matcher *m, uint32_t value, int32_t *more) {
    *more = 0;
    if (value == m->sources - 1)
        return true;
    const vd_node *number = vd_node_of(m, value, RO_OP_CAST);
    const vd_node *sum = number ? vd_node_of(m, vd_input_of(m, number, 0), RO_OP_ADD) : NULL;
    const vd_node *own = sum ? vd_node_of(m, vd_input_of(m, sum, 0), RO_OP_CAST) : NULL;
    const vd_node *before = own ? vd_node_of(m, vd_input_of(m, sum, 1), RO_OP_FILL) : NULL;
    if (!before || vd_input_of(m, own, 0) != m->sources - 1 || number->shape.dtype != RO_I32)
        return false;
    const float x = ro_attr_to_f32(before->attr[RO_FILL_VALUE]);
    if (!(x >= 0 && x + (double)m->program->steps <= 0x1p24) || own->shape.dtype != RO_F32)
        return false; /* the sum might be rounded */
    *more = (int32_t)x;
    return (float)*more == x;
}

/* Joins a dropout, if there is one: *value becomes its input. All in a group must be the same. */
static bool join_dropout(const vd_matcher *m, uint32_t *value, vd_fused *g, bool first) {
    const vd_node *n = vd_node_of(m, *value, RO_OP_DROPOUT);
    int32_t more;
    if (!n)
        return first || !g->drops;
    if (!is_step(m, vd_input_of(m, n, 1), &more) || !vd_join(m, *value, RO_OP_DROPOUT, g))
        return false;
    const ro_attention_dropout d = {.step = more,
                                    .seed = (uint64_t)n->attr[RO_DROPOUT_SEED],
                                    .stream = (uint32_t)n->attr[RO_DROPOUT_STREAM],
                                    .threshold = (uint32_t)n->attr[RO_DROPOUT_THRESHOLD],
                                    .scale = ro_attr_to_f32(n->attr[RO_DROPOUT_SCALE])};
    if (first)
        g->dropout = d, g->drops = true;
    *value = vd_input_of(m, n, 0);
    return g->drops && g->dropout.step == d.step && g->dropout.seed == d.seed &&
           g->dropout.stream == d.stream && g->dropout.threshold == d.threshold &&
           ro_attr_f32(g->dropout.scale) == ro_attr_f32(d.scale);
}

/* Returns whether a value is the step plus *more, as integers: a generated token's position. */
static bool is_later_step(const vd_matcher *m, uint32_t value, int32_t *more) {
    const vd_node *sum = vd_node_of(m, value, RO_OP_IADD);
    const vd_node *number = sum ? vd_node_of(m, vd_input_of(m, sum, 1), RO_OP_CAST) : NULL;
    const vd_node *filled = number ? vd_node_of(m, vd_input_of(m, number, 0), RO_OP_FILL) : NULL;
    if (!filled || vd_input_of(m, sum, 0) != m->sources - 1)
        return false;
    const float x = ro_attr_to_f32(filled->attr[RO_FILL_VALUE]);
    if (!(x >= 0 && x <= 0x1p24f))
        return false;
    *more = (int32_t)x;
    return (float)*more == x;
}

/* Sets the queries' places. False: the queries of some step would not be among the keys. */
static bool take_place(const vd_matcher *m, uint32_t first, vd_fused *g) {
    ro_attention *a = &g->attention;
    g->placed = true;
    a->kv_rows = a->keys;
    if (first == m->sources - 1)
        g->first_key = 0;
    else if (!is_later_step(m, first, &g->first_key))
        return false;
    return a->queries > 0 && m->program->steps - 1 + g->first_key + a->queries <= a->keys;
}

/* Returns the value of which `value` has *times copies made by repeat_heads; if it is no such copy,
 * `value` itself, with *times = 1. */
static uint32_t unrepeated(const vd_matcher *m, uint32_t value, int64_t *times) {
    *times = 1;
    if (value < m->sources)
        return value;
    const vd_node *n = &m->graph->stored[value - m->sources];
    if (n->op != RO_OP_REPEAT_HEADS || n->attr[RO_REPEAT_HEADS_TIMES] == 1)
        return value;
    *times = n->attr[RO_REPEAT_HEADS_TIMES];
    return vd_input_of(m, n, 0);
}

/* ---- forward: from attn_out ---- */

bool vd_match_attention(const vd_matcher *m, uint32_t node, vd_fused *g) {
    const uint32_t o = m->sources + node;
    uint32_t q, k, bias;
    int64_t k_times, v_times;
    g->kind = VD_FUSED_ATTENTION;
    const vd_node *out = vd_join(m, o, RO_OP_ATTN_OUT, g);
    const uint32_t mc = vd_input_of(m, out, 0), l = vd_input_of(m, out, 2);
    const vd_node *max = join_masked(m, mc, RO_OP_ATTN_MAX, RO_OP_ATTN_MAX_AT, g);
    const vd_node *av = join_masked(m, vd_input_of(m, out, 1), RO_OP_ATTN_AV, RO_OP_ATTN_AV_AT, g);
    const vd_node *sum = vd_join(m, l, RO_OP_ATTN_L, g);
    if (!max || !av || !sum || vd_input_of(m, sum, 0) != mc)
        return false;
    const uint32_t s = vd_input_of(m, max, 0), v = vd_input_of(m, av, 1);
    uint32_t e = vd_input_of(m, av, 0);
    if (!join_scores(m, s, g, &q, &k, &bias) || !join_dropout(m, &e, g, true) ||
        !ro_shape_equal(vd_shape_in(m, k), vd_shape_in(m, v)))
        return false;
    const vd_node *exp = join_masked(m, e, RO_OP_ATTN_EXP, RO_OP_ATTN_EXP_AT, g);
    const vd_node *block = vd_join(m, vd_input_of(m, sum, 1), RO_OP_REDUCE_SUM, g);
    if (!exp || !block || vd_input_of(m, exp, 0) != s || vd_input_of(m, exp, 1) != mc ||
        vd_input_of(m, block, 0) != e || block->attr[RO_ROWS_COLS] != g->attention.keys ||
        block->attr[RO_ROWS_BLOCK] != RO_ATTN_BLOCK)
        return false;
    const seen_keys sees = keys_seen(m, max, 1), sees_e = keys_seen(m, exp, 2),
                    sees_v = keys_seen(m, av, 2);
    if (!same_mask(&sees, &sees_e) || !same_mask(&sees, &sees_v))
        return false;
    g->attention.causal = sees.causal, g->attention.window = sees.window;
    if (sees.placed && (bias != VD_NO_GROUP || g->drops || !take_place(m, sees.first, g)))
        return false;
    const int64_t blocks = max->shape.dim[3];
    const vd_reader largest = {RO_OP_REDUCE_MAX, mc, VD_NO_GROUP, 0, blocks};
    const uint32_t top = vd_find_reader(m, mc - m->sources + 1, &largest);
    if (top != VD_NO_GROUP && (m->graph->stored[top - m->sources].attr[RO_ROWS_BLOCK] < blocks ||
                               !vd_join(m, top, RO_OP_REDUCE_MAX, g)))
        return false;
    uint32_t keys = unrepeated(m, k, &k_times), values = unrepeated(m, v, &v_times);
    if (k_times != v_times)
        keys = k, values = v, k_times = 1;
    g->attention.kv_heads /= k_times;
    vd_put_inputs(g, bias == VD_NO_GROUP ? 3 : 4, (uint32_t[]){q, keys, values, bias});
    vd_put_outputs(g, top == VD_NO_GROUP ? 1 : 3,
                   (uint32_t[]){o, top, l}); /* without a gradient only o is needed */
    return true;
}

/* ---- backward: from attn_dscore ---- */

typedef struct {
    uint32_t s, p, pz, dp, ds, delta, q, k, v, dout, bias;
} grad_values;

static bool join_probabilities(const vd_matcher *m, uint32_t node, vd_fused *g, grad_values *x) {
    const vd_node *dscore = vd_join(m, x->ds = m->sources + node, RO_OP_ATTN_DSCORE, g);
    x->p = vd_input_of(m, dscore, 0), x->dp = vd_input_of(m, dscore, 1);
    x->delta = vd_input_of(m, dscore, 2);
    const vd_node *prob = vd_join(m, x->p, RO_OP_ATTN_PROB, g);
    if (!prob || !join_dropout(m, &x->dp, g, true))
        return false;
    const seen_keys sees = keys_seen(m, dscore, 0), sees_p = keys_seen(m, prob, 0);
    if (!same_mask(&sees, &sees_p))
        return false;
    const float scale_of_dp = 1.0f;
    const vd_node *dp = vd_join(m, x->dp, RO_OP_MATMUL, g);
    if (!is_product(dp, 2, scale_of_dp, RO_DOT_CHUNK, 0, 0))
        return false;
    x->dout = vd_input_of(m, dp, 0), x->v = vd_input_of(m, dp, 1);
    x->s = vd_input_of(m, prob, 0);
    g->attention.causal = sees.causal, g->attention.window = sees.window;
    return join_scores(m, x->s, g, &x->q, &x->k, &x->bias) &&
           ro_shape_equal(vd_shape_in(m, x->k), vd_shape_in(m, x->v));
}

/* Joins the product of two values; VD_NO_GROUP: there is none. */
static uint32_t join_gradient(const vd_matcher *m, vd_fused *g, uint32_t left, uint32_t right,
                              int trans, float alpha, int mask) {
    const vd_reader wanted = {RO_OP_MATMUL, left, right, 1, trans};
    const uint32_t value =
        left < m->sources ? VD_NO_GROUP : vd_find_reader(m, left - m->sources + 1, &wanted);
    if (value == VD_NO_GROUP ||
        !is_product(&m->graph->stored[value - m->sources], trans, alpha, RO_ATTN_BLOCK, mask,
                    g->attention.window) ||
        !vd_join(m, value, RO_OP_MATMUL, g))
        return VD_NO_GROUP;
    return value;
}

/* Joins the sums of gradients of keys and values over a group of heads, if heads share them. */
static bool join_groups(const vd_matcher *m, vd_fused *g, const grad_values *x, uint32_t *keys,
                        uint32_t *values, uint32_t *dk, uint32_t *dv) {
    int64_t times, v_times;
    *keys = unrepeated(m, x->k, &times), *values = unrepeated(m, x->v, &v_times);
    const vd_reader sum_k = {RO_OP_REPEAT_HEADS_GRAD, *dk, VD_NO_GROUP, 0, times};
    const vd_reader sum_v = {RO_OP_REPEAT_HEADS_GRAD, *dv, VD_NO_GROUP, 0, times};
    const uint32_t k = times > 1 ? vd_find_reader(m, *dk - m->sources + 1, &sum_k) : VD_NO_GROUP;
    const uint32_t v = times > 1 ? vd_find_reader(m, *dv - m->sources + 1, &sum_v) : VD_NO_GROUP;
    if (times != v_times || k == VD_NO_GROUP || v == VD_NO_GROUP || m->uses[*dk] != 1 ||
        m->uses[*dv] != 1) {
        *keys = x->k, *values = x->v;
        return true;
    }
    g->attention.kv_heads /= times;
    *dk = k, *dv = v;
    return vd_join(m, k, RO_OP_REPEAT_HEADS_GRAD, g) && vd_join(m, v, RO_OP_REPEAT_HEADS_GRAD, g);
}

bool vd_match_attention_grad(const vd_matcher *m, uint32_t node, vd_fused *g) {
    grad_values x;
    g->kind = VD_FUSED_ATTENTION_GRAD;
    if (!join_probabilities(m, node, g, &x))
        return false;
    const vd_node *delta = vd_join(m, x.delta, RO_OP_REDUCE_DOT, g);
    if (!delta || vd_input_of(m, delta, 0) != x.dout ||
        delta->attr[RO_ROWS_COLS] != g->attention.head_size ||
        delta->attr[RO_ROWS_BLOCK] < g->attention.head_size)
        return false;
    const uint32_t o = vd_input_of(m, delta, 1);
    if (!ro_shape_equal(vd_shape_in(m, o), vd_shape_in(m, x.dout)))
        return false; /* one of them would have to be repeated */
    x.pz = x.p;
    if (g->drops) {
        const vd_reader dropped = {RO_OP_DROPOUT, x.p, VD_NO_GROUP, -1, 0};
        x.pz = vd_find_reader(m, x.p - m->sources + 1, &dropped);
        uint32_t p = x.pz;
        if (p == VD_NO_GROUP || !join_dropout(m, &p, g, false))
            return false;
    }
    const int causal = g->attention.causal, from_row = causal ? RO_MASK_FROM_ROW : 0;
    const float scale = g->attention.scale;
    uint32_t dv = join_gradient(m, g, x.pz, x.dout, 1, 1.0f, from_row);
    uint32_t dk = join_gradient(m, g, x.ds, x.q, 1, scale, from_row);
    const uint32_t dq =
        join_gradient(m, g, x.ds, x.k, 0, scale, causal ? RO_MASK_UPTO_ROW : RO_MASK_NONE);
    uint32_t keys, values;
    if (dv == VD_NO_GROUP || dk == VD_NO_GROUP || dq == VD_NO_GROUP ||
        !join_groups(m, g, &x, &keys, &values, &dk, &dv))
        return false;
    const vd_node *prob = &m->graph->stored[x.p - m->sources];
    vd_put_inputs(g, x.bias == VD_NO_GROUP ? 7 : 8,
                  (uint32_t[]){x.q, keys, values, o, vd_input_of(m, prob, 1),
                               vd_input_of(m, prob, 2), x.dout, x.bias});
    vd_put_outputs(g, 3, (uint32_t[]){dq, dk, dv});
    return true;
}
