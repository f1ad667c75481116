/* From a model and a recipe to a program: layout, initialisation, micro-batches. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "models/model.h"

static const vd_model_type *type_of_kind(vd_model_kind kind) {
    switch (kind) {
    case VD_MODEL_GPT2: return &vd_gpt2;
    case VD_MODEL_LLAMA: return &vd_llama;
    case VD_MODEL_MLP: return &vd_mlp;
    case VD_MODEL_RESNET: return &vd_resnet;
    case VD_MODEL_BERT: return &vd_bert;
    }
    return NULL;
}

static const vd_model_type *type_of(const vd_model *model) {
    return type_of_kind(model->kind);
}

int64_t vd_layers_max(vd_model_kind kind) {
    const vd_model_type *type = type_of_kind(kind);
    return type ? type->layers_max : 0;
}

void vd_declare(vd_parameters *out, ro_shape shape, float deviation, float value,
                const char *format, ...) {
    if (out->count >= VD_PARAMETERS_MAX)
        return;
    vd_parameter *p = &out->parameter[out->count++];
    *p = (vd_parameter){.shape = shape, .deviation = deviation, .value = value};
    va_list args;
    va_start(args, format);
    vsnprintf(p->name, sizeof p->name, format, args);
    va_end(args);
}

void vd_declare_buffer(vd_parameters *out, ro_shape shape, float value, const char *format, ...) {
    if (out->buffer_count >= VD_PARAMETERS_MAX)
        return;
    vd_parameter *p = &out->buffer[out->buffer_count++];
    *p = (vd_parameter){.shape = shape, .value = value};
    va_list args;
    va_start(args, format);
    vsnprintf(p->name, sizeof p->name, format, args);
    va_end(args);
}

void vd_declare_linear(vd_parameters *out, int64_t from, int64_t to, float deviation,
                       const char *format, ...) {
    char name[VD_NAME_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    vd_declare(out, VD_SHAPE(RO_F32, from, to), deviation, 0, "%s.weight", name);
    vd_declare(out, VD_SHAPE(RO_F32, to), 0, 0, "%s.bias", name);
}

void vd_declare_norm(vd_parameters *out, int64_t width, const char *format, ...) {
    char name[VD_NAME_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    vd_declare(out, VD_SHAPE(RO_F32, width), 0, 1, "%s.gamma", name);
    vd_declare(out, VD_SHAPE(RO_F32, width), 0, 0, "%s.beta", name);
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

float vd_he_deviation(int64_t fan_in) {
    double n = 2.0 / (double)fan_in, r = 1;
    for (int i = 0; i < 64; i++)
        r = 0.5 * (r + n / r);
    return (float)r;
}

static void free_parameters(vd_parameters *all) {
    free(all->parameter);
    free(all->buffer);
}

static vd_status declare(const vd_model *model, vd_parameters *out, vd_err *err) {
    *out = (vd_parameters){.parameter = calloc(VD_PARAMETERS_MAX, sizeof(vd_parameter)),
                           .buffer = calloc(VD_PARAMETERS_MAX, sizeof(vd_parameter))};
    if (!out->parameter || !out->buffer) {
        free_parameters(out);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    type_of(model)->declare(model, out);
    return VD_OK;
}

int64_t vd_record_size(const vd_model *model) {
    return type_of(model)->images ? 1 + VD_IMAGE_PLANES * model->image * model->image : 0;
}

int64_t vd_model_parameters(const vd_model *model) {
    vd_parameters all;
    int64_t sum = 0;
    if (declare(model, &all, NULL) != VD_OK)
        return 0;
    for (uint32_t i = 0; i < all.count; i++)
        sum += ro_shape_numel(&all.parameter[i].shape);
    free_parameters(&all);
    return sum;
}

/* After all that the optimizer keeps. */
static void add_buffers(vd_builder *b, const vd_parameters *all) {
    for (uint32_t i = 0; i < all->buffer_count; i++)
        vd_add_leaf(b, all->buffer[i].name, &all->buffer[i].shape);
}

