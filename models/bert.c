/* BERT (Devlin et al., 2019): an encoder. Post-norm blocks, learned positions and segments, GELU by
 * erf; learns to name tokens that were hidden from it. Hidden tokens become the last one of the
 * vocabulary, which stands for nothing else. */
#include "models/model.h"

enum {
    BLOCK_PARAMETERS = 16,
    EMBEDDING_PARAMETERS = 5,
    HEAD_PARAMETERS = 5,
    LAYERS_MAX = (VD_PARAMETERS_MAX - EMBEDDING_PARAMETERS - HEAD_PARAMETERS) / BLOCK_PARAMETERS,
    NO_LABEL = -1, /* of what is not hidden */
};

static vd_status check(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    vd_status status = vd_check_positions(t, err);
    if (status != VD_OK)
        return status;
    if (!(m->mask_rate > 0 && m->mask_rate < 1))
        return vd_fail(err, VD_ERR_USAGE, "mask_rate must be above 0 and below 1, got %g",
                       (double)m->mask_rate);
    return VD_OK;
}

static void declare_block(const vd_model *m, vd_parameters *out, long long layer) {
    static const char *const projection[] = {"attn.q", "attn.k", "attn.v", "attn.proj"};
    const int64_t c = m->channels;
    for (int i = 0; i < 4; i++)
        vd_declare_linear(out, c, c, 0.02f, "h.%lld.%s", layer, projection[i]);
    vd_declare_norm(out, c, "h.%lld.ln_1", layer);
    vd_declare_linear(out, c, 4 * c, 0.02f, "h.%lld.mlp.up", layer);
    vd_declare_linear(out, 4 * c, c, 0.02f, "h.%lld.mlp.down", layer);
    vd_declare_norm(out, c, "h.%lld.ln_2", layer);
}

static void declare(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels;
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab, c), 0.02f, 0, "tokens");
    vd_declare(out, VD_SHAPE(RO_F32, m->context, c), 0.02f, 0, "positions");
    vd_declare(out, VD_SHAPE(RO_F32, 2, c), 0.02f, 0, "segments");
    vd_declare_norm(out, c, "ln_e");
    for (int64_t i = 0; i < m->layers; i++)
        declare_block(m, out, i);
    vd_declare_linear(out, c, c, 0.02f, "head");
    vd_declare_norm(out, c, "ln_h");
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab), 0, 0, "head.tokens.bias");
}

/* ---- what is hidden: integers below 2^24 as f32, so every step is exact ---- */

static vd_value to(vd_builder *b, const char *name, vd_value x, int dtype) {
    return VD_EMIT(b, name, ((vd_op){RO_OP_CAST, {dtype}, NULL}), x);
}

static vd_value arithmetic(vd_builder *b, const char *name, int op, vd_value x, vd_value y) {
    return VD_EMIT(b, name, ((vd_op){.op = op}), x, y);
}

static vd_value constant(vd_builder *b, const char *name, float value, ro_shape shape) {
    return vd_emit(b, name, (vd_op){RO_OP_FILL, {ro_attr_f32(value)}, &shape}, 0, NULL);
}

/* Each token that is no padding is hidden with probability mask_rate. */
static void hide(vd_builder *b, vd_forward *in) {
    const vd_model *m = &in->training->model;
    const int64_t threshold = (int64_t)((double)m->mask_rate * 0x1p32 + 0.5);
    ro_shape one = VD_SHAPE(RO_F32, 1), like = *vd_shape_of(b, in->tokens);
    like.dtype = RO_F32;
    const vd_op choose = {
        RO_OP_DROPOUT,
        {(int64_t)in->training->seed, VD_STREAM_MASK(in->micro_batch), threshold, ro_attr_f32(1)},
        NULL};
    vd_scope(b, "m%lld.mask", (long long)in->micro_batch);
    in->real = m->pad < 0 ? constant(b, "real", 1, like)
                          : VD_EMIT(b, "real", ((vd_op){RO_OP_KEPT, {m->pad}, NULL}), in->tokens);
    vd_value seen = VD_EMIT(b, "seen", choose, in->real, vd_step_value(b));
    in->hidden = arithmetic(b, "hidden", RO_OP_SUB, in->real, seen);
    vd_value x = to(b, "numbers", in->tokens, RO_F32), unit = constant(b, "one", 1, one);
    /* token - hidden (token - mask), and hidden (token + 1) - 1 */
    vd_value mask = constant(b, "mask", (float)(m->vocab - 1), one);
    vd_value less = arithmetic(b, "to_mask", RO_OP_SUB, x, mask);
    less = arithmetic(b, "to_mask", RO_OP_MUL, in->hidden, less);
    in->tokens = to(b, "tokens", arithmetic(b, "masked", RO_OP_SUB, x, less), RO_I32);
    vd_value label = arithmetic(b, "next", RO_OP_ADD, x, unit);
    label = arithmetic(b, "next", RO_OP_MUL, in->hidden, label);
    in->targets = to(b, "labels", arithmetic(b, "label", RO_OP_SUB, label, unit), RO_I32);
}

