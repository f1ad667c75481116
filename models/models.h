/* Models as graph builders: from sizes and a recipe to a program. */
#ifndef VD_MODELS_H
#define VD_MODELS_H

#include "verde/graph/graph.h"
#include "verde/graph/products.h"

typedef enum {
    VD_MODEL_GPT2 = 1,
    VD_MODEL_MLP = 2,
    VD_MODEL_RESNET = 3,
    VD_MODEL_LLAMA = 4,
    VD_MODEL_BERT = 5,
} vd_model_kind;

enum {
    VD_STAGES_MAX = 8,
    VD_SHARDS_MAX = RO_MAX_INPUTS - 2, /* besides data tensor 0 and the step */
    VD_IMAGE_PLANES = 3,
    VD_NUMBERED_STEPS_MAX = 1 << 24, /* first_step + steps, if first_step is not 0 */
    VD_LORA_TARGETS_MAX = 16,
    VD_LORA_TARGET_SIZE = 24,  /* with the final NUL */
    VD_TENSOR_NAME_SIZE = 128, /* of a tensor in a file, with the final NUL */
};

/* Functions between the two products of a feed-forward block. */
typedef enum {
    VD_ACTIVATION_OWN = 0, /* of the model: gpt2 GELU by tanh, bert GELU by erf, llama SiLU */
    VD_ACTIVATION_GELU_TANH,
    VD_ACTIVATION_GELU_ERF,
    VD_ACTIVATION_RELU,
    VD_ACTIVATION_SILU,
} vd_activation;

/* How the turns of rotary positions are stretched for longer sequences, as transformers does. */
typedef enum {
    VD_ROPE_PLAIN = 0,
    VD_ROPE_LINEAR = 1, /* positions are divided by `factor` */
    VD_ROPE_LLAMA3 = 2, /* slow turns are divided by `factor`, fast ones are not */
} vd_rope_kind;

typedef struct {
    vd_rope_kind kind;
    float factor;
    float low,
        high; /* llama3: turns within `context` below, and above, which a pair is slow, fast */
    int64_t context; /* llama3: of the training before */
} vd_rope_scaling;

/* This says what a model learns to tell. */
typedef enum {
    VD_TASK_TOKENS = 0,  /* the next token, or with bert the hidden ones */
    VD_TASK_CLASSES = 1, /* bert: the class of a sequence */
} vd_task;

/* Low-rank adapters (Hu et al., 2021). A layer of weight W [out, in] that is a target computes
 * x W^T + ((x A^T) (alpha / rank)) B^T, with A [rank, in] and B [out, rank]. Only A and B are
 * trained; all other parameters are frozen. */
typedef struct {
    int64_t rank; /* 0: there are no adapters, and all parameters are trained */
    float alpha;
    int64_t target_count;
    char target[VD_LORA_TARGETS_MAX][VD_LORA_TARGET_SIZE]; /* "attn.q": in every block */
} vd_lora;

/* A size or number that is 0 has the value that the comment states. */
typedef struct {
    vd_model_kind kind;
    int64_t vocab;   /* token values are 0..vocab-1; resnet: classes */
    int64_t context; /* gpt2, bert: number of position embeddings */
    int64_t layers;
    int64_t heads;    /* gpt2, llama, bert */
    int64_t kv_heads; /* llama: heads of keys and values */
    int64_t channels; /* width; resnet: of the stem */
    int64_t hidden;   /* width of the hidden layers; gpt2, bert: 0: 4 channels */
    int64_t head_dim; /* llama: width of a head; 0: channels / heads */
    float norm_eps;   /* of layer and RMS norms; 0: 1e-5, with bert 1e-12 */
    vd_activation activation;
    float rope_base;              /* llama: rotary position embedding, SPEC 13 */
    vd_rope_scaling rope_scaling; /* llama */
    int64_t window;      /* llama: a query sees so many keys, its own among them; 0: all before */
    int64_t window_from; /* the first layer with a window */
    bool qkv_bias, out_bias, mlp_bias; /* llama: which products add a bias */
    bool qk_norm;                      /* llama: RMS norm of every head of queries and keys */
    bool tied;                         /* llama: the output table is that of the tokens */
    float dropout; /* gpt2, bert: after embedding, attention, both residual branches; 0 for none */
    vd_task task;  /* bert */
    int64_t classes;  /* bert that tells classes: how many */
    float mask_rate;  /* bert: share of the tokens that are hidden, and then learned */
    int64_t mask;     /* bert: the token that replaces hidden ones; 0: the last of the vocabulary */
    int64_t pad;      /* bert: the token that is padding; -1: none is */
    int64_t segments; /* bert: kinds of segments; 0: 2 */
    bool one_segment; /* bert: all tokens are of segment 0; else half of them are of segment 1 */
    int64_t image;    /* resnet: height and width of images */
    /* resnet: of each plane of the images, as shares of 255: they are subtracted, and divided by.
     * image_std is 0: bytes become -2 to 1.98. */
    float image_mean[VD_IMAGE_PLANES], image_std[VD_IMAGE_PLANES];
    bool large_stem; /* resnet: 7x7 with stride 2, and max pooling; else 3x3 with stride 1 */
    /* bert that tells classes, resnet: the last product is in no file, and bert's pooler need not
     * be. */
    bool new_head;
    int64_t stages, blocks[VD_STAGES_MAX]; /* resnet: blocks of each stage */
    vd_lora lora;                          /* gpt2, llama, bert */
} vd_model;

