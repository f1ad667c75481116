#include "bench/generate_model.h"

#include "bench/bench.h"

static const bench_shape shapes[] = {
    {"gpt2-124m",
     {.kind = VD_MODEL_GPT2,
      .vocab = 50257,
      .context = 1024,
      .layers = 12,
      .heads = 12,
      .channels = 768}},
    {"llama-135m",
     {.kind = VD_MODEL_LLAMA,
      .vocab = 49152,
      .layers = 30,
      .heads = 9,
      .kv_heads = 3,
      .channels = 576,
      .hidden = 1536,
      .rope_base = 10000,
      .tied = true}},
    {"llama-0.5b",
     {.kind = VD_MODEL_LLAMA,
      .vocab = 151936,
      .layers = 24,
      .heads = 14,
      .kv_heads = 2,
      .channels = 896,
      .hidden = 4864,
      .rope_base = 10000,
      .tied = true}},
};

const bench_shape *bench_shape_named(const char *name) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    fprintf(stderr, "--model %s: expected gpt2-124m, llama-135m or llama-0.5b\n", name);
    exit(2);
}

ro_dtype bench_dtype_named(const char *name) {
    if (strcmp(name, "f32") == 0)
        return RO_F32;
    if (strcmp(name, "bf16") == 0)
        return RO_BF16;
    fprintf(stderr, "%s: expected f32 or bf16\n", name);
    exit(2);
}

static void stop_at(vd_status status, const vd_err *err) {
    if (status == VD_OK)
        return;
    fprintf(stderr, "generate: %s\n", err->text);
    exit(1);
}

static const ro_shape *leaf_shape(const vd_program *p, const char *name) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, name) == 0)
            return &p->leaf[i].shape;
    fprintf(stderr, "generate: no leaf %s\n", name);
    exit(1);
}

/* Lists the tensors that files of the model have, as a training program of it names them. */
static void list_tensors(bench_model *m, ro_dtype dtype) {
    vd_program training;
    uint32_t count;
    vd_err err = {0};
    m->training.optimizer = (vd_optimizer){.kind = VD_OPTIMIZER_SGD, .lr = 1};
    m->training.batch = m->training.micro_batches = m->training.steps = 1;
    m->training.checkpoint_interval = 1;
    m->training.sequence = 8;
    m->training.data_dtype = RO_I32;
    m->training.data_count = 64;
    stop_at(vd_training_program(&m->training, &training, &err), &err);
    stop_at(vd_training_names(&m->training, &m->names, &count, &err), &err);
    if (count > BENCH_TENSORS_MAX)
        stop_at(vd_fail(&err, VD_ERR_LOCAL, "%u tensors", count), &err);
    for (uint32_t i = 0; i < count; i++) {
        m->file[i].name = m->names[i].tensor;
        m->file[i].shape = *leaf_shape(&training, m->names[i].leaf);
        m->file[i].shape.dtype = dtype;
    }
    vd_program_free(&training);
    m->training = (vd_training){.model = m->training.model,
                                .evaluates = 1,
                                .batch = 1,
                                .micro_batches = 1,
                                .file = m->file,
                                .file_count = count};
}

/* Returns numbers that bf16 can represent, so that both types give the same model. They repeat
 * after a megabyte or two: neither time nor memory depends on them. */
static void *random_weights(int64_t count, ro_dtype dtype) {
    enum { POOL = 1 << 19 };
    static float *pool;
    const size_t size = ro_dtype_size(dtype);
    uint8_t *x = aligned_alloc(64, ((size_t)count * size + 63) / 64 * 64);
    pool = pool ? pool : bench_uniform(POOL, 1);
    if (!pool || !x)
        fprintf(stderr, "generate: out of memory\n"), exit(1);
    for (int64_t e = 0; e < count && e < POOL; e++) {
        uint32_t bits;
        const float number = 0.05f * pool[e];
        memcpy(&bits, &number, sizeof bits);
        bits &= 0xffff0000;
        const uint16_t half = (uint16_t)(bits >> 16);
        memcpy(x + (size_t)e * size, size == 2 ? (void *)&half : (void *)&bits, size);
    }
    for (int64_t e = POOL; e < count; e += POOL)
        memcpy(x + (size_t)e * size, x, size * (size_t)(count - e < POOL ? count - e : POOL));
    return x;
}

void bench_model_open(bench_model *m, const bench_shape *shape, ro_dtype dtype, int fixed_bits,
                      int64_t prompt, int64_t tokens) {
    const vd_generation how = {.max_tokens = tokens,
                               .greedy = 1,
                               .temperature = 1,
                               .top_p = VD_TOP_P_ONE,
                               .repetition_penalty = 1,
                               .best = -1};
    const vd_prompt_form form = {.count = prompt};
    int32_t *ids = calloc((size_t)prompt, sizeof *ids);
    vd_err err = {0};
    *m = (bench_model){.training.model = shape->model};
    list_tensors(m, dtype);
    m->training.products = vd_products_alike(fixed_bits);
    stop_at(vd_generation_program(&m->training, &how, &form, &m->program, &err), &err);
    for (int64_t i = 0; ids && i < prompt; i++)
        ids[i] = (int32_t)(bench_word((uint64_t)i) % (uint64_t)shape->model.vocab);
    m->data[0] = ids;
    for (uint32_t i = 1; i < m->program.data_count; i++) {
        const int64_t count = ro_shape_numel(&m->program.data[i].tensor.shape);
        m->data[i] = random_weights(count, dtype);
        m->weight_bytes += count * (int64_t)ro_dtype_size(dtype);
    }
}
