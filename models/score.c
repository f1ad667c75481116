/* Builds programs that tell how likely a text is, or the classes of an input. */
#include <string.h>

#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "models/model.h"

static vd_value tokens_from(vd_builder *b, const char *name, int64_t start, int64_t count) {
    const vd_value part = vd_slice(b, name, vd_data_value(b, 0), (vd_stretch){0, start, count, 1});
    return vd_reshape(b, name, part, VD_SHAPE(RO_I32, 1, count));
}

static void build_step(vd_builder *b, const vd_training *t, const vd_parameters *all,
                       int64_t count) {
    vd_given_pass pass = {0};
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "text");
    const vd_value tokens = tokens_from(b, "tokens", 0, count);
    const vd_value targets = tokens_from(b, "targets", 1, count);
    vd_given_pass_open(b, t, all, tokens, NULL, &pass);
    pass.in.targets = targets;
    if (b->status == VD_OK) {
        const vd_value loss = vd_next_losses(&pass.pass);
        const vd_value sum = vd_reduce(b, "loss_sum", RO_OP_REDUCE_SUM, count, 1, &loss);
        vd_check_taken(&pass.pass);
        vd_scope(b, "score");
        b->graph->loss = vd_div_const(b, "loss", sum, (double)count);
        b->graph->output[0] = vd_scale(b, "log_probability",
                                       vd_reshape(b, "each", loss, VD_SHAPE(RO_F32, count)), -1);
    }
    vd_given_pass_free(&pass);
}

/* ---- classes ---- */

/* Builds the step. The forward pass also ends with a loss, for any label, which nothing reads. */
static void build_class_step(vd_builder *b, const vd_training *t, const vd_parameters *all) {
    const vd_model *m = &t->model;
    const vd_model_type *type = vd_type_of(m);
    const ro_shape row = VD_SHAPE(RO_F32, 1, vd_classes_of(m));
    const ro_shape whole = VD_SHAPE(RO_F32, vd_classes_of(m));
    const vd_value given = vd_data_value(b, 0);
    vd_given_pass pass = {0};
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "given");
    const vd_value in =
        type->images
            ? vd_given_image(b, m, given)
            : vd_reshape(b, "tokens", given, VD_SHAPE(RO_I32, 1, vd_shape_of(b, given)->dim[0]));
    const vd_value label = vd_whole(b, "any", 0);
    vd_given_pass_open(b, t, all, in, NULL, &pass);
    pass.in.targets = label;
    if (b->status == VD_OK) {
        type->forward(&pass.pass);
        vd_check_taken(&pass.pass);
        vd_scope(b, "score");
        const vd_value logits = vd_reshape(b, "row", pass.pass.logits, row);
        b->graph->output[0] = vd_reshape(b, "classes", vd_log_softmax(b, logits), whole);
    }
    vd_given_pass_free(&pass);
    vd_prune(b);
}

/* ---- the program ---- */

static void build_init(vd_builder *b) {
    const vd_leaf *leaf = &b->program->leaf[0];
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "init");
    b->graph->output[0] =
        vd_emit(b, leaf->name, (vd_op){.op = RO_OP_FILL, .shape = &leaf->shape}, 0, NULL);
}

static vd_status build(const vd_training *t, const vd_parameters *all, int64_t count,
                       vd_program *out, vd_err *err) {
    vd_builder init = vd_builder_of(out, &out->init), step = vd_builder_of(out, &out->step);
    const bool classes = vd_tells_classes(&t->model);
    const ro_shape shape = VD_SHAPE(RO_F32, classes ? vd_classes_of(&t->model) : count);
    vd_add_leaf(&init, classes ? VD_CLASSES_LEAF : "log_probability", &shape);
    if (init.status == VD_OK)
        build_init(&init);
    if (init.status == VD_OK && classes)
        build_class_step(&step, t, all);
    else if (init.status == VD_OK)
        build_step(&step, t, all, count);
    const vd_builder *bad = init.status != VD_OK ? &init : &step;
    const vd_status status = bad->status != VD_OK ? vd_fail(err, bad->status, "%s", bad->err.text)
                                                  : vd_check_program(out, "layers", err);
    vd_builder_free(&init);
    vd_builder_free(&step);
    return status;
}

static vd_status check_classes(const vd_training *t, int64_t count, vd_err *err) {
    const vd_model *m = &t->model;
    const int64_t bytes = VD_IMAGE_PLANES * m->image * m->image;
    if (vd_type_of(m)->images && count != bytes)
        return vd_fail(err, VD_ERR_USAGE, "an image must have %lld bytes, got %lld",
                       (long long)bytes, (long long)count);
    return VD_OK;
}

/* Checks the length. The last token is only predicted, so it needs no position. */
static vd_status check_length(const vd_training *t, int64_t tokens, vd_err *err) {
    const vd_model *m = &t->model;
    if (vd_type_of(m) != &vd_gpt2 || tokens - 1 <= m->context)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE,
                   "a text that is scored must have at most %lld tokens, one more than the model's "
                   "context, got %lld",
                   (long long)m->context + 1, (long long)tokens);
}

static vd_status check_text(const vd_training *t, int64_t tokens, vd_err *err) {
    const vd_model_type *type = vd_type_of(&t->model);
    const bool classes = type && vd_tells_classes(&t->model);
    vd_training whole = *t;
    whole.sequence = !classes ? tokens - 1 : type->images ? 1 : tokens;
    if (!type || (!type->rows && !classes))
        return vd_fail(err, VD_ERR_USAGE, "the model tells neither next tokens nor classes");
    if (!classes && tokens < 2)
        return vd_fail(err, VD_ERR_USAGE,
                       "a text must have at least 2 tokens: the first is after none");
    vd_status status = classes ? check_classes(t, tokens, err) : check_length(t, tokens, err);
    return status == VD_OK && type->check ? type->check(&whole, err) : status;
}

vd_status vd_score_program(const vd_training *t, const vd_prompt_form *text, vd_program *out,
                           vd_err *err) {
    vd_parameters all = {0};
    *out = (vd_program){.steps = 1, .checkpoint_interval = 1};
    vd_status status = check_text(t, text->count, err);
    if (status == VD_OK)
        status = vd_given_parameters(t, 1, &all, err);
    if (status == VD_OK)
        status = vd_put_given(t, 1, &all, out, err);
    if (status == VD_OK) {
        snprintf(out->data[0].tensor.name, VD_NAME_SIZE, "text");
        out->data[0].tensor.shape = VD_SHAPE(RO_I32, text->count);
        memcpy(out->data[0].root, text->root, sizeof out->data[0].root);
        vd_state_range(&out->data[0], 0,
                       vd_type_of(&t->model)->images ? UINT8_MAX : t->model.vocab - 1);
        status = build(t, &all, text->count - 1, out, err);
    }
    vd_parameters_free(&all);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
