/* Optimizers as graph nodes: clipping, learning rate, updates. SPEC 9. */
#include "repops/op_movement.h"
#include "repops/op_optimizer.h"
#include "repops/op_reduce.h"
#include "models/model.h"

/* Returns 1, or the factor that scales the gradient's global norm down to the limit. */
static vd_value clip(vd_builder *b, const vd_optimizer *a, uint32_t parameters,
                     const vd_value *gradient) {
    ro_shape one = VD_SHAPE(RO_F32, 1);
    if (a->clip_norm == 0)
        return vd_emit(b, "clip", (vd_op){RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(1)}, &one}, 0,
                       NULL);
    vd_value part[VD_TRAINED_MAX];
    for (uint32_t i = 0; i < parameters; i++) {
        vd_scope(b, "norm.%.50s", b->program->leaf[i].name);
        part[i] =
            vd_reduce(b, "sumsq", RO_OP_REDUCE_DOT, ro_shape_numel(vd_shape_of(b, gradient[i])), 2,
                      (vd_value[]){gradient[i], gradient[i]});
    }
    vd_scope(b, "norm");
    vd_value all = vd_emit(b, "parts", (vd_op){.op = RO_OP_CONCAT}, (int32_t)parameters, part);
    vd_value sum = vd_reduce(b, "sumsq", RO_OP_REDUCE_SUM, parameters, 1, &all);
    return VD_EMIT(
        b, "clip",
        ((vd_op){RO_OP_CLIP_SCALE, {[RO_CLIP_SCALE_MAX_NORM] = ro_attr_f32(a->clip_norm)}, NULL}),
        sum);
}

static vd_value learning_rate(vd_builder *b, const vd_optimizer *a, int64_t steps) {
    int64_t total = a->schedule == RO_LR_CONSTANT ? 0 : steps;
    vd_op op = {RO_OP_LR_SCHEDULE,
                {[RO_LR_SCHEDULE_KIND] = a->schedule,
                 [RO_LR_SCHEDULE_BASE] = ro_attr_f32(a->lr),
                 [RO_LR_SCHEDULE_MIN] = ro_attr_f32(a->min_lr),
                 [RO_LR_SCHEDULE_WARMUP] = a->warmup,
                 [RO_LR_SCHEDULE_TOTAL] = total},
                NULL};
    return VD_EMIT(b, "learning_rate", op, vd_step_value(b));
}

static vd_value correction(vd_builder *b, const char *name, float beta, uint32_t leaf) {
    vd_op op = {RO_OP_BIAS_CORRECTION, {[RO_BIAS_CORRECTION_BETA] = ro_attr_f32(beta)}, NULL};
    return b->graph->output[leaf] = VD_EMIT(b, name, op, leaf);
}

/* Returns a leaf's weight decay as an attribute: 0 for vectors unless the job decays all. */
static int64_t decay_of(const vd_optimizer *o, const vd_leaf *leaf) {
    return ro_attr_f32(o->decay_all || leaf->shape.ndim > 1 ? o->weight_decay : 0);
}

/* The inputs of all updates of a step. */
typedef struct {
    const vd_training *training;
    uint32_t parameters;
    const vd_value *gradient;
    vd_value scale, rate;
} update;

/* Sets the leaf of the next state to x, rounded to bf16 at random if the training stores bf16.
 * Rounding to nearest would keep v from shrinking if beta2 is above 1 - 2^-9. */
static void store(vd_builder *b, const update *u, const char *name, uint32_t leaf, vd_value x) {
    const vd_op op = {RO_OP_CAST_STOCHASTIC,
                      {[RO_CAST_STOCHASTIC_SEED] = (int64_t)u->training->seed,
                       [RO_CAST_STOCHASTIC_STREAM] = VD_STREAM_STORE(leaf)},
                      NULL};
    b->graph->output[leaf] = b->program->leaf[leaf].shape.dtype == RO_F32
                                 ? x
                                 : VD_EMIT(b, name, op, x, vd_step_value(b));
}

