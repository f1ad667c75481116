/* Builds programs from models: from sizes and a training recipe to a graph. */
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
    VD_NUMBERED_STEPS_MAX = 1 << 24, /* the most of first_step + steps, if first_step is not 0 */
    VD_LORA_TARGETS_MAX = 16,
    VD_LORA_TARGET_SIZE = 24,  /* with the final NUL */
    VD_TENSOR_NAME_SIZE = 128, /* of a tensor in a file, with the final NUL */
};

/* The activation between the two products of a feed-forward block. */
typedef enum {
    VD_ACTIVATION_OWN = 0, /* the model's own: gpt2 GELU by tanh, bert GELU by erf, llama SiLU */
    VD_ACTIVATION_GELU_TANH,
    VD_ACTIVATION_GELU_ERF,
    VD_ACTIVATION_RELU,
    VD_ACTIVATION_SILU,
} vd_activation;

/* How rotary frequencies are scaled for longer sequences, as transformers does it. */
typedef enum {
    VD_ROPE_PLAIN = 0,
    VD_ROPE_LINEAR = 1, /* positions are divided by `factor` */
    VD_ROPE_LLAMA3 = 2, /* low frequencies are divided by `factor`, high ones are not */
} vd_rope_kind;

typedef struct {
    vd_rope_kind kind;
    float factor;
    float low,
        high; /* llama3: a frequency is low below `low` turns within `context`, high above `high` */
    int64_t context; /* llama3: context length of the original training */
} vd_rope_scaling;

/* The task that a model is trained for. */
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

/* The sizes of a model. Where a comment gives a value for 0, 0 stands for that value. */
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
    float norm_eps;   /* of layer and RMS norms; 0: 1e-5, for bert 1e-12 */
    vd_activation activation;
    float rope_base;              /* llama: rotary position embedding, SPEC 13 */
    vd_rope_scaling rope_scaling; /* llama */
    int64_t window;      /* llama: keys that a query sees, its own included; 0: all before it */
    int64_t window_from; /* the first layer with a window */
    bool qkv_bias, out_bias, mlp_bias; /* llama: which products have a bias */
    bool qk_norm;                      /* llama: RMS norm of every head of queries and keys */
    bool tied;                         /* llama: the output table is the token table */
    float dropout; /* gpt2, bert: after embedding, attention, both residual branches; 0 for none */
    vd_task task;  /* bert */
    int64_t classes;  /* bert with task VD_TASK_CLASSES: how many classes */
    float mask_rate;  /* bert: share of the tokens that are hidden and predicted */
    int64_t mask;     /* bert: the token that replaces hidden ones; 0: the last of the vocabulary */
    int64_t pad;      /* bert: the padding token; -1: none */
    int64_t segments; /* bert: number of segment embeddings; 0: 2 */
    bool one_segment; /* bert: all tokens are in segment 0; else the second half is in segment 1 */
    int64_t image;    /* resnet: height and width of images */
    /* resnet: mean and standard deviation of each plane, as shares of 255: images are (byte / 255 -
     * mean) / std. If image_std is 0, bytes become -2 to 1.98. */
    float image_mean[VD_IMAGE_PLANES], image_std[VD_IMAGE_PLANES];
    bool large_stem; /* resnet: 7x7 with stride 2, then max pooling; else 3x3 with stride 1 */
    /* bert for classes, resnet: the last product starts from random numbers instead of a file's
     * tensor, and bert's pooler may be missing in files. */
    bool new_head;
    int64_t stages, blocks[VD_STAGES_MAX]; /* resnet: blocks of each stage */
    vd_lora lora;                          /* gpt2, llama, bert */
} vd_model;

typedef enum { VD_OPTIMIZER_ADAMW = 0, VD_OPTIMIZER_SGD = 1 } vd_optimizer_kind;

