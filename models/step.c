/* The graph of a step: micro-batches, the sums of their gradients, the optimizer. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_elementwise.h"
#include "repops/op_movement.h"
#include "repops/op_reduce.h"
#include "models/model.h"

/* Sums over a range of micro-batches: the loss, then one gradient per parameter or, for an
 * evaluation, how many classes are right. */
typedef struct {
    vd_value value[VD_TRAINED_MAX + 1];
} sums;

/* Values that a step's micro-batches share. Buffers pass from one to the next, in order. */
typedef struct {
    const vd_training *training;
    const vd_parameters *declared;
    vd_value *parameter; /* the value of each parameter */
    vd_value *buffer;
    /* Only for models that hide tokens; NULL and VD_NONE otherwise. */
    const vd_forward *hidden; /* the inputs of a micro-batch */
    vd_value divisor;         /* how many tokens of the step have a loss; 1 if none has */
} step_plan;

/* Returns how many sums there are in addition to the loss. */
static uint32_t sum_count(const step_plan *plan) {
    const vd_training *t = plan->training;
    return t->evaluates ? vd_tells_classes(&t->model) : plan->declared->trained_count;
}

static const char *sum_name(const vd_builder *b, const step_plan *plan, uint32_t i) {
    if (i == 0)
        return "loss";
    return plan->training->evaluates ? "right" : b->program->leaf[i - 1].name;
}

static uint32_t trained_count(const step_plan *plan) {
    return plan->declared->trained_count;
}

static vd_forward read_inputs(vd_builder *b, const step_plan *plan) {
    vd_forward in = vd_read_inputs(b, plan->training);
    in.declared = plan->declared;
    in.parameter = plan->parameter;
    return in;
}

/* ---- one micro-batch is emitted; if there are several, it is the body of a repeat ---- */

static bool is_repeated(const step_plan *plan) {
    return plan->training->micro_batches > 1;
}

static void begin_micro_batches(vd_builder *b, const step_plan *plan) {
    if (is_repeated(plan))
        vd_repeat_begin(b, (uint32_t)plan->training->micro_batches);
}

/* Sets the scope of the sums, a binary tree over the micro-batches: so the result does not depend
 * on the number of workers. */
static void scope_of_sums(vd_builder *b) {
    vd_scope(b, "sum.m%c-%c", VD_NAME_ITERATION, VD_NAME_LAST);
}

static void take_totals(const vd_builder *b, uint32_t count, sums *out) {
    for (uint32_t i = 0; i < count; i++)
        out->value[i] = vd_repeat_total(b, i);
}

/* ---- models that hide tokens: the hidden tokens are counted before the forward pass ---- */

/* Returns the count, or 1 if the step hides no token: then the loss and all gradients are sums of
 * zeros, divided by 1. */
static vd_value at_least_one(vd_builder *b, vd_value count) {
    ro_shape scalar = VD_SHAPE(RO_F32, 1);
    vd_value one = vd_emit(
        b, "one", (vd_op){RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(1)}, &scalar}, 0, NULL);
    vd_value both = VD_EMIT(b, "either", ((vd_op){.op = RO_OP_CONCAT}), count, one);
    return vd_reduce(b, "divisor", RO_OP_REDUCE_MAX, 2, 1, &both);
}

/* Counts the step's hidden tokens: exact below 2^24, and above that the same everywhere. */
static void hide_tokens(vd_builder *b, step_plan *plan, vd_forward *hidden) {
    begin_micro_batches(b, plan);
    *hidden = read_inputs(b, plan);
    const int64_t tokens = ro_shape_numel(vd_shape_of(b, hidden->hidden));
    const vd_value each = vd_reduce(b, "count", RO_OP_REDUCE_SUM, tokens, 1, &hidden->hidden);
    vd_value all = each;
    if (is_repeated(plan)) {
        scope_of_sums(b);
        vd_repeat_sum(b, "count", each);
        vd_repeat_end(b);
        all = vd_repeat_total(b, 0);
    }
    vd_scope(b, "mask");
    plan->divisor = at_least_one(b, all);
    plan->hidden = hidden;
}

static vd_value share_of(vd_builder *b, const step_plan *plan, const vd_forward *in) {
    vd_scope(b, "m%s.mask", vd_micro_name(in->training));
    return VD_EMIT(b, "share", ((vd_op){.op = RO_OP_DIV}), in->hidden, plan->divisor);
}

