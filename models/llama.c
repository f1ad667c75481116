/* A decoder like Llama (Touvron et al., 2023): RMS norm, rotary positions, grouped queries, SwiGLU.
 * Mistral, Qwen2 and Qwen3 are variants with biases, norms of queries and keys, or an output table
 * that equals the token table. */
#include "models/model.h"

enum { BLOCK_PARAMETERS = 9, LAYERS_MAX = (VD_TRAINED_MAX - 3) / BLOCK_PARAMETERS };

static const float deviation = 0.02f;

static int64_t head_dim(const vd_model *m) {
    return m->head_dim ? m->head_dim : m->channels / m->heads;
}

static vd_status llama_check(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    if (m->heads < 1 || (!m->head_dim && m->channels % (2 * m->heads) != 0))
        return vd_fail(err, VD_ERR_USAGE,
                       "channels must be a multiple of 2 * heads, got %lld, %lld",
                       (long long)m->channels, (long long)m->heads);
    if (m->head_dim % 2 != 0)
        return vd_fail(err, VD_ERR_USAGE, "head_dim must be even, got %lld",
                       (long long)m->head_dim);
    if (m->kv_heads < 1 || m->heads % m->kv_heads != 0)
        return vd_fail(err, VD_ERR_USAGE, "kv_heads must divide heads, got %lld and %lld",
                       (long long)m->kv_heads, (long long)m->heads);
    return VD_OK;
}

static void declare_block(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels, q = m->heads * head_dim(m), kv = m->kv_heads * head_dim(m);
    const vd_linear_shape keys = {c, kv, deviation, m->qkv_bias, false};
    const vd_linear_shape wide = {c, m->hidden, deviation, m->mlp_bias, false};
    vd_declare_gain(out, "norm_1", "input_layernorm", c);
    vd_declare_linear(out, "attn.q", "self_attn.q_proj",
                      (vd_linear_shape){c, q, deviation, m->qkv_bias, false});
    vd_declare_linear(out, "attn.k", "self_attn.k_proj", keys);
    vd_declare_linear(out, "attn.v", "self_attn.v_proj", keys);
    if (m->qk_norm) {
        vd_declare_gain(out, "attn.q_norm", "self_attn.q_norm", head_dim(m));
        vd_declare_gain(out, "attn.k_norm", "self_attn.k_norm", head_dim(m));
    }
    vd_declare_linear(out, "attn.proj", "self_attn.o_proj",
                      (vd_linear_shape){q, c, deviation, m->out_bias, false});
    vd_declare_gain(out, "norm_2", "post_attention_layernorm", c);
    vd_declare_linear(out, "mlp.gate", "mlp.gate_proj", wide);
    vd_declare_linear(out, "mlp.up", "mlp.up_proj", wide);
    vd_declare_linear(out, "mlp.down", "mlp.down_proj",
                      (vd_linear_shape){m->hidden, c, deviation, m->mlp_bias, false});
}

static void declare(const vd_model *m, vd_parameters *out) {
    vd_declare_table(out, "tokens", "model.embed_tokens.weight", m->vocab, m->channels);
    for (int64_t i = 0; i < m->layers; i++) {
        vd_declare_scope(out, "h.%lld.", (long long)i);
        vd_file_scope(out, "model.layers.%lld.", (long long)i);
        declare_block(m, out);
    }
    vd_declare_scope(out, "%s", "");
    vd_file_scope(out, "%s", "");
    vd_declare_gain(out, "norm", "model.norm", m->channels);
    if (!m->tied)
        vd_declare_linear(out, "head", "lm_head",
                          (vd_linear_shape){m->channels, m->vocab, deviation, false, false});
}

static vd_value linear(vd_pass *p, int64_t layer, const char *part, vd_value x) {
    vd_block_scope(p, layer, part);
    return vd_take_linear(p, x);
}

/* Normalizes each head's part of a row by itself: [b, T, heads D]. */
static vd_value norm_heads(vd_pass *p, int64_t layer, const char *part, vd_value x) {
    const ro_shape flat = *vd_shape_of(p->b, x);
    const int64_t size = head_dim(&p->in->training->model);
    vd_block_scope(p, layer, part);
    if (p->b->status != VD_OK)
        return 0;
    const ro_shape heads = VD_SHAPE(RO_F32, flat.dim[0], flat.dim[1], flat.dim[2] / size, size);
    x = vd_take_gain(p, vd_reshape(p->b, "heads", x, heads));
    return vd_reshape(p->b, "rows", x, flat);
}

