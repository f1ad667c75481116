/* Builds a training program from a model and a recipe: checks, layout, initialisation. */
#include <stdlib.h>
#include <string.h>

#include "repops/op_movement.h"
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

const vd_model_type *vd_type_of(const vd_model *model) {
    return type_of_kind(model->kind);
}

int64_t vd_layers_max(vd_model_kind kind) {
    const vd_model_type *type = type_of_kind(kind);
    return type ? type->layers_max : 0;
}

int64_t vd_record_size(const vd_model *model) {
    return vd_type_of(model)->images ? 1 + VD_IMAGE_PLANES * model->image * model->image : 0;
}

bool vd_tells_classes(const vd_model *model) {
    return vd_type_of(model)->images || model->task == VD_TASK_CLASSES;
}

int64_t vd_classes_of(const vd_model *m) {
    return vd_type_of(m)->images ? m->vocab : m->classes;
}

int64_t vd_window_size(const vd_training *t) {
    return t->model.task == VD_TASK_CLASSES ? 1 + t->sequence : t->sequence;
}

static int64_t count_numbers(const vd_model *model, bool frozen_too) {
    vd_parameters all = {0};
    int64_t sum = 0;
    if (vd_parameters_of(model, &all, NULL) != VD_OK)
        return 0;
    for (uint32_t i = 0; i < all.count; i++)
        if (frozen_too || !all.parameter[i].frozen)
            sum += ro_shape_numel(&all.parameter[i].shape);
    vd_parameters_free(&all);
    return sum;
}

int64_t vd_model_parameters(const vd_model *model) {
    return count_numbers(model, true);
}

int64_t vd_model_trained(const vd_model *model) {
    return count_numbers(model, false);
}

/* Adds buffers to the layout, after the optimizer's leaves. */
static void add_buffers(vd_builder *b, const vd_parameters *all) {
    for (uint32_t i = 0; i < all->buffer_count; i++)
        vd_add_leaf(b, all->buffer[i].name, &all->buffer[i].shape);
}

static vd_value initial(vd_builder *b, const vd_training *t, const vd_parameter *p,
                        uint32_t index) {
    if (p->data)
        return vd_from_tensor(b, p);
    vd_op op = {RO_OP_FILL, {[RO_FILL_VALUE] = ro_attr_f32(p->value)}, &p->shape};
    if (p->deviation != 0)
        op = (vd_op){RO_OP_NORMAL,
                     {[RO_NORMAL_SEED] = (int64_t)t->seed,
                      [RO_NORMAL_STREAM] = VD_STREAM_INIT(index),
                      [RO_NORMAL_MEAN] = ro_attr_f32(0),
                      [RO_NORMAL_STD] = ro_attr_f32(p->deviation)},
                     &p->shape};
    return vd_emit(b, p->name, op, 0, NULL);
}

vd_status vd_allocate_outputs(vd_builder *b) {
    b->graph->output = calloc(b->program->leaf_count, sizeof *b->graph->output);
    return b->graph->output ? VD_OK : vd_builder_fail(b, VD_ERR_LOCAL, "out of memory");
}

int64_t vd_evaluation_steps(const vd_training *t) {
    const int64_t window = vd_window_size(t), record = vd_record_size(&t->model);
    int64_t windows = record ? t->data_count / record : (t->data_count - 1) / window;
    for (uint32_t i = 0; i < t->shard_count; i++)
        windows += (t->shard[i].count - 1) / window;
    return windows / t->batch;
}

/* Returns the first value of a leaf: from the state to continue from, else zeros. */
static vd_value kept(vd_builder *b, const vd_training *t, uint32_t first, const vd_leaf *leaf) {
    const vd_value x = vd_from_start(b, t, first, leaf);
    ro_shape shape = leaf->shape;
    shape.dtype = RO_F32;
    const vd_op zero = {.op = RO_OP_FILL, .shape = &shape};
    return x != VD_NONE ? x : vd_emit(b, leaf->name, zero, 0, NULL);
}

static void build_init(vd_builder *b, const vd_training *t, const vd_parameters *all) {
    if (vd_allocate_outputs(b) != VD_OK)
        return;
    vd_scope(b, "init");
    const uint32_t buffers = b->program->leaf_count - all->buffer_count;
    for (uint32_t i = 0; i < b->program->leaf_count; i++) {
        const vd_leaf *leaf = &b->program->leaf[i];
        const uint32_t p = i < all->trained_count ? all->trained[i] : 0;
        const bool optimizers = i >= all->trained_count && i < buffers;
        const vd_value x = t->start || optimizers ? kept(b, t, vd_data_count(all), leaf)
                           : i >= buffers         ? initial(b, t, &all->buffer[i - buffers], i)
                                                  : initial(b, t, &all->parameter[p], p);
        const bool stored = vd_shape_of(b, x)->dtype == leaf->shape.dtype;
        b->graph->output[i] = stored ? x : vd_cast(b, leaf->name, x, leaf->shape.dtype);
    }
}

