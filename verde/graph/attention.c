/* Attention layers, forward and backward. SPEC 8. verde/exec/fuse_match.c recognises their
 * nodes. */
#include <string.h>

#include "repops/operators.h"
#include "verde/graph/tape.h"

/* 1 / sqrt(head size), correctly rounded: Newton's method in double. */
static float scale_of(const vd_builder *b, vd_value q) {
    const ro_shape *shape = vd_shape_of(b, q);
    double d = (double)shape->dim[shape->ndim - 1], r = d > 1 ? d / 2 : 1;
    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + d / r);
    return (float)(1.0 / r);
}

static vd_op masked_op(int op, const vd_record *r) {
    return (vd_op){op, {[RO_ATTN_MAX_CAUSAL] = r->causal, [RO_ATTN_MAX_WINDOW] = r->window}, NULL};
}

/* Emits attn_max, attn_exp or attn_av. If `first` is a value, it emits the variant of that operator
 * whose queries stand at positions from `first` on. */
static vd_value masked(vd_builder *b, const char *name, int op, const vd_record *r, vd_value first,
                       int32_t count, const vd_value *in) {
    if (first == VD_NONE)
        return vd_emit(b, name, masked_op(op, r), count, in);
    const vd_op placed = {
        op - RO_OP_ATTN_MAX + RO_OP_ATTN_MAX_AT, {[RO_ATTN_MAX_AT_WINDOW] = r->window}, NULL};
    const vd_value all[] = {in[0], count > 1 ? in[1] : first, first};
    return vd_emit(b, name, placed, count + 1, all);
}

static vd_value dropped(vd_builder *b, const char *name, const vd_record *r, vd_value x) {
    if (r->dropout.rate == 0)
        return x;
    return vd_emit_dropout(b, name, x, r->dropout);
}

static vd_value split(vd_builder *b, const char *name, vd_value x, int64_t parts, int64_t part,
                      int64_t heads) {
    return VD_EMIT(b, name,
                   ((vd_op){RO_OP_SPLIT_HEADS,
                            {[RO_SPLIT_HEADS_PARTS] = parts,
                             [RO_SPLIT_HEADS_PART] = part,
                             [RO_SPLIT_HEADS_HEADS] = heads},
                            NULL}),
                   x);
}

static vd_value scores(vd_builder *b, const char *name, const vd_record *r) {
    const vd_op product = vd_matmul_op(2, 2, scale_of(b, r->saved[0]), RO_DOT_CHUNK, 0);
    vd_value s = VD_EMIT(b, name, product, r->saved[0], r->saved[1]);
    return r->padding == VD_NONE ? s : VD_EMIT(b, name, ((vd_op){.op = RO_OP_ADD}), s, r->padding);
}

/* Repeats a key padding [B, S] to [B, H, T, S], the shape of the scores. */
static vd_value spread(vd_builder *b, const vd_value *padding, int64_t heads, int64_t queries) {
    if (!padding)
        return VD_NONE;
    const ro_shape *shape = vd_shape_of(b, *padding);
    ro_shape wide = VD_SHAPE(RO_F32, shape->dim[0], 1, 1, shape->dim[1]);
    vd_value x = VD_EMIT(b, "padding", ((vd_op){.op = RO_OP_RESHAPE, .shape = &wide}), *padding);
    x = VD_EMIT(b, "padding",
                ((vd_op){RO_OP_EXPAND, {[RO_EXPAND_AXIS] = 1, [RO_EXPAND_COUNT] = heads}, NULL}),
                x);
    return VD_EMIT(
        b, "padding",
        ((vd_op){RO_OP_EXPAND, {[RO_EXPAND_AXIS] = 2, [RO_EXPAND_COUNT] = queries}, NULL}), x);
}

/* Computes attention [B, H, T, D] from q, k and v in r->saved[0..2], each [B, H, T or S, D]; saves
 * m, l and the result. `first` is the position of the first query among the keys, or VD_NONE. */