static vd_value initial(vd_builder *b, const vd_training *t, const vd_parameter *p,
                        uint32_t index) {
    vd_op op = {RO_OP_FILL, {ro_attr_f32(p->value)}, &p->shape};
    if (p->deviation != 0)
        op = (vd_op){
            RO_OP_NORMAL,
            {(int64_t)t->seed, VD_STREAM_INIT(index), ro_attr_f32(0), ro_attr_f32(p->deviation)},
            &p->shape};
    return vd_emit(b, p->name, op, 0, NULL);
}

static vd_status allocate_outputs(vd_builder *b) {
    b->graph->output = calloc(b->program->leaf_count, sizeof *b->graph->output);
    return b->graph->output ? VD_OK : vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
}

static void build_init(vd_builder *b, const vd_training *t, const vd_parameters *all) {
    if (allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "init");
    const uint32_t buffers = b->program->leaf_count - all->buffer_count;
    for (uint32_t i = 0; i < b->program->leaf_count; i++) {
        const vd_leaf *leaf = &b->program->leaf[i];
        vd_op zero = {.op = RO_OP_FILL, .shape = &leaf->shape};
        b->graph->output[i] = i < all->count ? initial(b, t, &all->parameter[i], i)
                              : i >= buffers ? initial(b, t, &all->buffer[i - buffers], i)
                                             : vd_emit(b, leaf->name, zero, 0, NULL);
    }
}

static vd_value read_batch(vd_builder *b, const char *name, const vd_training *t, int64_t micro,
                           int64_t shift) {
    int64_t rows = t->batch / t->micro_batches;
    ro_shape shape = VD_SHAPE(RO_I32, rows, t->sequence);
    vd_op op = {RO_OP_READ_BATCH,
                {(int64_t)t->seed, VD_STREAM_BATCH, t->batch, micro * rows, shift},
                &shape};
    return VD_EMIT(b, name, op, vd_data_value(b, 0), vd_step_value(b));
}

/* Bytes 0 to 255 become -2 to 1.98, exactly. */
static vd_value read_records(vd_builder *b, const char *name, const vd_training *t, int64_t micro,
                             int op, int64_t offset) {
    const vd_model *m = &t->model;
    int64_t rows = t->batch / t->micro_batches;
    ro_shape shape = op == RO_OP_READ_IMAGES
                         ? VD_SHAPE(RO_F32, rows, m->image, m->image, VD_IMAGE_PLANES)
                         : VD_SHAPE(RO_I32, rows);
    vd_op node = {op,
                  {(int64_t)t->seed, VD_STREAM_BATCH, t->batch, micro * rows, vd_record_size(m),
                   offset, 0, 0},
                  &shape};
    if (op == RO_OP_READ_IMAGES)
        node.attr[6] = ro_attr_f32(0x1p-6f), node.attr[7] = ro_attr_f32(-2);
    return VD_EMIT(b, name, node, vd_data_value(b, 0), vd_step_value(b));
}

/* Sums over a range of micro-batches: the loss, then one gradient per parameter. */
typedef struct {
    vd_value value[VD_PARAMETERS_MAX + 1];
} sums;

/* Shared by all micro-batches of a step. Buffers go from one micro-batch to the next, in order. */
typedef struct {
    const vd_training *training;
    uint32_t parameters;
    vd_value *buffer;
    /* Only for models that hide tokens; else NULL and VD_NONE. */
    const vd_forward *hidden; /* what each micro-batch reads */
    vd_value divisor;         /* how many tokens of the step have a loss; 1 if none has */
} step_plan;

static vd_forward read_inputs(vd_builder *b, const vd_training *t, int64_t micro) {
    const vd_model_type *type = type_of(&t->model);
    vd_forward in = {.training = t, .micro_batch = micro};
    vd_scope(b, "m%lld.batch", (long long)micro);
    if (type->images) {
        in.tokens = read_records(b, "images", t, micro, RO_OP_READ_IMAGES, 1);
        in.targets = read_records(b, "labels", t, micro, RO_OP_READ_LABELS, 0);
        return in;
    }
    in.tokens = read_batch(b, "tokens", t, micro, 0);
    if (type->hide)
        type->hide(b, &in);
    else
        in.targets = read_batch(b, "targets", t, micro, 1);
    return in;
}