typedef enum { VD_OPTIMIZER_ADAMW = 0, VD_OPTIMIZER_SGD = 1 } vd_optimizer_kind;

typedef struct {
    float lr, min_lr;
    float beta1, beta2, eps; /* adamw */
    float weight_decay;
    int32_t decay_all; /* 1: vectors too, which are biases and norms; 0: all else alone */
    float clip_norm;   /* global-norm clipping; 0 for none */
    int32_t schedule;  /* ro_lr_kind */
    int64_t warmup;    /* steps of linear warm-up; after it the schedule runs to the last step,
                        * first_step +    steps */
    vd_optimizer_kind kind;
    float momentum;   /* sgd */
    int32_t nesterov; /* sgd: 0 or 1 */
} vd_optimizer;

/* A tensor of the files that a training starts from: f32, bf16 or f16. */
typedef struct {
    const char *name;
    ro_shape shape;
    uint8_t root[32]; /* its commitment */
} vd_file_tensor;

/* A further tensor of what is learnt from, of the type of the first. */
typedef struct {
    int64_t count;    /* tokens */
    uint8_t root[32]; /* its commitment */
} vd_shard;

/* The name of the data tensor that says what the model's config.json means; no node reads it. */
#define VD_CONFIG_TENSOR "config"

/* All that decides a training job's bits. */
typedef struct {
    vd_model model;
    vd_optimizer optimizer;
    uint64_t seed;
    int64_t batch;         /* sequences per step, over all micro-batches */
    int64_t micro_batches; /* divides batch */
    int64_t sequence;      /* 1 for images */
    int64_t steps;
    int64_t first_step; /* the number of the first, for rates, windows of the data and dropout */
    int64_t checkpoint_interval;
    int32_t data_dtype;    /* RO_U8, RO_U16 or RO_I32 */
    int64_t data_count;    /* tokens; bytes of image records */
    uint8_t data_root[32]; /* commitment of the data tensor */
    int64_t data_below;    /* the program says that elements are 0 .. this - 1; 0: nothing */
    const vd_shard *shard; /* tokens: what is learnt from besides. Not owned */
    uint32_t shard_count;
    /* What every parameter starts from; NULL: random numbers and constants. Not owned. */
    const vd_file_tensor *file;
    uint32_t file_count;
    /* What their config.json means, as u8, and its commitment: the program has it as a data tensor,
     * so that who has the program alone can compare a config.json. 0: it has none. */
    int64_t config_bytes;
    uint8_t config_root[32];
    /* The state that it goes on from, in place of what it would start from: leaves by their names;
     * NULL: there is none. Frozen parameters stay those of the files. Not owned. */
    const vd_file_tensor *start;
    uint32_t start_count;
    /* 1: the loss of given weights, all frozen, on all of the data, which `batch` sequences a step
     * read once; the state is the mean so far, and of a model that tells classes the share of right
     * ones. There is no optimizer, and batch norm has the running statistics. */
    int32_t evaluates;
    bool start_bare;      /* it lacks what the optimizer keeps, which starts at zero */
    vd_products products; /* attention's are always of f32 */
    /* Type of parameters, of their moments, and of what layers keep for the backward pass, of a
     * training: RO_BF16, or 0 for RO_F32. Computed is f32. */
    int32_t storage;
} vd_training;

/* Builds the program. The ranges of single numbers are the job reader's to check; combinations that
 * make no valid graph (heads that do not divide channels, too little data), and files or a state
 * that lack a tensor, have an unknown one, or one of another shape or type, are VD_ERR_USAGE here.
 *
 * Data tensor 0 is what is learnt from; after it come the tensors of files that the program reads,
 * each by its name there, then those of the state that it goes on from, VD_CONFIG_TENSOR, and last
 * the shards. */
VD_MUST_USE vd_status vd_training_program(const vd_training *training, vd_program *out,
                                          vd_err *err);

/* Does its program have VD_CONFIG_TENSOR? That of an evaluation has not. */
bool vd_training_has_config(const vd_training *training);

/* Steps in which an evaluation reads each window of its data once; windows that fill no batch are
 * left out. */
int64_t vd_evaluation_steps(const vd_training *training);

/* ---- going on with texts ---- */

enum {
    VD_STOPS_MAX = 16,
    VD_BEST_MAX = 20,
    VD_TOKENS_MAX = 65536,  /* of a prompt; and as many new ones */
    VD_TOP_P_ONE = 1 << 24, /* top_p of all tokens */
};

/* How a model goes on with a prompt. Each new token is chosen from the logits of the one before it,
 * after repetition_penalty, min_tokens, temperature, top_k and top_p, in this order, as
 * transformers has it. */