static void keep_gradients(vd_builder *b, uint32_t trained, sums *out) {
    for (uint32_t i = 0; i < trained; i++) {
        out->value[1 + i] = vd_grad(b, i);
        if (b->status == VD_OK && out->value[1 + i] == VD_NONE)
            vd_builder_fail(b, VD_ERR_USAGE, "%s does not reach the loss",
                            b->program->leaf[i].name);
    }
}

/* Returns the number of losses that a step's mean is over, if all tokens count. */
static double loss_count(const vd_training *t) {
    return (double)(t->model.task == VD_TASK_CLASSES ? t->batch : t->batch * t->sequence);
}

/* Returns one loss per row; *logits are those of vd_pass. */
static vd_value forward(vd_builder *b, const vd_forward *in, vd_value *logits) {
    const vd_model_type *type = vd_type_of(&in->training->model);
    vd_pass pass = {.b = b, .in = in, .logits = VD_NONE};
    const vd_value loss = type->forward ? type->forward(&pass) : vd_next_losses(&pass);
    vd_check_taken(&pass);
    *logits = pass.logits;
    return loss;
}

/* Counts the rows whose label's logit is the largest; of equal ones the first counts. */
static vd_value count_right(vd_builder *b, const vd_forward *in, vd_value logits) {
    vd_scope(b, "m%s.right", vd_micro_name(in->training));
    const ro_shape rows = *vd_shape_of(b, in->targets);
    const int classes = vd_shape_of(b, logits)->ndim - 1;
    const vd_value guess = vd_reshape(b, "guess", vd_argmax(b, logits, classes), rows);
    vd_value right = vd_compare(b, "right", guess, in->targets, RO_EQUAL);
    right = VD_EMIT(b, "right", ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = RO_F32}, NULL}), right);
    return vd_reduce(b, "count", RO_OP_REDUCE_SUM, ro_shape_numel(&rows), 1, &right);
}

static void micro_batch(vd_builder *b, const step_plan *plan, sums *out) {
    vd_forward in = plan->hidden ? *plan->hidden : read_inputs(b, plan);
    in.buffer = plan->buffer;
    /* The factor of each loss in the mean, so that no extra pass divides the gradients. */
    vd_value share = plan->hidden ? share_of(b, plan, &in) : VD_NONE;
    vd_value logits;
    vd_value loss = forward(b, &in, &logits);
    int64_t rows = ro_shape_numel(vd_shape_of(b, loss));
    out->value[0] = vd_reduce(b, "loss_sum", RO_OP_REDUCE_SUM, rows, 1, &loss);
    if (plan->hidden && !plan->training->evaluates)
        vd_backward_from(b, loss, share);
    else if (!plan->training->evaluates)
        vd_backward(b, loss, 1 / (float)loss_count(plan->training));
    keep_gradients(b, trained_count(plan), out);
    if (plan->training->evaluates && sum_count(plan))
        out->value[1] = count_right(b, &in, logits);
}

/* Passes each micro-batch's buffers to the next one; the first one reads `before`. plan->buffer
 * becomes the last one's. */
static void carry_buffers(vd_builder *b, const step_plan *plan, const vd_value *before) {
    const uint32_t count = plan->training->evaluates ? 0 : plan->declared->buffer_count;
    for (uint32_t i = 0; i < count; i++)
        vd_repeat_carry(b, before[i], plan->buffer[i]);
}

static void take_buffers(const vd_builder *b, const step_plan *plan) {
    const uint32_t count = plan->training->evaluates ? 0 : plan->declared->buffer_count;
    for (uint32_t i = 0; i < count; i++)
        plan->buffer[i] = vd_repeat_last(b, plan->buffer[i]);
}

/* Sums the losses and gradients of all micro-batches in *out. `before`: the buffers at first. */
static void all_micro_batches(vd_builder *b, const step_plan *plan, const vd_value *before,
                              sums *out) {
    begin_micro_batches(b, plan);
    micro_batch(b, plan, out);
    if (!is_repeated(plan))
        return;
    scope_of_sums(b);
    for (uint32_t i = 0; i <= sum_count(plan) && b->status == VD_OK; i++)
        vd_repeat_sum(b, sum_name(b, plan, i), out->value[i]);
    carry_buffers(b, plan, before);
    vd_repeat_end(b);
    take_totals(b, sum_count(plan) + 1, out);
    take_buffers(b, plan);
}