/* ---- models that hide tokens: the data and the mask tell how many before the forward pass ---- */

/* 1 for a step in which nothing is hidden: then the loss and all gradients are sums of zeros. */
static vd_value at_least_one(vd_builder *b, vd_value count) {
    ro_shape scalar = VD_SHAPE(RO_F32, 1);
    vd_value one = vd_emit(b, "one", (vd_op){RO_OP_FILL, {ro_attr_f32(1)}, &scalar}, 0, NULL);
    vd_value both = VD_EMIT(b, "either", ((vd_op){.op = RO_OP_CONCAT}), count, one);
    return vd_reduce(b, "divisor", RO_OP_REDUCE_MAX, 2, 1, &both);
}

/* Exact below 2^24 tokens, and above that the same sum everywhere. */
static void hide_tokens(vd_builder *b, step_plan *plan, vd_forward *hidden) {
    const vd_training *t = plan->training;
    vd_value sum = VD_NONE;
    for (int64_t i = 0; i < t->micro_batches; i++) {
        hidden[i] = read_inputs(b, t, i);
        const int64_t tokens = ro_shape_numel(vd_shape_of(b, hidden[i].hidden));
        vd_value count = vd_reduce(b, "count", RO_OP_REDUCE_SUM, tokens, 1, &hidden[i].hidden);
        sum = i == 0 ? count : VD_EMIT(b, "count_sum", ((vd_op){.op = RO_OP_ADD}), sum, count);
    }
    vd_scope(b, "mask");
    plan->divisor = at_least_one(b, sum);
    plan->hidden = hidden;
}

static vd_value share_of(vd_builder *b, const step_plan *plan, const vd_forward *in) {
    vd_scope(b, "m%lld.mask", (long long)in->micro_batch);
    return VD_EMIT(b, "share", ((vd_op){.op = RO_OP_DIV}), in->hidden, plan->divisor);
}

/* Canonical bytes of the nodes from `first` on; 0 if there is no memory, as in a program that fits.
 */
static int64_t bytes_from(const vd_builder *b, uint32_t first) {
    vd_buf bytes = {0};
    for (uint32_t i = first; i < b->graph->node_count; i++)
        vd_node_encode(b->program, b->graph, i, &bytes);
    const int64_t size = vd_buf_ok(&bytes) ? (int64_t)bytes.size : 0;
    vd_buf_free(&bytes);
    return size;
}

/* At most so many, of the nodes that add a micro-batch's loss and gradients to a sum. */
static int64_t bytes_of_sums(const vd_builder *b, uint32_t parameters) {
    int64_t bytes = 64; /* the loss */
    for (uint32_t i = 0; i < parameters; i++)
        bytes += 40 + (int64_t)strlen(b->program->leaf[i].name) +
                 8 * (int64_t)b->program->leaf[i].shape.ndim;
    return bytes;
}

static int64_t quotient(int64_t a, int64_t b) {
    return a > 0 ? a / b : 0;
}

/* Every micro-batch has as many nodes as the first, and one for each sum that it joins. What will
 * not fit is said before it is built. An update has two to eight nodes for each parameter, of at
 * most 128 bytes. */