typedef struct {
    int64_t max_tokens; /* steps */
    int64_t min_tokens; /* so many tokens come before a stop */
    int64_t stop[VD_STOPS_MAX],
        stop_count;    /* distinct tokens; each ends the text, and is part of it */
    int32_t greedy;    /* 1: the largest logit, the first of equal ones; nothing is drawn */
    float temperature; /* logits are divided by it */
    int64_t top_k;     /* tokens that are drawn from; 0: all */
    int64_t top_p; /* a token is drawn from if the likelier ones have less than this share of the
                    * weight, in units of 1 / VD_TOP_P_ONE */
    uint64_t seed;
    float repetition_penalty; /* logits of tokens that were seen: times it below 0, else divided; 1:
                               * none */
    int64_t best; /* the log-probability of each token is told, and of so many best; -1: of none */
} vd_generation;

/* The tokens that a model is given, i32 [count], and what sets their random numbers apart, i32 [2]:
 * the low and the high word of a key. Both by their commitments. */
typedef struct {
    int64_t count;
    uint8_t root[32], key_root[32];
} vd_prompt_form;

/* The name of the data tensor that has the words of a prompt's key. */
#define VD_PROMPT_KEY "key"

/* The program that goes on with one prompt. `t` is an evaluation (t->evaluates) without data.
 *
 * Data tensor 0 is the prompt; 1 its key if tokens are drawn; then the weights, as in an
 * evaluation. The first state has the prompt's keys and values but those of its last token; each
 * step takes one token in and makes one. After a stop nothing changes any more. Leaves, with P
 * tokens in the prompt, n = max_tokens, S = P - 1 + n, G heads of keys of D numbers:
 *
 *     h.I.k, h.I.v            f32 [1, S, G D] of each layer: row p is of the token at position p
 *     text                    i32 [n], zeros behind the last token
 *     token                   i32 [1], the last one
 *     stopped                 i32 [1], 1 after a stop
 *     count                   i32 [1], tokens made
 *     log_probability         f32 [n], of each in `text`, by the logits as they are; if best >= 0
 *     best                    i32 [n, best], the likeliest tokens, likelier ones first; if best > 0
 *     best_log_probability    f32 [n, best]
 *     seen                    i32 [V], 1 for tokens so far; if there is a repetition penalty
 *
 * VD_ERR_USAGE: the model makes no text, or has no room for so many positions. */
VD_MUST_USE vd_status vd_generation_program(const vd_training *t, const vd_generation *how,
                                            const vd_prompt_form *prompt, vd_program *out,
                                            vd_err *err);

/* The leaf of a program that tells classes: f32, the log-probability of each. */
#define VD_CLASSES_LEAF "class_log_probability"

/* The program of one step that tells how likely each token of a text is after those before it: the
 * leaf `log_probability`, f32 [count - 1]. Its loss is the mean of their negatives. Data tensor 0
 * is the text, the weights follow. Of a model that tells classes, data tensor 0 is a sequence, or
 * an image byte by byte, plane by plane, and the leaf is VD_CLASSES_LEAF. */
VD_MUST_USE vd_status vd_score_program(const vd_training *t, const vd_prompt_form *text,
                                       vd_program *out, vd_err *err);

/* How a file's tensor lies, compared with the leaf that has the same numbers. */
typedef enum {
    VD_FILE_SAME,
    VD_FILE_CONVOLUTION, /* leaf [height, width, in, out], file [out, in, height, width] */
} vd_file_layout;

/* A leaf of the state and the tensor that files of the model's family have for it. */
typedef struct {
    char leaf[VD_NAME_SIZE];
    char tensor[VD_TENSOR_NAME_SIZE]; /* of adapters: as PEFT names them */
    vd_file_layout layout;
} vd_file_name;

/* One for each parameter and buffer in the state, in layout order; *out is the caller's to free.
 * VD_ERR_USAGE: the model is of no family that has files. */
VD_MUST_USE vd_status vd_training_names(const vd_training *training, vd_file_name **out,
                                        uint32_t *count, vd_err *err);

/* Tensors of t->file that are parameters of something else than the model tells: they are neither
 * read nor trained, and no part of what the training becomes. *out has `count` of their names, and
 * is the caller's to free, also after a failure. */
VD_MUST_USE vd_status vd_training_left_out(const vd_training *t, const char ***out, uint32_t *count,
                                           vd_err *err);

/* Layers that a model has at most; of resnet, blocks of all stages together. */
int64_t vd_layers_max(vd_model_kind kind);

/* Bytes of an image with its label before it; 0 for models that read tokens. */
int64_t vd_record_size(const vd_model *model);

/* Does an evaluation tell its accuracy too? */
bool vd_tells_classes(const vd_model *model);

/* How many classes it tells. */
int64_t vd_classes_of(const vd_model *model);

/* Tokens of a window of the data: a sequence, with its class before it if the model tells classes.
 */
int64_t vd_window_size(const vd_training *training);

/* Parameters of the model, for people. */
int64_t vd_model_parameters(const vd_model *model);

/* The part of them that is trained: with adapters, these. */
int64_t vd_model_trained(const vd_model *model);

#endif
