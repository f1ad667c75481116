#include "tests/cuda/job.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS = 1 << 20, RECORDS = 1000, STEPS = 1000 };

static const struct {
    const char *name;
    vd_model model;
} models[] = {
    {"gpt2-124m",
     {.kind = VD_MODEL_GPT2,
      .vocab = 50257,
      .context = 1024,
      .layers = 12,
      .heads = 12,
      .channels = 768}},
    {"resnet50",
     {.kind = VD_MODEL_RESNET,
      .vocab = 10,
      .channels = 64,
      .image = 32,
      .stages = 4,
      .blocks = {3, 4, 6, 3}}},
    {"gpt2-small",
     {.kind = VD_MODEL_GPT2, .vocab = 300, .context = 32, .layers = 2, .heads = 2, .channels = 32}},
    {"resnet-small",
     {.kind = VD_MODEL_RESNET,
      .vocab = 10,
      .channels = 4,
      .image = 32,
      .stages = 2,
      .blocks = {1, 1}}},
};

static const vd_model *find_model(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        if (strlen(models[i].name) == length && strncmp(models[i].name, name, length) == 0)
            return &models[i].model;
    return NULL;
}

/* Reads the suffix of a model's name, if there is one. */
static bool set_way(vd_training *t, const char *way) {
    const int32_t bits = strcmp(way, ",fixed24") == 0   ? RO_FIXED_24
                         : strcmp(way, ",fixed16") == 0 ? RO_FIXED_16
                         : strcmp(way, ",fixed8") == 0  ? RO_FIXED_8
                                                        : 0;
    t->products = vd_products_alike(bits);
    t->storage = strcmp(way, ",bf16") == 0 ? RO_BF16 : 0;
    return bits || t->storage || *way == 0;
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

/* Makes random tokens, or records of a label and an image. */
static vd_status make_data(const vd_model *model, ro_shape *shape, void **out, vd_err *err) {
    const int64_t record = vd_record_size(model);
    uint64_t state = 1;
    *shape = record ? (ro_shape){RO_U8, 1, {RECORDS * record}} : (ro_shape){RO_U16, 1, {TOKENS}};
    *out = malloc((size_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype));
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (int64_t i = 0; i < shape->dim[0]; i++)
        if (record)
            ((uint8_t *)*out)[i] = (uint8_t)(draw(&state) % (i % record ? 256 : 10));
        else
            ((uint16_t *)*out)[i] = (uint16_t)(draw(&state) % (uint32_t)model->vocab);
    return VD_OK;
}

vd_status job_create(const job_size *size, job *out, vd_err *err) {
    const size_t length = strcspn(size->name, ",");
    const vd_model *model = find_model(size->name, length);
    ro_shape shape;
    vd_hash byte_root, root;
    *out = (job){0};
    if (!model)
        return vd_fail(err, VD_ERR_USAGE, "there is no model %s", size->name);
    vd_training t = {
        .model = *model,
        .optimizer = {.lr = 6e-4f,
                      .min_lr = 6e-5f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .eps = 1e-8f,
                      .weight_decay = 0.1f,
                      .clip_norm = 1,
                      .schedule = RO_LR_COSINE,
                      .warmup = 10},
        .seed = 1,
        .batch = size->batch,
        .micro_batches = size->micro_batches,
        .sequence = vd_record_size(model) ? 1 : size->sequence,
        .steps = STEPS,
        .checkpoint_interval = STEPS,
    };
    if (!set_way(&t, size->name + length))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: a model's name may be followed by ,fixed24, ,fixed16, "
                       ",fixed8 or ,bf16",
                       size->name);
    vd_status status = make_data(model, &shape, &out->data, err);
    if (status == VD_OK)
        status = vd_tensor_hash(NULL, &shape, out->data, &byte_root, &root, err);
    if (status != VD_OK)
        return status;
    t.data_dtype = shape.dtype;
    t.data_count = shape.dim[0];
    memcpy(t.data_root, root.b, sizeof t.data_root);
    out->parameters = vd_model_parameters(model);
    status = vd_training_program(&t, &out->program, err);
    return status == VD_OK ? vd_program_hash(&out->program, &out->hash, err) : status;
}

void job_free(job *j) {
    vd_program_free(&j->program);
    free(j->data);
    *j = (job){0};
}

vd_status trainer_create(const job *j, const char *backend, int threads, trainer *out,
                         vd_err *err) {
    *out = (trainer){.job = j, .data = {j->data}, .exec = {.program = &j->program}};
    out->exec.data = out->data;
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .backend = backend, .threads = threads},
            &out->exec.ro) != RO_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
    vd_status status = vd_exec_place(&out->exec, err);
    return status == VD_OK ? vd_exec_init(&out->exec, NULL, &out->state, err) : status;
}

void trainer_free(trainer *t) {
    vd_state_free(&t->state);
    vd_exec_drop(&t->exec);
    ro_ctx_destroy(t->exec.ro);
    *t = (trainer){0};
}

vd_status trainer_step(trainer *t, float *loss, vd_err *err) {
    return vd_exec_step(&t->exec, NULL, &t->state, loss, err);
}

vd_status trainer_root(const trainer *t, vd_hash *out, vd_err *err) {
    return vd_state_hash(NULL, &t->job->program, &t->job->hash, &t->state, NULL, out, err);
}