static void check_room(vd_builder *b, const step_plan *plan, uint32_t first) {
    const vd_training *t = plan->training;
    const int64_t parameters = plan->parameters, others = t->micro_batches - 1;
    const int64_t each = b->graph->node_count - first + parameters + 1;
    const int64_t bytes = bytes_from(b, first),
                  bytes_each = bytes + bytes_of_sums(b, plan->parameters);
    const int64_t room = VD_NODES_MAX - (int64_t)b->graph->node_count;
    const int64_t bytes_room = VD_PROGRAM_BYTES_MAX - bytes;
    if (others * each + 2 * parameters <= room && others * bytes <= bytes_room)
        return;
    const int64_t by_nodes = quotient(room - 8 * parameters, each);
    const int64_t by_bytes = quotient(bytes_room - 8 * 128 * parameters, bytes_each);
    vd_builder_fail(b, VD_ERR_USAGE,
                    "micro_batches must be at most %lld with so many %s, got %lld: each makes the "
                    "graph of a step longer by %lld nodes, of at most %d in %d MiB",
                    1 + (long long)(by_nodes < by_bytes ? by_nodes : by_bytes),
                    type_of(&t->model)->images ? "blocks" : "layers", (long long)t->micro_batches,
                    (long long)each, VD_NODES_MAX, VD_PROGRAM_BYTES_MAX >> 20);
}

static void micro_batch(vd_builder *b, const step_plan *plan, int64_t micro, sums *out) {
    const vd_training *t = plan->training;
    const uint32_t parameters = plan->parameters;
    vd_forward in = plan->hidden ? plan->hidden[micro] : read_inputs(b, t, micro);
    in.buffer = plan->buffer;
    /* Each loss's factor in the mean: with it, no pass of its own divides the gradients. */
    vd_value share = plan->hidden ? share_of(b, plan, &in) : VD_NONE;
    const uint32_t before = b->graph->node_count;
    vd_value loss = type_of(&t->model)->forward(b, &in);
    int64_t rows = ro_shape_numel(vd_shape_of(b, loss));
    out->value[0] = vd_reduce(b, "loss_sum", RO_OP_REDUCE_SUM, rows, 1, &loss);
    if (plan->hidden)
        vd_backward_from(b, loss, share);
    else
        vd_backward(b, loss, 1 / (float)(t->batch * t->sequence));
    for (uint32_t i = 0; i < parameters; i++) {
        out->value[1 + i] = vd_grad(b, i);
        if (b->status == VD_OK && out->value[1 + i] == VD_NONE)
            vd_builder_fail(b, VD_ERR_USAGE, "%s does not reach the loss",
                            b->program->leaf[i].name);
    }
    if (micro == 0)
        check_room(b, plan, before);
}

/* A binary tree over micro-batches [lo, hi), split at the largest power of two below their number:
 * the number of workers is never part of the result, and log2 n + 1 sums are alive at most. */
static void accumulate(vd_builder *b, const step_plan *plan, int64_t lo, int64_t hi, sums *out) {
    if (hi - lo == 1) {
        micro_batch(b, plan, lo, out);
        return;
    }
    int64_t half = 1;
    while (2 * half < hi - lo)
        half *= 2;
    sums *right = malloc(sizeof *right);
    if (!right) {
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
        return;
    }
    accumulate(b, plan, lo, lo + half, out);
    accumulate(b, plan, lo + half, hi, right);
    vd_scope(b, "sum.m%lld-%lld", (long long)lo, (long long)hi - 1);
    for (uint32_t i = 0; i <= plan->parameters && b->status == VD_OK; i++)
        out->value[i] = VD_EMIT(b, i ? b->program->leaf[i - 1].name : "loss",
                                ((vd_op){.op = RO_OP_ADD}), out->value[i], right->value[i]);
    free(right);
}

/* `hidden` has room for what each micro-batch reads. */
static void emit_step(vd_builder *b, const vd_training *t, const vd_parameters *declared, sums *all,
                      vd_forward *hidden) {
    const uint32_t buffers = b->program->leaf_count - declared->buffer_count;
    for (uint32_t i = buffers; i < b->program->leaf_count; i++)
        b->graph->output[i] = i;
    step_plan plan = {t, declared->count, b->graph->output + buffers, NULL, VD_NONE};
    if (type_of(&t->model)->hide)
        hide_tokens(b, &plan, hidden);
    accumulate(b, &plan, 0, t->micro_batches, all);
    vd_scope(b, "mean");
    b->graph->loss =
        plan.hidden ? VD_EMIT(b, "loss", ((vd_op){.op = RO_OP_DIV}), all->value[0], plan.divisor)
                    : vd_div_const(b, "loss", all->value[0], (double)(t->batch * t->sequence));
    vd_optimize(b, &t->optimizer, t->steps, declared->count, all->value + 1);
}