/* Checks that every data tensor holds at least a record, or a window of tokens. */
static vd_status check_data(const vd_training *t, vd_err *err) {
    const int64_t record = vd_record_size(&t->model);
    if (record && t->data_count / record < 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "data must hold at least a record of %lld bytes, got %lld",
                       (long long)record, (long long)t->data_count);
    const int64_t window = vd_window_size(t), tokens = 1 + window - t->sequence;
    if (!record && (t->data_count - 1) / window < 1)
        return vd_fail(err, VD_ERR_USAGE,
                       "data must hold at least sequence + %lld tokens, got %lld",
                       (long long)tokens, (long long)t->data_count);
    for (uint32_t i = 0; i < t->shard_count; i++)
        if ((t->shard[i].count - 1) / window < 1)
            return vd_fail(err, VD_ERR_USAGE,
                           "data must hold at least sequence + %lld tokens in each file, file %u "
                           "holds %lld",
                           (long long)tokens, i + 2, (long long)t->shard[i].count);
    if (t->shard_count > VD_SHARDS_MAX)
        return vd_fail(err, VD_ERR_USAGE, "data must be in at most %d files, got %u",
                       VD_SHARDS_MAX + 1, t->shard_count + 1);
    return VD_OK;
}

static vd_status check_steps(const vd_training *t, vd_err *err) {
    if (t->evaluates && t->steps < 1)
        return vd_fail(err, VD_ERR_USAGE, "batch: the data has no %lld %s", (long long)t->batch,
                       vd_type_of(&t->model)->images ? "images" : "sequences");
    const int64_t last = t->first_step + t->steps;
    if (t->first_step > 0 && last > VD_NUMBERED_STEPS_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "steps must be at most %lld after step %lld, got %lld: steps that go on are "
                       "numbered up to %d",
                       (long long)(VD_NUMBERED_STEPS_MAX - t->first_step), (long long)t->first_step,
                       (long long)t->steps, VD_NUMBERED_STEPS_MAX);
    if (!t->evaluates && t->optimizer.schedule != RO_LR_CONSTANT && t->optimizer.warmup >= last)
        return vd_fail(err, VD_ERR_USAGE,
                       "schedule.warmup must be less than the number of the last step, %lld, got "
                       "%lld",
                       (long long)last, (long long)t->optimizer.warmup);
    return VD_OK;
}

static vd_status check_training(const vd_training *t, vd_err *err) {
    const vd_model_type *type = vd_type_of(&t->model);
    if (!type)
        return vd_fail(err, VD_ERR_USAGE, "no model of kind %d", (int)t->model.kind);
    if (t->micro_batches < 1 || t->batch % t->micro_batches != 0)
        return vd_fail(err, VD_ERR_USAGE, "micro_batches must divide batch, got %lld and %lld",
                       (long long)t->micro_batches, (long long)t->batch);
    vd_status status = check_data(t, err);
    if (status == VD_OK)
        status = check_steps(t, err);
    if (status != VD_OK)
        return status;
    if (t->model.lora.rank > 0 && !t->file)
        return vd_fail(err, VD_ERR_USAGE, "lora: there are no weights to adapt");
    if (t->model.layers > type->layers_max)
        return vd_fail(err, VD_ERR_USAGE, "layers must be at most %lld, got %lld",
                       (long long)type->layers_max, (long long)t->model.layers);
    return type->check ? type->check(t, err) : VD_OK;
}

bool vd_training_has_config(const vd_training *t) {
    return t->config_bytes > 0 && !t->evaluates;
}

static void put_config(const vd_training *t, vd_data *to) {
    snprintf(to->tensor.name, VD_NAME_SIZE, VD_CONFIG_TENSOR);
    to->tensor.shape = VD_SHAPE(RO_U8, t->config_bytes);
    memcpy(to->root, t->config_root, sizeof to->root);
}

static void state_range(const vd_training *t, vd_data *data) {
    if (t->data_below > 0)
        vd_state_range(data, 0, t->data_below - 1);
}

