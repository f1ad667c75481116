/* GPT-2 (Radford et al., 2019): pre-norm blocks, learned positions, tied embedding, GELU by tanh.
 * Its weights are stored as [in, out]. */
#include "models/model.h"

enum { BLOCK_PARAMETERS = 12, LAYERS_MAX = (VD_TRAINED_MAX - 4) / BLOCK_PARAMETERS };

/* Returns the standard deviation of residual projections, which is smaller by a factor of sqrt(2 *
 * layers), as in GPT-2. */
static float residual_deviation(const vd_model *m) {
    double n = 2.0 * (double)m->layers, r = n;
    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + n / r);
    return (float)(0.02 / r);
}

static void declare_linear(vd_parameters *out, const char *const name[2], int64_t in, int64_t width,
                           float deviation) {
    vd_declare_linear(out, name[0], name[1], (vd_linear_shape){in, width, deviation, true, true});
}

static void declare_block(const vd_model *m, vd_parameters *out) {
    const int64_t c = m->channels, hidden = vd_hidden_of(m);
    static const char *const qkv[] = {"attn.qkv", "attn.c_attn"};
    static const char *const proj[] = {"attn.proj", "attn.c_proj"};
    static const char *const up[] = {"mlp.up", "mlp.c_fc"}, *const down[] = {"mlp.down",
                                                                             "mlp.c_proj"};
    vd_declare_norm(out, "ln_1", "ln_1", c);
    declare_linear(out, qkv, c, 3 * c, 0.02f);
    declare_linear(out, proj, c, c, residual_deviation(m));
    vd_declare_norm(out, "ln_2", "ln_2", c);
    declare_linear(out, up, c, hidden, 0.02f);
    declare_linear(out, down, hidden, c, residual_deviation(m));
}

static void declare(const vd_model *m, vd_parameters *out) {
    vd_declare_table(out, "wte", "transformer.wte.weight", m->vocab, m->channels);
    vd_declare_table(out, "wpe", "transformer.wpe.weight", m->context, m->channels);
    for (int64_t i = 0; i < m->layers; i++) {
        vd_declare_scope(out, "h.%lld.", (long long)i);
        vd_file_scope(out, "transformer.h.%lld.", (long long)i);
        declare_block(m, out);
    }
    vd_declare_scope(out, "%s", "");
    vd_file_scope(out, "%s", "");
    vd_declare_norm(out, "ln_f", "transformer.ln_f", m->channels);
}

/* Emits attention, where queries, keys and values lie side by side in a row. */
static vd_value attend(vd_pass *p, int64_t layer, vd_value x) {
    static const char *const name[] = {"q_rows", "k_rows", "v_rows"};
    const vd_model *m = &p->in->training->model;
    const vd_heads heads = {.heads = m->heads, .kv_heads = m->heads, .causal = true};
    vd_value qkv[3];
    if (!p->in->cache)
        return vd_attention(p->b, x, m->heads, vd_dropout_at(p, 1 + 3 * layer));
    for (int i = 0; i < 3; i++)
        qkv[i] = vd_slice(p->b, name[i], x, (vd_stretch){2, i * m->channels, m->channels, 1});
    return vd_attend(p, layer, qkv, &heads);
}

static vd_value block(vd_pass *p, vd_value x, int64_t layer) {
    vd_builder *b = p->b;
    vd_block_scope(p, layer, "ln_1");
    vd_value y = vd_take_norm(p, x);
    vd_block_scope(p, layer, "attn.qkv");
    y = vd_take_linear(p, y);
    vd_block_scope(p, layer, "attn");
    y = attend(p, layer, y);
    vd_block_scope(p, layer, "attn.proj");
    y = vd_dropout(b, "dropout", vd_take_linear(p, y), vd_dropout_at(p, 2 + 3 * layer));
    x = vd_add(b, "residual", x, y);
    vd_block_scope(p, layer, "ln_2");
    y = vd_take_norm(p, x);
    vd_block_scope(p, layer, "mlp.up");
    y = vd_take_activation(p, vd_take_linear(p, y));
    vd_block_scope(p, layer, "mlp.down");
    y = vd_dropout(b, "dropout", vd_take_linear(p, y), vd_dropout_at(p, 3 + 3 * layer));
    return vd_add(b, "residual", x, y);
}

static vd_value gpt2_rows(vd_pass *p) {
    vd_builder *b = p->b;
    vd_pass_scope(p, "embed");
    const vd_value positions = vd_positions(p), wte = vd_take(p), wpe = vd_take(p);
    p->table = wte;
    vd_value x = vd_look_up(p, "tokens", wte, p->in->tokens);
    x = vd_add(b, "sum", x, vd_look_up(p, "positions", wpe, positions));
    x = vd_dropout(b, "dropout", x, vd_dropout_at(p, 0));
    for (int64_t i = 0; i < p->in->training->model.layers; i++)
        x = block(p, x, i);
    return x;
}

static vd_value gpt2_logits(vd_pass *p, vd_value x) {
    vd_pass_scope(p, "ln_f");
    x = vd_take_norm(p, x);
    vd_pass_scope(p, "logits");
    return vd_project_rows(p->b, x, p->table);
}

static const char *const masks[] = {"*.attn.bias", "*.attn.masked_bias", NULL};
static const vd_file_copy copies[] = {{"lm_head.weight", "transformer.wte.weight"}, {NULL, NULL}};

const vd_model_type vd_gpt2 = {.check = vd_check_positions,
                               .declare = declare,
                               .rows = gpt2_rows,
                               .logits = gpt2_logits,
                               .layers_max = LAYERS_MAX,
                               .base = "transformer.",
                               .buffers = masks,
                               .copies = copies};
