/* GPT-2 (Radford et al., 2019): pre-norm blocks, learned positions, tied embedding, GELU by tanh.
 */
#include "models/model.h"

enum { BLOCK_PARAMETERS = 12, LAYERS_MAX = (VD_PARAMETERS_MAX - 4) / BLOCK_PARAMETERS };

/* Residual projections start smaller by sqrt(2 * layers), as in GPT-2. */
static float residual_deviation(const vd_model *m) {
    double n = 2.0 * (double)m->layers, r = n;
    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + n / r);
    return (float)(0.02 / r);
}

static void declare_block(const vd_model *m, vd_parameters *out, int64_t layer) {
    const struct {
        const char *name;
        int64_t from, to;
        float deviation;
    } linear[] = {
        {"attn.qkv", m->channels, 3 * m->channels, 0.02f},
        {"attn.proj", m->channels, m->channels, residual_deviation(m)},
        {"mlp.up", m->channels, 4 * m->channels, 0.02f},
        {"mlp.down", 4 * m->channels, m->channels, residual_deviation(m)},
    };
    for (int i = 0; i < 4; i++) {
        if (i % 2 == 0)
            vd_declare_norm(out, m->channels, "h.%lld.ln_%d", (long long)layer, i / 2 + 1);
        vd_declare_linear(out, linear[i].from, linear[i].to, linear[i].deviation, "h.%lld.%s",
                          (long long)layer, linear[i].name);
    }
}

static void declare(const vd_model *m, vd_parameters *out) {
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab, m->channels), 0.02f, 0, "wte");
    vd_declare(out, VD_SHAPE(RO_F32, m->context, m->channels), 0.02f, 0, "wpe");
    for (int64_t i = 0; i < m->layers; i++)
        declare_block(m, out, i);
    vd_declare_norm(out, m->channels, "ln_f");
}

/* A place where units are dropped: 0 is the embedding, then three per layer. */
static vd_dropout_attr dropout(const vd_forward *in, int64_t site) {
    return (vd_dropout_attr){in->training->model.dropout, in->training->seed,
                             VD_STREAM_DROPOUT(in->micro_batch, site)};
}

#define SCOPE(b, in, layer, part)                                                                  \
    vd_scope(b, "m%lld.h.%lld.%s", (long long)(in)->micro_batch, (long long)(layer), part)

/* p: the first of the block's twelve parameters. */
static vd_value block(vd_builder *b, const vd_forward *in, vd_value x, int64_t layer, vd_value p) {
    SCOPE(b, in, layer, "ln_1");
    vd_value y = vd_layernorm(b, x, p, p + 1);
    SCOPE(b, in, layer, "attn.qkv");
    y = vd_linear(b, y, p + 2, p + 3);
    SCOPE(b, in, layer, "attn");
    y = vd_attention(b, y, in->training->model.heads, dropout(in, 1 + 3 * layer));
    SCOPE(b, in, layer, "attn.proj");
    y = vd_linear(b, y, p + 4, p + 5);
    y = vd_dropout(b, "dropout", y, dropout(in, 2 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    SCOPE(b, in, layer, "ln_2");
    y = vd_layernorm(b, x, p + 6, p + 7);
    SCOPE(b, in, layer, "mlp.up");
    y = vd_gelu(b, vd_linear(b, y, p + 8, p + 9));
    SCOPE(b, in, layer, "mlp.down");
    y = vd_linear(b, y, p + 10, p + 11);
    y = vd_dropout(b, "dropout", y, dropout(in, 3 + 3 * layer));
    return vd_add(b, "residual", x, y);
}

static vd_value forward(vd_builder *b, const vd_forward *in) {
    const vd_training *t = in->training;
    long long micro = (long long)in->micro_batch;
    vd_value wte = 0, wpe = 1, p = 2;
    vd_scope(b, "m%lld.embed", micro);
    ro_shape row = VD_SHAPE(RO_I32, t->sequence);
    vd_op iota = {.op = RO_OP_IOTA, .shape = &row};
    vd_value positions = vd_emit(b, "iota", iota, 0, NULL);
    vd_value x = vd_embedding(b, "tokens", wte, in->tokens);
    x = vd_add(b, "sum", x, vd_embedding(b, "positions", wpe, positions));
    x = vd_dropout(b, "dropout", x, dropout(in, 0));
    for (int64_t i = 0; i < t->model.layers; i++, p += BLOCK_PARAMETERS)
        x = block(b, in, x, i, p);
    vd_scope(b, "m%lld.ln_f", micro);
    x = vd_layernorm(b, x, p, p + 1);
    vd_scope(b, "m%lld.logits", micro);
    x = vd_logits(b, x, wte);
    vd_scope(b, "m%lld.loss", micro);
    return vd_xent(b, x, in->targets);
}

const vd_model_type vd_gpt2 = {vd_check_positions, declare, forward, LAYERS_MAX};
