/* Builds programs that continue a prompt, token by token. */
#include <string.h>

#include "repops/op_movement.h"
#include "models/model.h"

/* Indices of leaves; VD_NONE: the program has no such leaf. */
typedef struct {
    uint32_t text, token, stopped, count, log_probability, best, of_best, seen;
} token_leaves;

typedef struct {
    const vd_training *training;
    const vd_generation *how;
    const vd_parameters *all;
    int64_t rows;   /* rows of the cache that the prompt fills: all tokens but the last */
    int64_t length; /* S: positions in the cache */
    token_leaves leaf;
} generation;

static bool draws(const vd_generation *how) {
    return !how->greedy;
}

/* ---- layout ---- */

static void add_caches(vd_builder *b, const generation *g) {
    static const char *const part[] = {"k", "v"};
    const vd_model *m = &g->training->model;
    char name[VD_NAME_SIZE];
    const ro_shape shape = VD_SHAPE(RO_F32, 1, g->length, vd_kept_width(m));
    for (int64_t i = 0; i < 2 * m->layers; i++) {
        snprintf(name, sizeof name, "h.%lld.%s", (long long)(i / 2), part[i % 2]);
        vd_add_leaf(b, name, &shape);
    }
}

static uint32_t add_words(vd_builder *b, const char *name, int64_t count) {
    const ro_shape shape = VD_SHAPE(RO_I32, count);
    return vd_add_leaf(b, name, &shape);
}

static void add_likely(vd_builder *b, const generation *g, token_leaves *l) {
    const int64_t n = g->how->max_tokens, best = g->how->best;
    const ro_shape each = VD_SHAPE(RO_F32, n);
    ro_shape row = VD_SHAPE(RO_I32, n, best > 0 ? best : 1);
    if (best >= 0)
        l->log_probability = vd_add_leaf(b, "log_probability", &each);
    if (best > 0) {
        l->best = vd_add_leaf(b, "best", &row);
        row.dtype = RO_F32;
        l->of_best = vd_add_leaf(b, "best_log_probability", &row);
    }
}

static void add_leaves(vd_builder *b, generation *g) {
    token_leaves *l = &g->leaf;
    *l = (token_leaves){.log_probability = VD_NONE, .best = VD_NONE, .of_best = VD_NONE};
    add_caches(b, g);
    l->text = add_words(b, "text", g->how->max_tokens);
    l->token = add_words(b, "token", 1);
    l->stopped = add_words(b, "stopped", 1);
    l->count = add_words(b, "count", 1);
    add_likely(b, g, l);
    l->seen =
        g->how->repetition_penalty != 1 ? add_words(b, "seen", g->training->model.vocab) : VD_NONE;
}

/* ---- the first state ---- */

static vd_value zeros(vd_builder *b, const vd_leaf *leaf) {
    ro_shape shape = leaf->shape;
    shape.dtype = RO_F32;
    const vd_value x = vd_emit(b, leaf->name, (vd_op){.op = RO_OP_FILL, .shape = &shape}, 0, NULL);
    const vd_op cast = {RO_OP_CAST, {[RO_CAST_DTYPE] = leaf->shape.dtype}, NULL};
    return leaf->shape.dtype == RO_F32 ? x : VD_EMIT(b, leaf->name, cast, x);
}

/* Emits the keys and values of all tokens of the prompt but the last. The rest of the forward pass
 * is pruned, since nothing reads it. */
static void prefill(vd_builder *b, const generation *g) {
    const vd_value prompt = vd_data_value(b, 0);
    vd_cache cache = {.length = g->length, .first = VD_NONE, .layer = b->graph->output};
    vd_given_pass pass = {0};
    if (g->rows == 0)
        return;
    vd_scope(b, "prompt");
    vd_value tokens = vd_slice(b, "before", prompt, (vd_stretch){0, 0, g->rows, 1});
    tokens = vd_reshape(b, "tokens", tokens, VD_SHAPE(RO_I32, 1, g->rows));
    vd_given_pass_open(b, g->training, g->all, tokens, &cache, &pass);
    if (b->status == VD_OK)
        vd_type_of(&g->training->model)->rows(&pass.pass);
    vd_given_pass_free(&pass);
}

/* Emits whether each token of the vocabulary occurs in the prompt. The number of times is the
 * gradient of gathering the prompt's tokens. */
static vd_value seen_at_first(vd_builder *b, const generation *g) {
    const ro_shape vocab = VD_SHAPE(RO_F32, g->training->model.vocab);
    const ro_shape each = VD_SHAPE(RO_F32, g->rows + 1), one = VD_SHAPE(RO_F32, 1);
    const vd_op times = {RO_OP_GATHER_GRAD, {[RO_GATHER_GRAD_AXIS] = 0}, &vocab};
    vd_scope(b, "seen");
    const vd_value ones =
        vd_emit(b, "ones", (vd_op){RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(1)}, &each}, 0, NULL);
    const vd_value zero = vd_emit(b, "zero", (vd_op){.op = RO_OP_FILL, .shape = &one}, 0, NULL);
    const vd_value count = VD_EMIT(b, "times", times, ones, vd_data_value(b, 0));
    return vd_compare(b, "seen", count, zero, RO_GREATER);
}