typedef struct {
    float lr, min_lr;
    float beta1, beta2, eps; /* adamw */
    float weight_decay;
    int32_t decay_all; /* 1: decay applies to vectors (biases, norms) too; 0: not to them */
    float clip_norm;   /* global-norm clipping; 0 for none */
    int32_t schedule;  /* ro_lr_kind */
    int64_t warmup;    /* steps of linear warm-up; after them the schedule runs to the last step,
                        * first_step + steps */
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

/* A further data tensor to learn from, of the same type as the first. */
typedef struct {
    int64_t count;    /* tokens */
    uint8_t root[32]; /* its commitment */
} vd_shard;

/* The name of the data tensor with the meaning of config.json, which no node reads. */
#define VD_CONFIG_TENSOR "config"

/* Everything that decides the bits of a training job. */
typedef struct {
    vd_model model;
    vd_optimizer optimizer;
    uint64_t seed;
    int64_t batch;         /* sequences per step, over all micro-batches */
    int64_t micro_batches; /* divides batch */
    int64_t sequence;      /* 1 for images */
    int64_t steps;
    int64_t first_step; /* number of the first step, for rates, windows of the data and dropout */
    int64_t checkpoint_interval;
    int32_t data_dtype;    /* RO_U8, RO_U16 or RO_I32 */
    int64_t data_count;    /* tokens; bytes of image records */
    uint8_t data_root[32]; /* commitment of the data tensor */
    int64_t data_below;    /* the program declares elements below it, from 0 on; 0: it does not */
    const vd_shard *shard; /* tokens: further data tensors. Not owned */
    uint32_t shard_count;
    /* The tensors that parameters start from; NULL: random numbers and constants. Not owned. */
    const vd_file_tensor *file;
    uint32_t file_count;
    /* The meaning of the files' config.json, as u8, and its commitment. The program has it as a
     * data tensor, so that somebody who has only the program can compare a config.json with it. 0:
     * none. */
    int64_t config_bytes;
    uint8_t config_root[32];
    /* The state that the training continues from, as leaves by their names; NULL: none. Frozen
     * parameters still come from the files. Not owned. */
    const vd_file_tensor *start;
    uint32_t start_count;
    /* 1: the program is an evaluation: the loss of given weights, all frozen, on all of the data,
     * which is read once, `batch` sequences a step. Its state is the mean so far and, for models
     * that predict classes, the accuracy. There is no optimizer, and batch norm uses its running
     * statistics. */
    int32_t evaluates;
    bool start_bare;      /* `start` lacks the optimizer's state, which then starts at zero */
    vd_products products; /* how products are computed; attention always uses f32 */
    /* How a training stores parameters, their moments, and what layers keep for the backward pass:
     * RO_BF16, or 0 for RO_F32. Arithmetic is in f32. */
    int32_t storage;
} vd_training;

/* Builds the program. The job reader has checked the range of each number. VD_ERR_USAGE:
 * combinations that give no valid graph (heads that do not divide channels, too little data), or
 * files or a state in which a tensor is missing, unknown, or of another shape or type.
 *
 * Data tensor 0 is the data to learn from; after it come the tensors of files that the program
 * reads, by their names there, then those of the state that it continues from, VD_CONFIG_TENSOR,
 * and last the shards. */
VD_MUST_USE vd_status vd_training_program(const vd_training *training, vd_program *out,
                                          vd_err *err);

/* Returns whether the training's program has VD_CONFIG_TENSOR; an evaluation's has not. */
bool vd_training_has_config(const vd_training *training);

/* Returns the number of steps in which an evaluation reads each window of its data once. Windows
 * that do not fill a batch are left out. */
int64_t vd_evaluation_steps(const vd_training *training);

/* ---- continuing texts ---- */

enum {
    VD_STOPS_MAX = 16,
    VD_BEST_MAX = 20,
    VD_TOKENS_MAX = 65536,  /* the most tokens of a prompt, and the most new ones */
    VD_TOP_P_ONE = 1 << 24, /* the top_p that admits all tokens */
};

/* How a model continues a prompt. Each new token is chosen from the logits of the token before it,
 * after repetition_penalty, min_tokens, temperature, top_k and top_p, applied in this order, as in
 * transformers. */
typedef struct {
    int64_t max_tokens; /* steps */
    int64_t min_tokens; /* no stop is chosen before this many tokens */
    int64_t stop[VD_STOPS_MAX],
        stop_count;    /* distinct tokens; each ends the text, and belongs to it */
    int32_t greedy;    /* 1: takes the largest logit, the first of equal ones; draws nothing */
    float temperature; /* logits are divided by it */
    int64_t top_k;     /* only the top_k most likely tokens can be drawn; 0: all */
    int64_t top_p; /* a token can be drawn only if the more likely ones have less than this share of
                    * the probability, in units of 1 / VD_TOP_P_ONE */
    uint64_t seed;
    float repetition_penalty; /* logits of tokens that occurred are multiplied by it if negative,
                               * else divided; 1: no penalty */
    int64_t best;             /* how many of the most likely tokens to report in each step, with
                               * log-probabilities, beside the chosen token's; -1: report none */
} vd_generation;

/* A prompt: its tokens, i32 [count], and its key, i32 [2], the low and the high word of a number
 * that makes its random numbers differ from other prompts'. Both are given by their commitments. */
typedef struct {
    int64_t count;
    uint8_t root[32], key_root[32];
} vd_prompt_form;

/* The name of the data tensor that holds the words of a prompt's key. */
#define VD_PROMPT_KEY "key"

/* Builds the program that continues one prompt. `t` is an evaluation (t->evaluates) without data.
 *
 * Data tensor 0 is the prompt, 1 its key if tokens are drawn; then come the weights, as in an
 * evaluation. The first state has the keys and values of all tokens of the prompt but the last;
 * each step takes one token in and makes one. After a stop nothing changes any more. Leaves, with P
 * tokens in the prompt, n = max_tokens, S = P - 1 + n, G key heads of D numbers:
 *
 *     h.I.k, h.I.v            f32 [1, S, G D] of each layer: row p is of the token at position p
 *     text                    i32 [n], zeros after the last token
 *     token                   i32 [1], the last one
 *     stopped                 i32 [1], 1 after a stop
 *     count                   i32 [1], tokens made
 *     log_probability         f32 [n], of each token in text, by unchanged logits; if best >= 0
 *     best                    i32 [n, best], the most likely tokens, descending; if best > 0
 *     best_log_probability    f32 [n, best]
 *     seen                    i32 [V], 1 for tokens that occurred; if there is a repetition penalty
 *
 * VD_ERR_USAGE: the model makes no text, or has no room for so many positions. */
VD_MUST_USE vd_status vd_generation_program(const vd_training *t, const vd_generation *how,
                                            const vd_prompt_form *prompt, vd_program *out,
                                            vd_err *err);

/* The leaf of a program that predicts classes: f32, the log-probability of each. */
#define VD_CLASSES_LEAF "class_log_probability"

/* Builds the program of one step that scores a text: the leaf `log_probability`, f32 [count - 1],
 * holds the log-probability of each token after those before it, and the loss is the mean of their
 * negatives. Data tensor 0 is the text, the weights follow. For a model that predicts classes, data
 * tensor 0 is a sequence, or the bytes of an image, plane by plane, and the leaf is
 * VD_CLASSES_LEAF. */
VD_MUST_USE vd_status vd_score_program(const vd_training *t, const vd_prompt_form *text,
                                       vd_program *out, vd_err *err);

/* The layout of a file's tensor, compared with the leaf that has the same numbers. */
typedef enum {
    VD_FILE_SAME,
    VD_FILE_CONVOLUTION, /* leaf [height, width, in, out], file [out, in, height, width] */
} vd_file_layout;

/* A leaf of the state, and the tensor that holds it in files of the model's family. */
typedef struct {
    char leaf[VD_NAME_SIZE];
    char tensor[VD_TENSOR_NAME_SIZE]; /* PEFT's name, for adapters */
    vd_file_layout layout;
} vd_file_name;

/* Gives one entry for each trained parameter and buffer in the state, in layout order; the caller
 * frees *out. VD_ERR_USAGE: the model's family has no files. */
VD_MUST_USE vd_status vd_training_names(const vd_training *training, vd_file_name **out,
                                        uint32_t *count, vd_err *err);

/* Gives the names of tensors of t->file that belong to another task than the model's: they are
 * neither read nor trained, nor part of what the training writes. There are *count of them; the
 * caller frees *out, also after a failure. */
VD_MUST_USE vd_status vd_training_left_out(const vd_training *t, const char ***out, uint32_t *count,
                                           vd_err *err);

/* Returns the most layers that a model can have; for resnet, blocks of all stages together. */
int64_t vd_layers_max(vd_model_kind kind);

/* Returns the bytes of an image record, its label included; 0 for models that read tokens. */
int64_t vd_record_size(const vd_model *model);

/* Returns whether the model predicts classes, so that an evaluation also gives the accuracy. */
bool vd_tells_classes(const vd_model *model);

/* Returns how many classes the model predicts. */
int64_t vd_classes_of(const vd_model *model);

/* Returns the tokens of a window: a sequence, after its class if the model predicts classes. */
int64_t vd_window_size(const vd_training *training);

/* Returns how many numbers the model's parameters have, for messages. */
int64_t vd_model_parameters(const vd_model *model);

/* Returns how many of these are trained; with adapters only theirs. */
int64_t vd_model_trained(const vd_model *model);

#endif