static vd_status describe_run(const vd_training *t, const vd_parameters *all, vd_program *p,
                              vd_err *err) {
    p->seed = t->seed;
    p->steps = t->steps;
    p->checkpoint_interval = t->checkpoint_interval;
    /* Data tensors of the state to start from may be numbered already, as the last ones. */
    const uint32_t numbered = vd_data_count(all), more = t->start_count;
    const uint32_t start = t->evaluates ? numbered - more : numbered, config = start + more;
    const uint32_t shards = config + vd_training_has_config(t);
    vd_status status = vd_program_take_data(p, shards + t->shard_count, err);
    if (status != VD_OK)
        return status;
    snprintf(p->data[0].tensor.name, VD_NAME_SIZE, "%s",
             vd_record_size(&t->model) ? "records" : "tokens");
    p->data[0].tensor.shape = VD_SHAPE(t->data_dtype, t->data_count);
    memcpy(p->data[0].root, t->data_root, sizeof p->data[0].root);
    state_range(t, &p->data[0]);
    vd_put_tensors(t, all, p);
    vd_put_start(t, start, p);
    if (vd_training_has_config(t))
        put_config(t, &p->data[config]);
    for (uint32_t i = 0; i < t->shard_count; i++) {
        vd_data *to = &p->data[shards + i];
        snprintf(to->tensor.name, VD_NAME_SIZE, "tokens.%u", i + 1);
        to->tensor.shape = VD_SHAPE(t->data_dtype, t->shard[i].count);
        memcpy(to->root, t->shard[i].root, sizeof to->root);
        state_range(t, to);
    }
    return VD_OK;
}

static vd_status check_count(const vd_parameters *all, vd_err *err) {
    if (all->trained_count <= VD_TRAINED_MAX)
        return VD_OK;
    return vd_fail(err, VD_ERR_USAGE, "the model trains %u parameters, expected at most %d",
                   all->trained_count, VD_TRAINED_MAX);
}

vd_status vd_check_program(const vd_program *program, const char *what, vd_err *err) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    const size_t size = bytes.size;
    const bool ok = vd_buf_ok(&bytes);
    vd_buf_free(&bytes);
    if (!ok)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (size > VD_PROGRAM_BYTES_MAX)
        return vd_fail(err, VD_ERR_USAGE,
                       "the program has %zu bytes, expected at most %d: %s are too many", size,
                       VD_PROGRAM_BYTES_MAX, what);
    return vd_program_validate(program, err);
}

static vd_status build(const vd_training *t, const vd_parameters *all, vd_program *out,
                       vd_err *err) {
    vd_builder init = vd_builder_of(out, &out->init), step = vd_builder_of(out, &out->step);
    const ro_shape number = VD_SHAPE(RO_F32, 1);
    step.products = t->products;
    step.stores_bf16 = t->storage == RO_BF16 && !t->evaluates;
    char too_many[64];
    snprintf(too_many, sizeof too_many, "micro_batches (%lld) or layers",
             (long long)t->micro_batches);
    if (t->evaluates)
        vd_add_leaf(&init, "loss", &number);
    if (t->evaluates && vd_tells_classes(&t->model))
        vd_add_leaf(&init, "accuracy", &number);
    if (!t->evaluates)
        vd_optimizer_leaves(&init, t, all);
    add_buffers(&init, all);
    if (t->start && !t->evaluates && init.status == VD_OK)
        init.status = vd_check_start(t, all, out, &init.err);
    if (init.status == VD_OK)
        build_init(&init, t, all);
    if (init.status == VD_OK && vd_allocate_outputs(&step) == VD_OK)
        vd_build_step(&step, t, all);
    const vd_builder *bad = init.status != VD_OK ? &init : &step;
    const vd_status status = bad->status != VD_OK ? vd_fail(err, bad->status, "%s", bad->err.text)
                                                  : vd_check_program(out, too_many, err);
    vd_builder_free(&init);
    vd_builder_free(&step);
    return status;
}

vd_status vd_training_program(const vd_training *t, vd_program *out, vd_err *err) {
    *out = (vd_program){0};
    vd_parameters all = {0};
    vd_status status = check_training(t, err);
    if (status == VD_OK)
        status = vd_parameters_of(&t->model, &all, err);
    if (status == VD_OK && t->evaluates)
        status = vd_freeze_all(&all, err);
    if (status == VD_OK)
        status = check_count(&all, err);
    if (status == VD_OK && t->file)
        status = vd_find_tensors(t, &all, err);
    if (status == VD_OK && t->evaluates)
        status = vd_freeze_start(t, &all, err);
    if (status == VD_OK)
        status = describe_run(t, &all, out, err);
    if (status == VD_OK)
        status = build(t, &all, out, err);
    vd_parameters_free(&all);
    if (status != VD_OK)
        vd_program_free(out);
    return status;
}
