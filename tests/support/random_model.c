#include "tests/support/random_model.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dispute.h"

const vd_model test_models[TEST_MODELS] = {
    {.kind = VD_MODEL_GPT2, .vocab = 1000, .context = 256, .layers = 2, .heads = 4, .channels = 64},
    {.kind = VD_MODEL_LLAMA,
     .vocab = 1000,
     .layers = 2,
     .heads = 4,
     .kv_heads = 2,
     .channels = 128,
     .hidden = 96,
     .rope_base = 10000,
     .window = 40,
     .window_from = 1,
     .qk_norm = true,
     .qkv_bias = true,
     .tied = true},
};

static bool is_parameter(const char *name) {
    const size_t length = strlen(name);
    return length < 2 || strcmp(name + length - 2, ".m") != 0;
}

void test_model_open(test_model *m, const vd_model *model) {
    vd_program p;
    uint64_t random = 17;
    vd_err err = {0};
    *m = (test_model){.training = {.model = *model,
                                   .optimizer = {.kind = VD_OPTIMIZER_SGD, .lr = 1},
                                   .batch = 1,
                                   .micro_batches = 1,
                                   .sequence = 8,
                                   .steps = 1,
                                   .checkpoint_interval = 1,
                                   .data_dtype = RO_U16,
                                   .data_count = 64}};
    cr_assert(vd_training_program(&m->training, &p, &err) == VD_OK, "%s", err.text);
    for (uint32_t i = 0; i < p.leaf_count; i++) {
        const uint32_t at = m->count;
        if (!is_parameter(p.leaf[i].name))
            continue;
        strcpy(m->name[at], p.leaf[i].name);
        m->start[at] = (vd_file_tensor){.name = m->name[at], .shape = p.leaf[i].shape};
        const int64_t count = ro_shape_numel(&p.leaf[i].shape);
        float *x = m->weight[at] = malloc((size_t)count * sizeof *x);
        for (int64_t e = 0; e < count; e++)
            x[e] = ((float)(test_random(&random) >> 40) * 0x1p-23f - 1) * 0.3f;
        m->count++;
    }
    m->training = (vd_training){.model = *model,
                                .evaluates = 1,
                                .batch = 1,
                                .micro_batches = 1,
                                .start = m->start,
                                .start_count = m->count};
    vd_program_free(&p);
}

void test_model_close(test_model *m) {
    for (uint32_t i = 0; i < m->count; i++)
        free(m->weight[i]);
}
