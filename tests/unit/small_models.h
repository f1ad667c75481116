/* One small model of each kind, with any number of micro-batches. */
#ifndef TEST_SMALL_MODELS_H
#define TEST_SMALL_MODELS_H

#include <criterion/criterion.h>

#include "models/models.h"

static inline vd_training recipe(vd_model_kind kind, int64_t micro_batches) {
    vd_training t = {
        .model = {kind, .vocab = 11, .context = 9, .layers = 1, .heads = 2, .channels = 6,
                  .hidden = 5, .dropout = 0.1f},
        .optimizer = {.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .clip_norm = 1},
        .seed = 7,
        .batch = 2 * micro_batches,
        .micro_batches = micro_batches,
        .sequence = 8,
        .steps = 2,
        .checkpoint_interval = 1,
        .data_dtype = RO_U8,
        .data_count = 1000,
        .data_root = {1, 2, 3},
    };
    if (kind == VD_MODEL_LLAMA)
        t.model.kv_heads = 1, t.model.channels = 8, t.model.dropout = 0, t.model.rope_base = 100;
    if (kind == VD_MODEL_RESNET)
        t.model.channels = 4, t.model.image = 9, t.model.stages = 2, t.model.dropout = 0,
        t.model.blocks[0] = t.model.blocks[1] = 1, t.sequence = 1;
    if (kind == VD_MODEL_BERT)
        t.model.mask_rate = 0.3f, t.model.pad = 0;
    return t;
}

static const vd_model_kind kinds[] = {VD_MODEL_MLP, VD_MODEL_GPT2, VD_MODEL_LLAMA, VD_MODEL_RESNET,
                                      VD_MODEL_BERT};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static inline vd_program program_of(vd_model_kind kind, int64_t micro_batches) {
    vd_program program;
    vd_err err = {0};
    const vd_training t = recipe(kind, micro_batches);
    cr_assert(vd_training_program(&t, &program, &err) == VD_OK, "kind %d: %s", (int)kind, err.text);
    return program;
}

#endif