static vd_value attend(vd_builder *b, vd_record *r, vd_value first) {
    vd_value v = r->saved[2];
    int64_t keys = vd_shape_of(b, r->saved[1])->dim[2];
    vd_value s = scores(b, "scores", r);
    vd_value mc = masked(b, "block_max", RO_OP_ATTN_MAX, r, first, 1, &s);
    vd_value e = masked(b, "exp", RO_OP_ATTN_EXP, r, first, 2, (vd_value[]){s, mc});
    if (b->status != VD_OK)
        return 0;
    ro_shape blocks = *vd_shape_of(b, mc);
    vd_op sum = {RO_OP_REDUCE_SUM,
                 {[RO_REDUCE_SUM_COLS] = keys, [RO_REDUCE_SUM_BLOCK] = RO_ATTN_BLOCK},
                 &blocks};
    vd_value lc = VD_EMIT(b, "block_sum", sum, e);
    e = dropped(b, "dropout", r, e);
    vd_value ac = masked(b, "block_av", RO_OP_ATTN_AV, r, first, 2, (vd_value[]){e, v});
    vd_value m = vd_reduce(b, "max", RO_OP_REDUCE_MAX, blocks.dim[3], 1, &mc);
    vd_value l = VD_EMIT(b, "sum", ((vd_op){.op = RO_OP_ATTN_L}), mc, lc);
    vd_value o = VD_EMIT(b, "out", ((vd_op){.op = RO_OP_ATTN_OUT}), mc, ac, l);
    r->saved[3] = m, r->saved[4] = l;
    r->number = o;
    return o;
}

/* Node names of the heads: in the forward pass, and where the backward pass splits qkv again. */
static const char *const names[2][3] = {{"q", "k", "v"}, {"q_again", "k_again", "v_again"}};

/* Splits rows [q | k | v] into the heads of queries, keys and values. */
static void split_all(vd_builder *b, vd_record *r, vd_value qkv, int64_t heads, bool again) {
    for (int i = 0; i < 3; i++)
        r->saved[i] = split(b, names[again][i], qkv, 3, i, heads);
}

vd_value vd_attention(vd_builder *b, vd_value qkv, int64_t heads, vd_dropout_attr dropout) {
    qkv = vd_stored_of(b, "qkv", qkv);
    vd_record r = {.layer = VD_LAYER_ATTENTION, .in = {qkv, VD_NONE, VD_NONE}, .causal = true};
    r.dropout = dropout, r.padding = VD_NONE;
    split_all(b, &r, qkv, heads, false);
    r.out = VD_EMIT(b, "join", ((vd_op){.op = RO_OP_JOIN_HEADS}), attend(b, &r, VD_NONE));
    vd_tape_put(b, r);
    return r.out;
}

static vd_value repeat(vd_builder *b, const char *name, vd_value x, int64_t times) {
    return times == 1
               ? x
               : VD_EMIT(b, name,
                         ((vd_op){RO_OP_REPEAT_HEADS, {[RO_REPEAT_HEADS_TIMES] = times}, NULL}), x);
}

/* Rotates x by its positions, or back with `back`; returns x if the layer does not rotate. */
static vd_value rotated(vd_builder *b, const char *name, const vd_record *r, vd_value x,
                        bool back) {
    if (!r->rotates)
        return x;
    const vd_op op = {
        RO_OP_ROPE, {[RO_ROPE_PAIRS] = r->rotation.neighbours, [RO_ROPE_INVERSE] = back}, NULL};
    return VD_EMIT(b, name, op, x, r->rotation.position, r->rotation.turns);
}

