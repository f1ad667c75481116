/* A decoder as Llama has it (Touvron et al., 2023): RMS norm, rotary positions, grouped queries,
 * SwiGLU, no biases, an output table of its own. */
#include "models/model.h"

enum { BLOCK_PARAMETERS = 9, LAYERS_MAX = (VD_PARAMETERS_MAX - 3) / BLOCK_PARAMETERS };

#define NORM_EPS 1e-5f

static vd_status check(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    if (m->heads < 1 || m->channels % (2 * m->heads) != 0)
        return vd_fail(err, VD_ERR_USAGE,
                       "channels must be a multiple of 2 * heads, got %lld, %lld",
                       (long long)m->channels, (long long)m->heads);
    if (m->kv_heads < 1 || m->heads % m->kv_heads != 0)
        return vd_fail(err, VD_ERR_USAGE, "kv_heads must divide heads, got %lld and %lld",
                       (long long)m->kv_heads, (long long)m->heads);
    return VD_OK;
}

static void declare_block(const vd_model *m, vd_parameters *out, long long layer) {
    const int64_t c = m->channels, kv = c / m->heads * m->kv_heads;
    const float deviation = 0.02f;
    vd_declare(out, VD_SHAPE(RO_F32, c), 0, 1, "h.%lld.norm_1.gamma", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, c), deviation, 0, "h.%lld.attn.q", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, kv), deviation, 0, "h.%lld.attn.k", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, kv), deviation, 0, "h.%lld.attn.v", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, c), deviation, 0, "h.%lld.attn.proj", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c), 0, 1, "h.%lld.norm_2.gamma", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, m->hidden), deviation, 0, "h.%lld.mlp.gate", layer);
    vd_declare(out, VD_SHAPE(RO_F32, c, m->hidden), deviation, 0, "h.%lld.mlp.up", layer);
    vd_declare(out, VD_SHAPE(RO_F32, m->hidden, c), deviation, 0, "h.%lld.mlp.down", layer);
}

static void declare(const vd_model *m, vd_parameters *out) {
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab, m->channels), 0.02f, 0, "tokens");
    for (int64_t i = 0; i < m->layers; i++)
        declare_block(m, out, i);
    vd_declare(out, VD_SHAPE(RO_F32, m->channels), 0, 1, "norm.gamma");
    vd_declare(out, VD_SHAPE(RO_F32, m->vocab, m->channels), 0.02f, 0, "head");
}

#define SCOPE(b, in, layer, part)                                                                  \
    vd_scope(b, "m%lld.h.%lld.%s", (long long)(in)->micro_batch, (long long)(layer), part)

static vd_value project(vd_builder *b, const vd_forward *in, int64_t layer, const char *part,
                        vd_value x, vd_value weight) {
    SCOPE(b, in, layer, part);
    return vd_project(b, x, weight);
}

/* p: the first of the block's nine parameters. */
static vd_value block(vd_builder *b, const vd_forward *in, vd_value x, int64_t layer, vd_value p) {
    const vd_model *m = &in->training->model;
    const vd_rotation rotation = {m->rope_base, 0, false};
    const vd_heads heads = {m->heads, m->kv_heads, true, &rotation, {0}};
    SCOPE(b, in, layer, "norm_1");
    vd_value y = vd_rmsnorm(b, x, p, NORM_EPS);
    vd_value qkv[] = {project(b, in, layer, "attn.q", y, p + 1),
                      project(b, in, layer, "attn.k", y, p + 2),
                      project(b, in, layer, "attn.v", y, p + 3)};
    SCOPE(b, in, layer, "attn");
    y = vd_grouped_attention(b, qkv, &heads);
    x = vd_add(b, "residual", x, project(b, in, layer, "attn.proj", y, p + 4));
    SCOPE(b, in, layer, "norm_2");
    y = vd_rmsnorm(b, x, p + 5, NORM_EPS);
    vd_value gate = vd_silu(b, project(b, in, layer, "mlp.gate", y, p + 6));
    vd_value up = project(b, in, layer, "mlp.up", y, p + 7);
    y = project(b, in, layer, "mlp.down", vd_mul(b, "gated", gate, up), p + 8);
    return vd_add(b, "residual", x, y);
}

static vd_value forward(vd_builder *b, const vd_forward *in) {
    const vd_model *m = &in->training->model;
    const long long micro = (long long)in->micro_batch;
    vd_value p = 1;
    vd_scope(b, "m%lld.embed", micro);
    vd_value x = vd_embedding(b, "tokens", 0, in->tokens);
    for (int64_t i = 0; i < m->layers; i++, p += BLOCK_PARAMETERS)
        x = block(b, in, x, i, p);
    vd_scope(b, "m%lld.norm", micro);
    x = vd_rmsnorm(b, x, p, NORM_EPS);
    vd_scope(b, "m%lld.logits", micro);
    x = vd_logits(b, x, p + 1);
    vd_scope(b, "m%lld.loss", micro);
    return vd_xent(b, x, in->targets);
}

const vd_model_type vd_llama = {check, declare, forward, LAYERS_MAX};
