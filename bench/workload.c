#include "bench/workload.h"

#include <stdlib.h>
#include <string.h>

#include "verde/commit/commit.h"

enum { VOCAB = 50257, TOKENS = 1 << 20, RECORDS = 1000 };

vd_model workload_gpt2(int64_t layers, int64_t heads, int64_t channels) {
    return (vd_model){.kind = VD_MODEL_GPT2,
                      .vocab = VOCAB,
                      .context = 1024,
                      .layers = layers,
                      .heads = heads,
                      .channels = channels};
}

vd_model workload_llama(void) {
    return (vd_model){.kind = VD_MODEL_LLAMA,
                      .vocab = 49152,
                      .layers = 30,
                      .heads = 9,
                      .kv_heads = 3,
                      .channels = 576,
                      .hidden = 1536,
                      .rope_base = 10000,
                      .tied = true};
}

vd_model workload_resnet50(void) {
    return (vd_model){.kind = VD_MODEL_RESNET,
                      .vocab = 10,
                      .channels = 64,
                      .image = 32,
                      .stages = 4,
                      .blocks = {3, 4, 6, 3}};
}

/* Draws from a linear congruential generator, which is random enough for made-up data. */
static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(*state >> 33);
}

static void make_tokens(uint16_t *token, int64_t vocab) {
    uint64_t state = 1;
    uint32_t last = 0;
    for (int64_t i = 0; i < TOKENS; i++) {
        last =
            draw(&state) % 4 ? (last * 31 + 7) % (uint32_t)vocab : draw(&state) % (uint32_t)vocab;
        token[i] = (uint16_t)last;
    }
}

static void make_images(uint8_t *record, int64_t size, int64_t labels) {
    uint64_t state = 1;
    for (int64_t r = 0; r < RECORDS; r++, record += size) {
        record[0] = (uint8_t)(draw(&state) % (uint32_t)labels);
        for (int64_t i = 1; i < size; i++)
            record[i] = (uint8_t)(draw(&state) % 128 + record[0] * 12u);
    }
}

static bool make_data(workload *w, const vd_model *model, ro_shape *shape) {
    const int64_t record = vd_record_size(model);
    *shape = record ? (ro_shape){RO_U8, 1, {RECORDS * record}} : (ro_shape){RO_U16, 1, {TOKENS}};
    w->data = malloc((size_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype));
    if (w->data && record)
        make_images(w->data, record, model->vocab);
    else if (w->data)
        make_tokens(w->data, model->vocab);
    return w->data != NULL;
}

bool workload_open(workload *w, const vd_model *model, const vd_optimizer *optimizer, int64_t batch,
                   int64_t sequence, int64_t micro_batches, vd_products products, vd_err *err) {
    ro_shape shape;
    vd_hash byte_root, root;
    vd_training training = {.model = *model,
                            .optimizer = *optimizer,
                            .seed = 1,
                            .batch = batch * micro_batches,
                            .micro_batches = micro_batches,
                            .sequence = vd_record_size(model) ? 1 : sequence,
                            .steps = WORKLOAD_STEPS_MAX,
                            .checkpoint_interval = WORKLOAD_STEPS_MAX,
                            .products = products};
    *w = (workload){0};
    if (!make_data(w, model, &shape))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory") == VD_OK;
    training.data_dtype = shape.dtype;
    training.data_count = shape.dim[0];
    if (vd_tensor_hash(NULL, &shape, w->data, &byte_root, &root, err) != VD_OK)
        return false;
    memcpy(training.data_root, root.b, sizeof training.data_root);
    return vd_training_program(&training, &w->program, err) == VD_OK;
}

void workload_close(workload *w) {
    vd_program_free(&w->program);
    free(w->data);
    *w = (workload){0};
}
