/* Programs that tell how likely a text is. */
#include <string.h>

#include "models/model.h"

static vd_value tokens_from(vd_builder *b, const char *name, int64_t start, int64_t count) {
    const vd_value part = vd_slice(b, name, vd_data_value(b, 0), (vd_stretch){0, start, count, 1});
    return vd_reshape(b, name, part, VD_SHAPE(RO_I32, 1, count));
}

static void build_step(vd_builder *b, const vd_training *t, const vd_parameters *all,
                       int64_t count) {
    vd_given_pass pass;
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

static void build_init(vd_builder *b, int64_t count) {
    const ro_shape shape = VD_SHAPE(RO_F32, count);
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "init");
    b->graph->output[0] =
        vd_emit(b, "log_probability", (vd_op){.op = RO_OP_FILL, .shape = &shape}, 0, NULL);
}

static vd_status build(const vd_training *t, const vd_parameters *all, int64_t count,
                       vd_program *out, vd_err *err) {
    vd_builder init = vd_builder_of(out, &out->init), step = vd_builder_of(out, &out->step);
    const ro_shape shape = VD_SHAPE(RO_F32, count);
    vd_add_leaf(&init, "log_probability", &shape);
    if (init.status == VD_OK)
        build_init(&init, count);
    if (init.status == VD_OK)
        build_step(&step, t, all, count);
    const vd_builder *bad = init.status != VD_OK ? &init : &step;
    const vd_status status = bad->status != VD_OK ? vd_fail(err, bad->status, "%s", bad->err.text)
                                                  : vd_check_program(out, "layers", err);
    vd_builder_free(&init);
    vd_builder_free(&step);
    return status;
}

static vd_status check_text(const vd_training *t, int64_t tokens, vd_err *err) {
    const vd_model_type *type = vd_type_of(&t->model);
    vd_training whole = *t;
    whole.sequence = tokens - 1;
    if (!type || !type->rows)
        return vd_fail(err, VD_ERR_USAGE,
                       "the model tells no next token: only gpt2 and the models like llama do");
    if (tokens < 2)
        return vd_fail(err, VD_ERR_USAGE,
                       "a text must have at least 2 tokens: the first is after none");
    return type->check ? type->check(&whole, err) : VD_OK;
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
        status = build(t, &all, text->count - 1, out, err);
    }
    vd_parameters_free(&all);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
