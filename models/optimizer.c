/* Optimizers as graph nodes: clipping, learning rate, updates. SPEC 9. */
#include "models/model.h"

/* 1, or what brings the global norm down to the limit. */
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

/* Vectors (biases, norms) are not decayed unless the job says so. */
static int64_t decay_of(const vd_optimizer *o, const vd_leaf *leaf) {
    return ro_attr_f32(o->decay_all || leaf->shape.ndim > 1 ? o->weight_decay : 0);
}

/* The inputs of all updates of a step. */
typedef struct {
    uint32_t parameters;
    const vd_value *gradient;
    vd_value scale, rate;
} update;

/* AdamW (Loshchilov & Hutter, 2019). */
static void adamw(vd_builder *b, const vd_optimizer *o, const update *u) {
    const uint32_t n = u->parameters;
    vd_value *output = b->graph->output;
    vd_value c1 = correction(b, "c1", o->beta1, 3 * n);
    vd_value c2 = correction(b, "c2", o->beta2, 3 * n + 1);
    for (uint32_t i = 0; i < n && b->status == VD_OK; i++) {
        const vd_leaf *leaf = &b->program->leaf[i];
        uint32_t m = n + i, v = 2 * n + i;
        vd_scope(b, "adamw.%.54s", leaf->name);
        vd_op op = {RO_OP_ADAMW_M, {[RO_ADAMW_M_BETA] = ro_attr_f32(o->beta1)}, NULL};
        output[m] = VD_EMIT(b, "m", op, m, u->gradient[i], u->scale);
        op = (vd_op){RO_OP_ADAMW_V, {[RO_ADAMW_V_BETA] = ro_attr_f32(o->beta2)}, NULL};
        output[v] = VD_EMIT(b, "v", op, v, u->gradient[i], u->scale);
        op = (vd_op){
            RO_OP_ADAMW_W,
            {[RO_ADAMW_W_EPS] = ro_attr_f32(o->eps), [RO_ADAMW_W_DECAY] = decay_of(o, leaf)},
            NULL};
        output[i] = VD_EMIT(b, "w", op, i, output[m], output[v], c1, c2, u->rate);
    }
}

/* SGD with momentum, and Nesterov's (Sutskever et al., 2013) if wanted; decay is part of the
 * gradient. */
static void sgd(vd_builder *b, const vd_optimizer *o, const update *u) {
    vd_value *output = b->graph->output;
    for (uint32_t i = 0; i < u->parameters && b->status == VD_OK; i++) {
        const vd_leaf *leaf = &b->program->leaf[i];
        uint32_t m = u->parameters + i;
        vd_op op = {
            RO_OP_SGD_M,
            {[RO_SGD_M_MOMENTUM] = ro_attr_f32(o->momentum), [RO_SGD_M_DECAY] = decay_of(o, leaf)},
            NULL};
        vd_scope(b, "sgd.%.56s", leaf->name);
        output[m] = VD_EMIT(b, "m", op, m, u->gradient[i], i, u->scale);
        op.op = RO_OP_SGD_NESTEROV;
        output[i] = o->nesterov
                        ? VD_EMIT(b, "w", op, i, output[m], u->gradient[i], u->scale, u->rate)
                        : VD_EMIT(b, "w", ((vd_op){.op = RO_OP_SGD_W}), i, output[m], u->rate);
    }
}

static bool is_adamw(const vd_optimizer *o) {
    return o->kind == VD_OPTIMIZER_ADAMW;
}

void vd_optimizer_leaves(vd_builder *b, const vd_optimizer *o, const vd_parameters *all) {
    static const char *const suffix[] = {"", ".m", ".v"};
    for (int kind = 0; kind < (is_adamw(o) ? 3 : 2); kind++)
        for (uint32_t i = 0; i < all->trained_count; i++) {
            const vd_parameter *p = &all->parameter[all->trained[i]];
            char name[VD_NAME_SIZE];
            snprintf(name, sizeof name, "%s%s", p->name, suffix[kind]);
            vd_add_leaf(b, name, &p->shape);
        }
    if (!is_adamw(o))
        return;
    ro_shape one = VD_SHAPE(RO_F32, 1);
    vd_add_leaf(b, "adamw.c1", &one);
    vd_add_leaf(b, "adamw.c2", &one);
}

void vd_optimize(vd_builder *b, const vd_optimizer *o, int64_t steps, uint32_t parameters,
                 const vd_value *gradient) {
    update u = {.parameters = parameters, .gradient = gradient};
    u.scale = clip(b, o, parameters, gradient);
    vd_scope(b, is_adamw(o) ? "adamw" : "sgd");
    u.rate = learning_rate(b, o, steps);
    if (is_adamw(o))
        adamw(b, o, &u);
    else
        sgd(b, o, &u);
}