static void build_step(vd_builder *b, const vd_training *t, const vd_parameters *declared) {
    sums *all = calloc(1, sizeof *all);
    vd_forward *hidden = calloc((size_t)t->micro_batches, sizeof *hidden);
    if (all && hidden && allocate_outputs(b) == VD_OK)
        emit_step(b, t, declared, all, hidden);
    else
        vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
    free(all);
    free(hidden);
}

static vd_status check(const vd_training *t, vd_err *err) {
    if (!type_of(&t->model))
        return vd_fail(err, VD_ERR_USAGE, "no model of kind %d", (int)t->model.kind);
    if (t->micro_batches < 1 || t->batch % t->micro_batches != 0)
        return vd_fail(err, VD_ERR_USAGE, "micro_batches must divide batch, got %lld and %lld",
                       (long long)t->micro_batches, (long long)t->batch);
    const int64_t record = vd_record_size(&t->model);
    if (record && t->data_count / record < 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "data must hold at least a record of %lld bytes, got %lld",
                       (long long)record, (long long)t->data_count);
    if (!record && (t->data_count - 1) / t->sequence < 1)
        return vd_fail(err, VD_ERR_USAGE, "data must hold at least sequence + 1 tokens, got %lld",
                       (long long)t->data_count);
    const vd_model_type *type = type_of(&t->model);
    if (t->model.layers > type->layers_max)
        return vd_fail(err, VD_ERR_USAGE, "layers must be at most %lld, got %lld",
                       (long long)type->layers_max, (long long)t->model.layers);
    return type->check ? type->check(t, err) : VD_OK;
}

static vd_status describe_run(const vd_training *t, vd_program *p, vd_err *err) {
    p->seed = t->seed;
    p->steps = t->steps;
    p->checkpoint_interval = t->checkpoint_interval;
    vd_status status = vd_program_take_data(p, 1, err);
    if (status != VD_OK)
        return status;
    snprintf(p->data[0].tensor.name, VD_NAME_SIZE, "%s",
             vd_record_size(&t->model) ? "records" : "tokens");
    p->data[0].tensor.shape = VD_SHAPE(t->data_dtype, t->data_count);
    memcpy(p->data[0].root, t->data_root, sizeof p->data[0].root);
    return VD_OK;
}

/* Who reads the program's bytes refuses more of them. */
static vd_status check_program(const vd_training *t, const vd_program *program, vd_err *err) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    const size_t size = bytes.size;
    const bool ok = vd_buf_ok(&bytes);
    vd_buf_free(&bytes);
    if (!ok)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (size > VD_PROGRAM_BYTES_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "the program has %zu bytes, expected at most %d: micro_batches (%lld) or "
                       "layers are too many",
                       size, VD_PROGRAM_BYTES_MAX, (long long)t->micro_batches);
    return vd_program_validate(program, err);
}

vd_status vd_training_program(const vd_training *t, vd_program *out, vd_err *err) {
    *out = (vd_program){0};
    vd_parameters all = {0};
    vd_status status = check(t, err);
    if (status != VD_OK)
        return status;
    status = declare(&t->model, &all, err);
    if (status != VD_OK)
        return status;
    status = describe_run(t, out, err);
    if (status != VD_OK)
        goto out;
    vd_builder init = vd_builder_of(out, &out->init), step = vd_builder_of(out, &out->step);
    vd_optimizer_leaves(&init, &t->optimizer, &all);
    add_buffers(&init, &all);
    build_init(&init, t, &all);
    build_step(&step, t, &all);
    const vd_builder *bad = init.status != VD_OK ? &init : &step;
    if (bad->status != VD_OK)
        status = vd_fail(err, bad->status, "%s", bad->err.text);
    else
        status = check_program(t, out, err);
    vd_builder_free(&init);
    vd_builder_free(&step);
out:
    free_parameters(&all);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