static vd_value attend(vd_pass *p, const vd_rotation *rotation, int64_t layer, vd_value x) {
    const vd_model *m = &p->in->training->model;
    const int64_t keys = p->in->cache ? p->in->cache->length : p->in->training->sequence;
    /* A window that excludes no key would give another program with the same bits. */
    const bool windowed = layer >= m->window_from && m->window < keys;
    const vd_heads heads = {
        m->heads, m->kv_heads, true, rotation, {0}, NULL, windowed ? m->window : 0};
    vd_value qkv[3];
    qkv[0] = linear(p, layer, "attn.q", x);
    qkv[1] = linear(p, layer, "attn.k", x);
    qkv[2] = linear(p, layer, "attn.v", x);
    if (m->qk_norm) {
        qkv[0] = norm_heads(p, layer, "attn.q_norm", qkv[0]);
        qkv[1] = norm_heads(p, layer, "attn.k_norm", qkv[1]);
    }
    vd_block_scope(p, layer, "attn");
    return linear(p, layer, "attn.proj", vd_attend(p, layer, qkv, &heads));
}

static vd_value block(vd_pass *p, const vd_rotation *rotation, vd_value x, int64_t layer) {
    vd_block_scope(p, layer, "norm_1");
    vd_value y = attend(p, rotation, layer, vd_take_gain(p, x));
    x = vd_add(p->b, "residual", x, y);
    vd_block_scope(p, layer, "norm_2");
    y = vd_take_gain(p, x);
    const vd_value gate = vd_take_activation(p, linear(p, layer, "mlp.gate", y));
    const vd_value up = linear(p, layer, "mlp.up", y);
    y = linear(p, layer, "mlp.down", vd_mul(p->b, "gated", gate, up));
    return vd_add(p->b, "residual", x, y);
}

/* Members that a kind of scaling does not use are 0. */
static vd_frequencies frequencies_of(const vd_model *m) {
    const vd_rope_scaling *s = &m->rope_scaling;
    vd_frequencies f = {.base = m->rope_base};
    switch (s->kind) {
    case VD_ROPE_PLAIN: break;
    case VD_ROPE_LINEAR: f.kind = RO_ROPE_LINEAR, f.factor = s->factor; break;
    case VD_ROPE_LLAMA3:
        f.kind = RO_ROPE_LLAMA3, f.factor = s->factor;
        f.low = s->low, f.high = s->high, f.original = s->context;
        break;
    }
    return f;
}

static vd_value llama_rows(vd_pass *p) {
    const vd_model *m = &p->in->training->model;
    vd_pass_scope(p, "rotation");
    const vd_frequencies frequencies = frequencies_of(m);
    const vd_rotation rotation = {vd_positions(p),
                                  vd_rope_turns(p->b, "turns", head_dim(m), &frequencies), false};
    vd_pass_scope(p, "embed");
    p->table = vd_take(p);
    vd_value x = vd_look_up(p, "tokens", p->table, p->in->tokens);
    for (int64_t i = 0; i < m->layers; i++)
        x = block(p, &rotation, x, i);
    return x;
}

static vd_value llama_logits(vd_pass *p, vd_value x) {
    vd_pass_scope(p, "norm");
    x = vd_take_gain(p, x);
    vd_pass_scope(p, "logits");
    return p->in->training->model.tied ? vd_project_rows(p->b, x, p->table) : vd_take_linear(p, x);
}

static const char *const buffers[] = {"*.rotary_emb.inv_freq", NULL};
/* Files may have a copy of the token table where it is the output table too. */
static const vd_file_copy copies[] = {{"lm_head.weight", "model.embed_tokens.weight"},
                                      {NULL, NULL}};

const vd_model_type vd_llama = {.check = llama_check,
                                .declare = declare,
                                .rows = llama_rows,
                                .logits = llama_logits,
                                .layers_max = LAYERS_MAX,
                                .base = "model.",
                                .buffers = buffers,
                                .copies = copies};
