/* Small decoders with random weights, which continue prompts. */
#ifndef TEST_RANDOM_MODEL_H
#define TEST_RANDOM_MODEL_H

#include "models/models.h"

enum { TEST_MODEL_TENSORS_MAX = 160, TEST_MODEL_DATA_MAX = TEST_MODEL_TENSORS_MAX + 2 };

typedef struct {
    vd_training training; /* for vd_generation_program, with all weights given */
    vd_file_tensor start[TEST_MODEL_TENSORS_MAX];
    char name[TEST_MODEL_TENSORS_MAX][VD_NAME_SIZE];
    void *weight[TEST_MODEL_TENSORS_MAX]; /* f32, in the order of the program's data tensors */
    uint32_t count;
} test_model;

/* With two layers and 1,000 tokens: a GPT-2; a Llama with grouped heads, a window, and norms of
 * heads. */
enum { TEST_MODELS = 2 };
extern const vd_model test_models[TEST_MODELS];

/* Opens a model. *out must not move. */
void test_model_open(test_model *out, const vd_model *model);
void test_model_close(test_model *m);

#endif
