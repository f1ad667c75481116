/* Models as graph builders: from sizes and a recipe to a program. */
#ifndef VD_MODELS_H
#define VD_MODELS_H

#include "verde/graph/graph.h"

typedef enum {
    VD_MODEL_GPT2 = 1,
    VD_MODEL_MLP = 2,
    VD_MODEL_RESNET = 3,
    VD_MODEL_LLAMA = 4,
    VD_MODEL_BERT = 5,
} vd_model_kind;

enum { VD_STAGES_MAX = 8, VD_IMAGE_PLANES = 3 };

typedef struct {
    vd_model_kind kind;
    int64_t vocab;   /* token values are 0..vocab-1; resnet: classes */
    int64_t context; /* gpt2, bert: number of position embeddings */
    int64_t layers;
    int64_t heads;    /* gpt2, llama, bert */
    int64_t kv_heads; /* llama: heads of keys and values */
    int64_t channels; /* width; resnet: of the stem */
    int64_t hidden;   /* mlp, llama: width of the hidden layers */
    float rope_base;  /* llama: rotary position embedding, SPEC 13 */
    float dropout; /* gpt2, bert: after embedding, attention, both residual branches; 0 for none */
    float mask_rate; /* bert: share of the tokens that are hidden, and then learned */
    int64_t pad;     /* bert: the token that is padding; -1: none is */
    int64_t image;   /* resnet: height and width of images */
    int64_t stages, blocks[VD_STAGES_MAX]; /* resnet: blocks of each stage */
} vd_model;

typedef enum { VD_OPTIMIZER_ADAMW = 0, VD_OPTIMIZER_SGD = 1 } vd_optimizer_kind;

typedef struct {
    float lr, min_lr;
    float beta1, beta2, eps; /* adamw */
    float weight_decay;
    float clip_norm;  /* global-norm clipping; 0 for none */
    int32_t schedule; /* ro_lr_kind */
    int64_t warmup;   /* steps of linear warm-up; after it the schedule runs to the last step */
    vd_optimizer_kind kind;
    float momentum;   /* sgd */
    int32_t nesterov; /* sgd: 0 or 1 */
} vd_optimizer;

/* All that decides a training job's bits. */
typedef struct {
    vd_model model;
    vd_optimizer optimizer;
    uint64_t seed;
    int64_t batch;         /* sequences per step, over all micro-batches */
    int64_t micro_batches; /* divides batch */
    int64_t sequence;      /* 1 for images */
    int64_t steps;
    int64_t checkpoint_interval;
    int32_t data_dtype;    /* RO_U8 or RO_U16 */
    int64_t data_count;    /* tokens; bytes of image records */
    uint8_t data_root[32]; /* commitment of the data tensor */
} vd_training;

/* Builds the program. The ranges of single numbers are the job reader's to check; combinations that
 * make no valid graph (heads that do not divide channels, too little data) are VD_ERR_USAGE here.
 */
VD_MUST_USE vd_status vd_training_program(const vd_training *training, vd_program *out,
                                          vd_err *err);

/* Layers that a model has at most; of resnet, blocks of all stages together. */
int64_t vd_layers_max(vd_model_kind kind);

/* Bytes of an image with its label before it; 0 for models that read tokens. */
int64_t vd_record_size(const vd_model *model);

/* Parameters of the model, for people. */
int64_t vd_model_parameters(const vd_model *model);

#endif