/* Splits rows of queries, keys and values into heads; rotates q and k, repeats k and v. */
static void split_groups(vd_builder *b, vd_record *r, const vd_value rows[3], int64_t heads,
                         int64_t kv_heads, bool again) {
    static const char *const turned[2][2] = {{"q_rotated", "k_rotated"},
                                             {"q_rotated_again", "k_rotated_again"}};
    static const char *const repeated[2][2] = {{"k_repeated", "v_repeated"},
                                               {"k_repeated_again", "v_repeated_again"}};
    const int64_t times = heads / kv_heads;
    vd_value k, v;
    r->saved[0] =
        rotated(b, turned[again][0], r, split(b, names[again][0], rows[0], 1, 0, heads), false);
    k = rotated(b, turned[again][1], r, split(b, names[again][1], rows[1], 1, 0, kv_heads), false);
    r->saved[1] = repeat(b, repeated[again][0], k, times);
    v = split(b, names[again][2], rows[2], 1, 0, kv_heads);
    r->saved[2] = repeat(b, repeated[again][1], v, times);
}

vd_value vd_grouped_attention(vd_builder *b, const vd_value qkv[3], const vd_heads *h) {
    static const char *const rows[] = {"q_rows", "k_rows", "v_rows"};
    vd_record r = {.layer = VD_LAYER_GROUPED_ATTENTION, .causal = h->causal, .dropout = h->dropout};
    r.window = h->window;
    if (h->kv_heads < 1 || h->heads % h->kv_heads != 0) {
        vd_builder_fail(b, VD_ERR_USAGE, "kv_heads must divide heads, got %lld and %lld",
                        (long long)h->kv_heads, (long long)h->heads);
        return 0;
    }
    if (b->status == VD_OK && !ro_shape_equal(vd_shape_of(b, qkv[1]), vd_shape_of(b, qkv[2]))) {
        vd_builder_fail(b, VD_ERR_USAGE, "attention: values must have the shape of keys");
        return 0;
    }
    if (h->rotation)
        r.rotation = *h->rotation, r.rotates = true;
    r.padding = spread(b, h->padding, h->heads, vd_shape_of(b, qkv[0])->dim[1]);
    for (int i = 0; i < 3; i++)
        r.in[i] = vd_stored_of(b, rows[i], qkv[i]);
    split_groups(b, &r, r.in, h->heads, h->kv_heads, false);
    r.out = VD_EMIT(b, "join", ((vd_op){.op = RO_OP_JOIN_HEADS}), attend(b, &r, VD_NONE));
    vd_tape_put(b, r);
    return r.out;
}

vd_value vd_attention_at(vd_builder *b, const vd_value qkv[3], vd_value first, int64_t window) {
    vd_record r = {.window = window, .padding = VD_NONE};
    memcpy(r.saved, qkv, 3 * sizeof *qkv);
    return attend(b, &r, first);
}

/* ---- backward ---- */

/* Emits the gradients of q, k and v by heads. It computes the scores again, so that no layer's T x
 * S matrix is kept from the forward pass. */
static void back_attend(vd_builder *b, const vd_record *r, vd_value dy, vd_value gradient[3]) {
    vd_value q = r->saved[0], k = r->saved[1], v = r->saved[2], m = r->saved[3], l = r->saved[4];
    const ro_shape *head = vd_shape_of(b, q);
    int64_t heads = head->dim[1], size = head->dim[3];
    float scale = scale_of(b, q);
    int from_row = r->causal ? RO_MASK_FROM_ROW : 0, upto_row = r->causal ? RO_MASK_UPTO_ROW : 0;
    vd_value d_o = split(b, "d_out", dy, 1, 0, heads);
    vd_value both[] = {d_o, (vd_value)r->number};
    vd_value delta = vd_reduce(b, "d_delta", RO_OP_REDUCE_DOT, size, 2, both);
    vd_value s = scores(b, "d_scores", r);
    vd_value p = VD_EMIT(b, "d_prob", masked_op(RO_OP_ATTN_PROB, r), s, m, l);
    vd_value dp = VD_EMIT(b, "d_dp", vd_matmul_op(2, 2, 1.0f, RO_DOT_CHUNK, 0), d_o, v);
    dp = dropped(b, "d_dp_dropout", r, dp);
    vd_value ds = VD_EMIT(b, "d_ds", masked_op(RO_OP_ATTN_DSCORE, r), p, dp, delta);
    vd_value pz = dropped(b, "d_prob_dropout", r, p);
    vd_op product = vd_matmul_op(2, 1, 1.0f, RO_ATTN_BLOCK, from_row);
    product.attr[RO_MATMUL_WINDOW] = r->window;
    gradient[2] = VD_EMIT(b, "d_v", product, pz, d_o);
    product.attr[RO_MATMUL_ALPHA] = ro_attr_f32(scale);
    gradient[1] = VD_EMIT(b, "d_k", product, ds, q);
    product = vd_matmul_op(2, 0, scale, RO_ATTN_BLOCK, upto_row);
    product.attr[RO_MATMUL_WINDOW] = r->window;
    gradient[0] = VD_EMIT(b, "d_q", product, ds, k);
}

