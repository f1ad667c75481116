#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

uint64_t test_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void write_text(test_job *job) {
    uint64_t state = 1;
    for (size_t i = 0; i < sizeof job->text; i++)
        job->text[i] = (uint8_t)(' ' + test_random(&state) % 64);
}

static vd_training recipe(vd_model_kind kind, int64_t steps, int64_t checkpoint_interval) {
    const bool resnet = kind == VD_MODEL_RESNET;
    return (vd_training){
        .model = {.kind = kind,
                  .vocab = 256,
                  .context = 16,
                  .layers = 1,
                  .heads = 2,
                  .kv_heads = 1,
                  .channels = resnet ? 4 : 16,
                  .hidden = 24,
                  .rope_base = 100,
                  .dropout = kind == VD_MODEL_GPT2 || kind == VD_MODEL_BERT ? 0.1f : 0,
                  .mask_rate = 0.5f,
                  .pad = ' ',
                  .image = 9,
                  .stages = 2,
                  .blocks = {1, 1}},
        .optimizer = {.lr = 3e-3f,
                      .min_lr = 3e-4f,
                      .beta1 = 0.9f,
                      .beta2 = 0.95f,
                      .eps = 1e-8f,
                      .weight_decay = 0.1f,
                      .clip_norm = 1,
                      .schedule = RO_LR_COSINE,
                      .warmup = steps > 2 ? 2 : 0},
        .seed = 1,
        .batch = 2,
        .micro_batches = 2,
        .sequence = resnet ? 1 : 16,
        .steps = steps,
        .checkpoint_interval = checkpoint_interval,
        .data_dtype = RO_U8,
        .data_count = sizeof((test_job *)0)->text,
    };
}

/* Makes the data, and returns its commitment. */
static vd_hash open_data(test_job *job) {
    const ro_shape shape = {RO_U8, 1, {sizeof job->text}};
    vd_hash byte_root, root;
    vd_err err = {0};
    write_text(job);
    job->data[0] = job->text;
    cr_assert(vd_tensor_hash(NULL, &shape, job->text, &byte_root, &root, &err) == VD_OK);
    return root;
}

static void open_recipe(test_job *job, vd_training t) {
    vd_err err = {0};
    const vd_hash root = open_data(job);
    memcpy(t.data_root, root.b, sizeof root.b);
    cr_assert(vd_training_program(&t, &job->program, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_program_hash(&job->program, &job->hash, &err) == VD_OK, "%s", err.text);
}

void test_job_open_from(test_job *job, vd_model_kind kind, int64_t steps, int64_t first_step) {
    vd_training t = recipe(kind, steps, 1);
    t.first_step = first_step;
    open_recipe(job, t);
}

void test_job_open(test_job *job, vd_model_kind kind, int64_t steps, int64_t checkpoint_interval) {
    open_recipe(job, recipe(kind, steps, checkpoint_interval));
}

void test_job_open_seed(test_job *job, vd_model_kind kind, int64_t steps, uint64_t seed) {
    vd_training t = recipe(kind, steps, steps);
    t.seed = seed;
    open_recipe(job, t);
}

void test_job_open_fixed(test_job *job, vd_model_kind kind, int64_t steps, int32_t bits) {
    vd_training t = recipe(kind, steps, 1);
    t.products = vd_products_alike(bits);
    open_recipe(job, t);
}

void test_job_open_sgd(test_job *job, int64_t steps, bool nesterov) {
    vd_training t = recipe(VD_MODEL_MLP, steps, steps);
    t.optimizer.kind = VD_OPTIMIZER_SGD;
    t.optimizer.momentum = 0.9f;
    t.optimizer.nesterov = nesterov;
    open_recipe(job, t);
}

void test_job_open_stored(test_job *job, vd_model_kind kind, int64_t steps, int fixed_bits) {
    vd_training t = recipe(kind, steps, 1);
    t.storage = RO_BF16;
    t.products = vd_products_alike(fixed_bits);
    open_recipe(job, t);
}

void test_job_open_operators(test_job *job, int64_t steps) {
    vd_err err = {0};
    const vd_hash root = open_data(job);
    job->program = (vd_program){0};
    cr_assert(vd_program_take_data(&job->program, 1, &err) == VD_OK, "%s", err.text);
    job->program.data[0].tensor = (vd_leaf){"text", {RO_U8, 1, {sizeof job->text}}};
    memcpy(job->program.data[0].root, root.b, sizeof root.b);
    test_operators_program(&job->program, steps);
    cr_assert(vd_program_hash(&job->program, &job->hash, &err) == VD_OK, "%s", err.text);
}

void test_job_close(test_job *job) {
    vd_program_free(&job->program);
}

uint32_t test_node(const test_job *job, int64_t step, int op) {
    const vd_graph *graph = vd_step_graph(&job->program, step);
    uint32_t i = 0;
    while (i < graph->node_count && vd_node_stored(graph, i)->op != op)
        i++;
    cr_assert(i < graph->node_count, "no %s in step %lld", ro_op_describe(op)->name,
              (long long)step);
    return i;
}

vd_fault test_fault(const test_job *job, const char *text) {
    vd_fault fault;
    vd_err err = {0};
    cr_assert(vd_fault_parse(text, &job->program, &fault, &err) == VD_OK, "%s", err.text);
    return fault;
}