static vd_value mean_loss(vd_builder *b, const step_plan *plan, vd_value sum) {
    vd_scope(b, "mean");
    return plan->hidden ? VD_EMIT(b, "loss", ((vd_op){.op = RO_OP_DIV}), sum, plan->divisor)
                        : vd_div_const(b, "loss", sum, loss_count(plan->training));
}

/* Returns a frozen parameter's value. A vector is converted to f32 once per step; products and
 * look-ups read frozen matrices in their stored type. */
static vd_value frozen_value(vd_builder *b, const vd_parameter *p) {
    const vd_value x = vd_data_value(b, p->data);
    if (p->layout != VD_FILE_SAME) {
        vd_scope(b, "frozen");
        return vd_from_tensor(b, p);
    }
    if (p->shape.ndim > 1 || vd_shape_of(b, x)->dtype == RO_F32)
        return x;
    vd_scope(b, "frozen");
    return VD_EMIT(b, p->name, ((vd_op){RO_OP_CAST, {[RO_CAST_DTYPE] = RO_F32}, NULL}), x);
}

void vd_frozen_values(vd_builder *b, const vd_parameters *all, vd_value *parameter) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->parameter[i].frozen)
            parameter[i] = frozen_value(b, &all->parameter[i]);
}

/* Returns a trained parameter's value: bf16 vectors are converted to f32, matrices are not. */
static vd_value trained_value(vd_builder *b, const vd_parameter *p, uint32_t leaf) {
    vd_scope(b, "trained");
    return p->shape.ndim > 1 ? leaf : vd_widened(b, p->name, leaf);
}

static void find_values(vd_builder *b, step_plan *plan) {
    const vd_parameters *all = plan->declared;
    for (uint32_t i = 0; i < all->trained_count; i++)
        plan->parameter[all->trained[i]] = trained_value(b, &all->parameter[all->trained[i]], i);
    vd_frozen_values(b, all, plan->parameter);
}

/* Adds a step's share to the state, which after the last step is the mean over all steps. */
static void add_to(vd_builder *b, uint32_t leaf, const char *name, vd_value x, double parts) {
    vd_scope(b, "mean");
    const vd_value share = vd_div_const(b, "share", x, parts);
    b->graph->output[leaf] = VD_EMIT(b, name, ((vd_op){.op = RO_OP_ADD}), leaf, share);
}

static void add_evaluation(vd_builder *b, const step_plan *plan, const sums *all) {
    const vd_training *t = plan->training;
    add_to(b, 0, "loss_so_far", b->graph->loss, (double)t->steps);
    if (sum_count(plan))
        add_to(b, 1, "accuracy_so_far", all->value[1], (double)t->steps * (double)t->batch);
}

/* Emits a step. `all`, `hidden` and `before` are memory that the caller allocated. */
static void emit_step(vd_builder *b, step_plan *plan, sums *all, vd_forward *hidden,
                      vd_value *before) {
    const vd_training *t = plan->training;
    const uint32_t buffers = b->program->leaf_count - plan->declared->buffer_count;
    for (uint32_t i = buffers; i < b->program->leaf_count; i++)
        b->graph->output[i] = i;
    plan->buffer = b->graph->output + buffers;
    if (t->evaluates)
        plan->buffer = plan->parameter + plan->declared->taken;
    vd_number_steps(b, t->first_step);
    find_values(b, plan);
    if (vd_hides_tokens(&t->model))
        hide_tokens(b, plan, hidden);
    for (uint32_t i = 0; i < plan->declared->buffer_count; i++)
        before[i] = plan->buffer[i];
    all_micro_batches(b, plan, before, all);
    b->graph->loss = mean_loss(b, plan, all->value[0]);
    if (t->evaluates)
        add_evaluation(b, plan, all);
    else
        vd_optimize(b, t, trained_count(plan), all->value + 1);
}

void vd_build_step(vd_builder *b, const vd_training *t, const vd_parameters *declared) {
    step_plan plan = {.training = t, .declared = declared, .divisor = VD_NONE};
    sums *all = calloc(1, sizeof *all);
    vd_forward *hidden = calloc(1, sizeof *hidden);
    plan.parameter = calloc(declared->count + 1, sizeof *plan.parameter);
    vd_value *before = calloc(declared->buffer_count + 1, sizeof *before);
    if (all && hidden && before && plan.parameter)
        emit_step(b, &plan, all, hidden, before);
    else
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
    free(plan.parameter);
    free(all);
    free(hidden);
    free(before);
}