static void build_init(vd_builder *b, const generation *g) {
    const uint32_t caches = 2 * (uint32_t)g->training->model.layers;
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    prefill(b, g);
    vd_scope(b, "init");
    for (uint32_t i = g->rows ? caches : 0; i < b->program->leaf_count; i++)
        b->graph->output[i] = zeros(b, &b->program->leaf[i]);
    b->graph->output[g->leaf.token] =
        vd_slice(b, "last", vd_data_value(b, 0), (vd_stretch){0, g->rows, 1, 1});
    if (g->leaf.seen != VD_NONE)
        b->graph->output[g->leaf.seen] = seen_at_first(b, g);
    vd_prune(b);
}

/* ---- a step ---- */

/* Values of a step. Leaves need none: their indices are values. */
typedef struct {
    vd_value nowhere, one; /* i32 [1]: -1, 1 */
    vd_value first;        /* i32 [1]: position of the step's input token */
    vd_value token;        /* i32 [1]: the token that the step makes */
    vd_value row;          /* i32 [1]: its index among the new tokens */
} token_step;

/* Returns `at`, or `nowhere` after a stop. */
static vd_value unless_stopped(vd_builder *b, const generation *g, const token_step *s,
                               const char *name, vd_value at) {
    return vd_where(b, name, g->leaf.stopped, s->nowhere, at);
}

/* Emits the logits of the next token, f32 [1, V]. */
static vd_value next_logits(vd_builder *b, const generation *g, const token_step *s) {
    const vd_model *m = &g->training->model;
    const vd_value place = unless_stopped(b, g, s, "place", s->first);
    vd_cache cache = {g->length, s->first, place, b->graph->output};
    vd_given_pass pass = {0};
    vd_value x = 0;
    for (uint32_t i = 0; i < 2 * (uint32_t)m->layers; i++)
        b->graph->output[i] = i;
    const vd_value token = vd_reshape(b, "token", g->leaf.token, VD_SHAPE(RO_I32, 1, 1));
    vd_given_pass_open(b, g->training, g->all, token, &cache, &pass);
    if (b->status == VD_OK) {
        const vd_model_type *type = vd_type_of(m);
        x = type->logits(&pass.pass, type->rows(&pass.pass));
        vd_check_taken(&pass.pass);
    }
    vd_given_pass_free(&pass);
    return vd_reshape(b, "row", x, VD_SHAPE(RO_F32, 1, m->vocab));
}

/* Emits i32 [1]: 1 if the token is a stop, as a sum of comparisons with all stops, which differ. */
static vd_value is_stop(vd_builder *b, const generation *g, const token_step *s) {
    vd_value hit = VD_NONE;
    for (int64_t i = 0; i < g->how->stop_count; i++) {
        const vd_value stop = vd_whole(b, "stop", g->how->stop[i]);
        const vd_value here = vd_compare(b, "is_stop", s->token, stop, RO_EQUAL);
        hit = hit == VD_NONE ? here : vd_iadd(b, "hit", hit, here);
    }
    return hit;
}

static void put_token(vd_builder *b, const generation *g, const token_step *s) {
    const token_leaves *l = &g->leaf;
    vd_value *out = b->graph->output;
    vd_scope(b, "next");
    out[l->text] = vd_put_rows(b, "text", l->text, s->token, s->row, 0);
    out[l->token] = vd_where(b, "token", l->stopped, l->token, s->token);
    out[l->count] =
        vd_where(b, "count", l->stopped, l->count, vd_iadd(b, "more", l->count, s->one));
    out[l->stopped] = g->how->stop_count
                          ? vd_where(b, "stopped", l->stopped, l->stopped, is_stop(b, g, s))
                          : vd_reshape(b, "stopped", l->stopped, VD_SHAPE(RO_I32, 1));
    if (l->seen == VD_NONE)
        return;
    const vd_value at = unless_stopped(b, g, s, "seen_at", s->token);
    out[l->seen] = vd_put_rows(b, "seen", l->seen, s->one, at, 0);
}