/* ---- forward ---- */

/* A place where units are dropped: 0 is the embedding, then three per layer. */
static vd_dropout_attr dropout(const vd_forward *in, int64_t site) {
    return (vd_dropout_attr){in->training->model.dropout, in->training->seed,
                             VD_STREAM_DROPOUT(in->micro_batch, site)};
}

#define SCOPE(b, in, layer, part)                                                                  \
    vd_scope(b, "m%lld.h.%lld.%s", (long long)(in)->micro_batch, (long long)(layer), part)

static vd_value linear(vd_builder *b, const vd_forward *in, int64_t layer, const char *part,
                       vd_value x, vd_value p) {
    SCOPE(b, in, layer, part);
    return vd_linear(b, x, p, p + 1);
}

/* p: the first of the block's sixteen parameters; padding: as vd_heads has it. */
static vd_value block(vd_builder *b, const vd_forward *in, vd_value x, int64_t layer, vd_value p,
                      const vd_value *padding) {
    const int64_t n = in->training->model.heads;
    const vd_heads heads = {n, n, false, NULL, dropout(in, 1 + 3 * layer), padding};
    const vd_value qkv[] = {linear(b, in, layer, "attn.q", x, p),
                            linear(b, in, layer, "attn.k", x, p + 2),
                            linear(b, in, layer, "attn.v", x, p + 4)};
    SCOPE(b, in, layer, "attn");
    vd_value y = vd_grouped_attention(b, qkv, &heads);
    y = linear(b, in, layer, "attn.proj", y, p + 6);
    y = vd_dropout(b, "dropout", y, dropout(in, 2 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    SCOPE(b, in, layer, "ln_1");
    x = vd_layernorm(b, x, p + 8, p + 9);
    y = vd_gelu_erf(b, linear(b, in, layer, "mlp.up", x, p + 10));
    y = linear(b, in, layer, "mlp.down", y, p + 12);
    y = vd_dropout(b, "dropout", y, dropout(in, 3 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    SCOPE(b, in, layer, "ln_2");
    return vd_layernorm(b, x, p + 14, p + 15);
}

/* The first half of each window is segment 0, the second segment 1. */
static vd_value segments(vd_builder *b, vd_value positions) {
    const int64_t half = (vd_shape_of(b, positions)->dim[0] + 1) / 2;
    vd_value x = to(b, "halves", positions, RO_F32);
    return to(b, "segment", vd_div_const(b, "halves", x, (double)half), RO_I32);
}

static vd_value embed(vd_builder *b, const vd_forward *in, vd_value tokens) {
    ro_shape row = VD_SHAPE(RO_I32, in->training->sequence);
    vd_value positions = vd_emit(b, "iota", (vd_op){.op = RO_OP_IOTA, .shape = &row}, 0, NULL);
    vd_value x = vd_embedding(b, "tokens", 0, tokens);
    x = vd_add(b, "sum", x, vd_embedding(b, "positions", 1, positions));
    x = vd_add(b, "sum", x, vd_embedding(b, "segments", 2, segments(b, positions)));
    x = vd_layernorm(b, x, 3, 4);
    return vd_dropout(b, "dropout", x, dropout(in, 0));
}

static vd_value forward(vd_builder *b, const vd_forward *in) {
    const vd_model *m = &in->training->model;
    const long long micro = (long long)in->micro_batch;
    vd_value p = EMBEDDING_PARAMETERS;
    vd_scope(b, "m%lld.embed", micro);
    vd_value padding = m->pad < 0 ? 0 : VD_EMIT(b, "padding", ((vd_op){.op = RO_OP_LOG}), in->real);
    vd_value x = embed(b, in, in->tokens);
    for (int64_t i = 0; i < m->layers; i++, p += BLOCK_PARAMETERS)
        x = block(b, in, x, i, p, m->pad < 0 ? NULL : &padding);
    vd_scope(b, "m%lld.head", micro);
    x = vd_gelu_erf(b, vd_linear(b, x, p, p + 1));
    x = vd_layernorm(b, x, p + 2, p + 3);
    vd_scope(b, "m%lld.logits", micro);
    x = vd_add(b, "bias", vd_logits(b, x, 0), p + 4);
    vd_scope(b, "m%lld.loss", micro);
    return vd_xent_ignore(b, x, in->targets, NO_LABEL);
}

const vd_model_type vd_bert = {check, declare, forward, LAYERS_MAX, .hide = hide};