/* Sets r->number to the layer's result by heads, read from its copy of 16 bits if there is one. */
static void split_result(vd_builder *b, vd_record *r, int64_t heads) {
    const vd_value out = vd_read_again(b, "join_again", r->out);
    if (out != r->out)
        r->number = split(b, "out_again", out, 1, 0, heads);
}

void vd_back_attention(vd_builder *b, const vd_record *record, vd_value dy) {
    vd_value g[3];
    vd_record again = *record, *r = &again;
    const int64_t heads = vd_shape_of(b, r->saved[0])->dim[1];
    const vd_value qkv = vd_read_again(b, "qkv_again", r->in[0]);
    if (qkv != r->in[0])
        split_all(b, r, qkv, heads, true);
    split_result(b, r, heads);
    back_attend(b, r, dy, g);
    vd_accumulate(b, r->in[0],
                  VD_EMIT(b, "d_qkv", ((vd_op){.op = RO_OP_JOIN_HEADS}), g[0], g[1], g[2]));
}

static void read_groups_again(vd_builder *b, vd_record *r) {
    static const char *const name[] = {"q_rows_again", "k_rows_again", "v_rows_again"};
    vd_value rows[3];
    const ro_shape *head = vd_shape_of(b, r->saved[0]);
    const int64_t heads = head->dim[1], size = head->dim[3];
    const int64_t kv_heads = vd_shape_of(b, r->in[1])->dim[2] / size;
    for (int i = 0; i < 3; i++)
        rows[i] = vd_read_again(b, name[i], r->in[i]);
    if (rows[0] != r->in[0])
        split_groups(b, r, rows, heads, kv_heads, true);
    split_result(b, r, heads);
}

void vd_back_grouped_attention(vd_builder *b, const vd_record *record, vd_value dy) {
    static const char *const sum[] = {"", "d_k_group", "d_v_group"};
    static const char *const name[] = {"d_q_rows", "d_k_rows", "d_v_rows"};
    vd_value g[3];
    vd_record again = *record, *r = &again;
    if (b->status == VD_OK)
        read_groups_again(b, r);
    back_attend(b, r, dy, g);
    if (b->status != VD_OK)
        return;
    int64_t heads = vd_shape_of(b, g[0])->dim[1], size = vd_shape_of(b, g[0])->dim[3];
    const bool wanted[] = {vd_wants_gradient(b, r->in[0]), vd_wants_gradient(b, r->in[1]),
                           vd_wants_gradient(b, r->in[2])};
    for (int i = 0; i < 3; i++) {
        const ro_shape *in = vd_shape_of(b, r->in[i]);
        int64_t times = heads * size / in->dim[in->ndim - 1];
        if (times > 1 && wanted[i])
            g[i] = VD_EMIT(
                b, sum[i],
                ((vd_op){RO_OP_REPEAT_HEADS_GRAD, {[RO_REPEAT_HEADS_GRAD_TIMES] = times}, NULL}),
                g[i]);
    }
    if (wanted[0])
        g[0] = rotated(b, "d_q_turned", r, g[0], true);
    if (wanted[1])
        g[1] = rotated(b, "d_k_turned", r, g[1], true);
    for (int i = 0; i < 3; i++)
        if (wanted[i])
            vd_accumulate(b, r->in[i],
                          VD_EMIT(b, name[i], ((vd_op){.op = RO_OP_JOIN_HEADS}), g[i]));
}