/* Emits the AdamW update (Loshchilov & Hutter, 2019) of parameter i. */
static void adamw(vd_builder *b, const update *u, uint32_t i, vd_value c1, vd_value c2) {
    const vd_optimizer *o = &u->training->optimizer;
    const uint32_t m = u->parameters + i, v = 2 * u->parameters + i;
    const int64_t decay = decay_of(o, &b->program->leaf[i]);
    const vd_value w_old = vd_widened(b, "w_f32", i), m_old = vd_widened(b, "m_f32", m);
    const vd_value v_old = vd_widened(b, "v_f32", v);
    vd_op op = {RO_OP_ADAMW_M, {[RO_ADAMW_M_BETA] = ro_attr_f32(o->beta1)}, NULL};
    const vd_value m_new = VD_EMIT(b, "m", op, m_old, u->gradient[i], u->scale);
    op = (vd_op){RO_OP_ADAMW_V, {[RO_ADAMW_V_BETA] = ro_attr_f32(o->beta2)}, NULL};
    const vd_value v_new = VD_EMIT(b, "v", op, v_old, u->gradient[i], u->scale);
    op = (vd_op){
        RO_OP_ADAMW_W, {[RO_ADAMW_W_EPS] = ro_attr_f32(o->eps), [RO_ADAMW_W_DECAY] = decay}, NULL};
    store(b, u, "w_bf16", i, VD_EMIT(b, "w", op, w_old, m_new, v_new, c1, c2, u->rate));
    store(b, u, "m_bf16", m, m_new);
    store(b, u, "v_bf16", v, v_new);
}

/* Emits the update of parameter i by SGD with momentum, or Nesterov's (Sutskever et al., 2013);
 * weight decay is part of the gradient. */
static void sgd(vd_builder *b, const update *u, uint32_t i) {
    const vd_optimizer *o = &u->training->optimizer;
    const uint32_t m = u->parameters + i;
    const int64_t decay = decay_of(o, &b->program->leaf[i]);
    const vd_value w_old = vd_widened(b, "w_f32", i), m_old = vd_widened(b, "m_f32", m);
    vd_op op = {RO_OP_SGD_M,
                {[RO_SGD_M_MOMENTUM] = ro_attr_f32(o->momentum), [RO_SGD_M_DECAY] = decay},
                NULL};
    const vd_value m_new = VD_EMIT(b, "m", op, m_old, u->gradient[i], w_old, u->scale);
    op.op = RO_OP_SGD_NESTEROV;
    const vd_value w_new =
        o->nesterov ? VD_EMIT(b, "w", op, w_old, m_new, u->gradient[i], u->scale, u->rate)
                    : VD_EMIT(b, "w", ((vd_op){.op = RO_OP_SGD_W}), w_old, m_new, u->rate);
    store(b, u, "w_bf16", i, w_new);
    store(b, u, "m_bf16", m, m_new);
}

static bool is_adamw(const vd_optimizer *o) {
    return o->kind == VD_OPTIMIZER_ADAMW;
}

void vd_optimizer_leaves(vd_builder *b, const vd_training *t, const vd_parameters *all) {
    const vd_optimizer *o = &t->optimizer;
    static const char *const suffix[] = {"", ".m", ".v"};
    for (int kind = 0; kind < (is_adamw(o) ? 3 : 2); kind++)
        for (uint32_t i = 0; i < all->trained_count; i++) {
            const vd_parameter *p = &all->parameter[all->trained[i]];
            char name[VD_NAME_SIZE];
            ro_shape shape = p->shape;
            shape.dtype = t->storage == RO_BF16 ? RO_BF16 : RO_F32;
            snprintf(name, sizeof name, "%s%s", p->name, suffix[kind]);
            vd_add_leaf(b, name, &shape);
        }
    if (!is_adamw(o))
        return;
    ro_shape one = VD_SHAPE(RO_F32, 1);
    vd_add_leaf(b, "adamw.c1", &one);
    vd_add_leaf(b, "adamw.c2", &one);
}

/* Returns the parameter that is updated i-th. With bf16 storage the order is reversed, so that the
 * first parameter, the token table, comes last: its f32 copies are the largest, and then only its
 * own gradient is still in memory. */
static uint32_t updated(const update *u, uint32_t i) {
    return u->training->storage == RO_BF16 ? u->parameters - 1 - i : i;
}

void vd_optimize(vd_builder *b, const vd_training *t, uint32_t parameters,
                 const vd_value *gradient) {
    const vd_optimizer *o = &t->optimizer;
    const bool adam = is_adamw(o);
    update u = {.training = t, .parameters = parameters, .gradient = gradient};
    vd_value c1 = VD_NONE, c2 = VD_NONE;
    u.scale = clip(b, o, parameters, gradient);
    vd_scope(b, adam ? "adamw" : "sgd");
    u.rate = learning_rate(b, o, t->first_step + t->steps);
    if (adam)
        c1 = correction(b, "c1", o->beta1, 3 * parameters),
        c2 = correction(b, "c2", o->beta2, 3 * parameters + 1);
    for (uint32_t i = 0; i < parameters && b->status == VD_OK; i++) {
        const uint32_t p = updated(&u, i);
        vd_scope(b, adam ? "adamw.%.54s" : "sgd.%.56s", b->program->leaf[p].name);
        if (adam)
            adamw(b, &u, p, c1, c2);
        else
            sgd(b, &u, p);
    }
}