static void put_likely(vd_builder *b, const generation *g, const token_step *s,
                       const vd_choosing *c) {
    const token_leaves *l = &g->leaf;
    vd_value *out = b->graph->output;
    if (l->log_probability == VD_NONE)
        return;
    const vd_likely likely = vd_tell_likely(b, c, s->token);
    vd_scope(b, "next");
    out[l->log_probability] =
        vd_put_rows(b, "log_probability", l->log_probability, likely.chosen, s->row, 0);
    if (l->best == VD_NONE)
        return;
    out[l->best] = vd_put_rows(b, "best", l->best, likely.best, s->row, 0);
    out[l->of_best] =
        vd_put_rows(b, "best_log_probability", l->of_best, likely.best_chosen, s->row, 0);
}

static void build_step(vd_builder *b, const generation *g) {
    token_step s;
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    const vd_value step = vd_step_value(b);
    vd_scope(b, "step");
    s.nowhere = vd_whole(b, "nowhere", -1);
    s.one = vd_whole(b, "one", 1);
    s.first = vd_iadd(b, "first", step, vd_whole(b, "before", g->rows));
    vd_choosing c = {.how = g->how, .step = step, .first = s.first, .seen = g->leaf.seen};
    c.logits = next_logits(b, g, &s);
    c.key = draws(g->how) ? vd_data_value(b, 1) : VD_NONE;
    s.token = vd_choose_token(b, &c);
    vd_scope(b, "next");
    s.row = unless_stopped(b, g, &s, "row", step);
    put_token(b, g, &s);
    put_likely(b, g, &s, &c);
}

/* ---- the program ---- */

static vd_status check_generation(const vd_training *t, const generation *g, vd_err *err) {
    const vd_model_type *type = vd_type_of(&t->model);
    vd_training longest = *t;
    longest.sequence = g->length;
    if (!type || !type->rows)
        return vd_fail(err, VD_ERR_USAGE,
                       "the model makes no text: only gpt2 and the models like llama do");
    if (type == &vd_gpt2 && g->length > t->model.context)
        return vd_fail(err, VD_ERR_USAGE,
                       "a prompt of %lld tokens and max_tokens (%lld) take %lld positions, and the "
                       "model has %lld",
                       (long long)g->rows + 1, (long long)g->how->max_tokens, (long long)g->length,
                       (long long)t->model.context);
    for (int64_t i = 0; i < g->how->stop_count; i++)
        if (g->how->stop[i] >= t->model.vocab)
            return vd_fail(err, VD_ERR_USAGE, "stop: %lld is no token of a vocabulary of %lld",
                           (long long)g->how->stop[i], (long long)t->model.vocab);
    return type->check ? type->check(&longest, err) : VD_OK;
}

static void put_words(vd_data *to, const char *name, int64_t count, const uint8_t root[32]) {
    snprintf(to->tensor.name, sizeof to->tensor.name, "%s", name);
    to->tensor.shape = VD_SHAPE(RO_I32, count);
    memcpy(to->root, root, sizeof to->root);
}

static vd_status describe(const generation *g, const vd_prompt_form *prompt, vd_program *p,
                          vd_err *err) {
    const uint32_t own = 1 + draws(g->how);
    p->seed = draws(g->how) ? g->how->seed : 0;
    p->steps = g->how->max_tokens;
    p->checkpoint_interval = 1;
    vd_status status = vd_put_given(g->training, own, g->all, p, err);
    if (status != VD_OK)
        return status;
    put_words(&p->data[0], "prompt", prompt->count, prompt->root);
    vd_state_range(&p->data[0], 0, g->training->model.vocab - 1);
    if (draws(g->how))
        put_words(&p->data[1], VD_PROMPT_KEY, 2, prompt->key_root);
    return VD_OK;
}

static vd_status build(generation *g, vd_program *out, vd_err *err) {
    vd_builder init = vd_builder_of(out, &out->init), step = vd_builder_of(out, &out->step);
    add_leaves(&init, g);
    if (init.status == VD_OK)
        build_init(&init, g);
    if (init.status == VD_OK)
        build_step(&step, g);
    const vd_builder *bad = init.status != VD_OK ? &init : &step;
    const vd_status status = bad->status != VD_OK ? vd_fail(err, bad->status, "%s", bad->err.text)
                                                  : vd_check_program(out, "layers", err);
    vd_builder_free(&init);
    vd_builder_free(&step);
    return status;
}

vd_status vd_generation_program(const vd_training *t, const vd_generation *how,
                                const vd_prompt_form *prompt, vd_program *out, vd_err *err) {
    vd_parameters all = {0};
    generation g = {.training = t, .how = how, .all = &all, .rows = prompt->count - 1};
    g.length = g.rows + how->max_tokens;
    *out = (vd_program){0};
    vd_status status = check_generation(t, &g, err);
    if (status == VD_OK)
        status = vd_given_parameters(t, 1 + draws(how), &all, err);
    if (status == VD_OK)
        status = describe(&g, prompt, out, err);
    if (status == VD_OK)
        status = build(&g, out, err);
    vd_parameters_free(&all);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
