/* Layers of a forward pass, and the parameters that they take. */
#include <string.h>

#include "models/model.h"
#include "verde/graph/functions.h"

const char *vd_micro_name(const vd_training *t) {
    static const char iteration[] = {VD_NAME_ITERATION, 0};
    return t->micro_batches > 1 ? iteration : "0";
}

void vd_pass_scope(const vd_pass *p, const char *part) {
    vd_scope(p->b, "m%s.%s", vd_micro_name(p->in->training), part);
}

void vd_block_scope(const vd_pass *p, int64_t layer, const char *part) {
    vd_scope(p->b, "m%s.h.%lld.%s", vd_micro_name(p->in->training), (long long)layer, part);
}

vd_value vd_next_losses(vd_pass *p) {
    const vd_model_type *type = vd_type_of(&p->in->training->model);
    const vd_value logits = type->logits(p, type->rows(p));
    vd_pass_scope(p, "loss");
    return vd_xent(p->b, logits, p->in->targets);
}

void vd_check_taken(const vd_pass *p) {
    if (p->next != p->in->declared->taken)
        vd_builder_fail(p->b, VD_ERR_LOCAL, "the model takes %u of its %u parameters", p->next,
                        p->in->declared->taken);
}

/* Returns the role of the parameter that is taken next. */
static vd_role next_role(const vd_pass *p) {
    const vd_parameters *all = p->in->declared;
    return p->next < all->count ? all->parameter[p->next].role : VD_ROLE_OTHER;
}

vd_value vd_take(vd_pass *p) {
    if (p->next >= p->in->declared->count) {
        vd_builder_fail(p->b, VD_ERR_LOCAL, "%s: the model takes more parameters than it declares",
                        p->b->scope);
        return 0;
    }
    return p->in->parameter[p->next++];
}

vd_value vd_look_up(const vd_pass *p, const char *name, vd_value table, vd_value ids) {
    return vd_widened(p->b, name, vd_embedding(p->b, name, table, ids));
}

/* Adds LoRA's ((x A^T) (alpha / rank)) B^T to y. */
static vd_value adapt(vd_pass *p, vd_value x, vd_value y) {
    const vd_lora *lora = p->in->declared->lora;
    const float factor = (float)((double)lora->alpha / (double)lora->rank);
    char scope[VD_NAME_SIZE];
    memcpy(scope, p->b->scope, sizeof scope);
    vd_scope(p->b, "%.55s.lora_a", scope);
    x = vd_scale(p->b, "scaled", vd_project_rows(p->b, x, vd_take(p)), factor);
    vd_scope(p->b, "%.55s.lora_b", scope);
    x = vd_project_rows(p->b, x, vd_take(p));
    vd_scope(p->b, "%s", scope);
    return vd_add(p->b, "adapted", y, x);
}

vd_value vd_take_linear(vd_pass *p, vd_value x) {
    const bool by_input = next_role(p) == VD_ROLE_WEIGHT_BY_INPUT;
    const vd_value weight = vd_take(p);
    vd_value y = by_input ? vd_project(p->b, x, weight) : vd_project_rows(p->b, x, weight);
    if (next_role(p) == VD_ROLE_BIAS)
        y = vd_add(p->b, "bias", y, vd_take(p));
    return next_role(p) == VD_ROLE_LORA_A ? adapt(p, x, y) : y;
}

static float eps_of(const vd_pass *p) {
    const vd_model *m = &p->in->training->model;
    if (m->norm_eps > 0)
        return m->norm_eps;
    return m->kind == VD_MODEL_BERT ? 1e-12f : 1e-5f;
}

vd_value vd_take_norm(vd_pass *p, vd_value x) {
    const vd_value gamma = vd_take(p), beta = vd_take(p);
    return vd_layernorm(p->b, x, gamma, beta, eps_of(p));
}

vd_value vd_take_gain(vd_pass *p, vd_value x) {
    return vd_rmsnorm(p->b, x, vd_take(p), eps_of(p));
}

static vd_activation own_activation(vd_model_kind kind) {
    return kind == VD_MODEL_BERT    ? VD_ACTIVATION_GELU_ERF
           : kind == VD_MODEL_LLAMA ? VD_ACTIVATION_SILU
                                    : VD_ACTIVATION_GELU_TANH;
}

vd_value vd_take_activation(const vd_pass *p, vd_value x) {
    const vd_model *m = &p->in->training->model;
    switch (m->activation ? m->activation : own_activation(m->kind)) {
    case VD_ACTIVATION_GELU_TANH: return vd_gelu(p->b, x);
    case VD_ACTIVATION_GELU_ERF: return vd_gelu_erf(p->b, x);
    case VD_ACTIVATION_RELU: return vd_relu(p->b, x);
    case VD_ACTIVATION_SILU: return vd_silu(p->b, x);
    case VD_ACTIVATION_OWN: break;
    }
    vd_builder_fail(p->b, VD_ERR_USAGE, "no activation of number %d", (int)m->activation);
    return 0;
}

vd_value vd_positions(const vd_pass *p) {
    if (p->in->cache && p->in->cache->first != VD_NONE)
        return p->in->cache->first;
    return vd_iota(p->b, "iota", p->in->training->sequence);
}

vd_dropout_attr vd_dropout_at(const vd_pass *p, int64_t site) {
    const vd_training *t = p->in->training;
    return (vd_dropout_attr){t->evaluates ? 0 : t->model.dropout, t->seed,
                             VD_STREAM_DROPOUT(0, site),
                             VD_STREAM_DROPOUT(1, 0) - VD_STREAM_DROPOUT(0, 0)};
}

/* ---- sizes ---- */

int64_t vd_hidden_of(const vd_model *m) {
    return m->hidden ? m->hidden : 4 * m->channels;
}

vd_status vd_check_positions(const vd_training *t, vd_err *err) {
    const vd_model *m = &t->model;
    if (m->heads < 1 || m->channels % m->heads != 0)
        return vd_fail(err, VD_ERR_USAGE, "heads must divide channels, got %lld and %lld",
                       (long long)m->heads, (long long)m->channels);
    if (t->sequence > m->context)
        return vd_fail(err, VD_ERR_USAGE, "sequence must be at most context (%lld), got %lld",
                       (long long)m->context, (long long)t->sequence);
    return VD_OK;
}
