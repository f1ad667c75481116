/* The interface between a model and what makes a program of it. Private to models/. */
#ifndef VD_MODEL_PRIVATE_H
#define VD_MODEL_PRIVATE_H

#include "models/models.h"
#include "verde/graph/build.h"

/* Parameters that are trained: one node reads the norms of all their gradients. */
enum {
    VD_TRAINED_MAX = RO_MAX_INPUTS,
    VD_SCOPE_SIZE = 64, /* with the final NUL */
};

/* This says what a layer does with a parameter. */
typedef enum {
    VD_ROLE_OTHER,
    VD_ROLE_WEIGHT,          /* of a product, [out, in] */
    VD_ROLE_WEIGHT_BY_INPUT, /* of a product, [in, out] */
    VD_ROLE_BIAS,
    VD_ROLE_LORA_A, /* [rank, in], right after the layer's weight and bias */
    VD_ROLE_LORA_B, /* [out, rank] */
} vd_role;

/* A parameter: normal with this deviation, or filled with `value` if the deviation is 0. */
typedef struct {
    char name[VD_NAME_SIZE - 2]; /* ".m" and ".v" are appended for the optimizer's state */
    ro_shape shape;
    float deviation, value;
    vd_role role;
    char tensor[VD_TENSOR_NAME_SIZE]; /* its name in files; "": they have none */
    vd_file_layout layout;
    bool may_lack; /* files may lack its tensor: then it starts from random numbers */
    bool frozen;   /* read from the data, no part of the state */
    uint32_t data; /* the data tensor that it is or starts from; 0: none */
} vd_parameter;

typedef struct {
    vd_parameter *parameter; /* owned */
    uint32_t count, capacity;
    uint32_t taken;       /* by layers; after these come buffers that an evaluation reads */
    vd_parameter *buffer; /* state that is not trained, such as running statistics; owned */
    uint32_t buffer_count, buffer_capacity;
    uint32_t *trained; /* parameters that are not frozen: leaf i is parameter trained[i]; owned */
    uint32_t trained_count;
    const vd_lora *lora;
    uint32_t matched;               /* bit i: lora->target[i] names a layer */
    char products[200];             /* the names that a target may have, once each, for errors */
    bool failed;                    /* there was no memory */
    char scope[VD_SCOPE_SIZE];      /* begins the names of what is declared */
    char file_scope[VD_SCOPE_SIZE]; /* begins their names in files */
} vd_parameters;

/* Keys and values that attention keeps for the rows to come, of one sequence. */
typedef struct {
    int64_t length; /* S: positions that there is room for */
    /* i32 [1]: the position of the pass's only row, which sees what is kept and itself. VD_NONE:
     * the rows are positions 0, 1, ... and see each other. */
    vd_value first;
    vd_value place;  /* i32 [1], with `first`: where the row is kept; -1: nowhere */
    vd_value *layer; /* keys and values of each layer, f32 [1, S, G D]; the pass puts the next */
} vd_cache;

/* The inputs of one micro-batch's forward pass. */
typedef struct {
    const vd_training *training;
    const vd_parameters *declared;
    const vd_value *parameter; /* the value of each */
    vd_value tokens, targets;  /* i32 [b, T]; or images f32 [b, H, W, 3] and labels i32 [b] */
    /* Only for models that hide tokens, f32 [b, T]: 1 where a token is no padding, and where it is
     * hidden; +0 elsewhere. */
    vd_value real, hidden;
    vd_value *buffer; /* each buffer's value so far; the forward pass puts the next */
    vd_cache *cache;  /* NULL: attention keeps nothing */
} vd_forward;

/* Where a forward pass stands: it takes parameters and buffers in declared order. */
typedef struct {
    vd_builder *b;
    const vd_forward *in;
    uint32_t next, next_buffer;
    vd_value table;  /* of token embeddings: `rows` sets it, `logits` reads it */
    vd_value logits; /* [rows, ..., classes], of models that tell classes; else VD_NONE */
} vd_pass;

/* A tensor that files may have beside the parameter that it is a copy of; both by their names
 * there.
 */
typedef struct {
    const char *tensor, *of;
} vd_file_copy;

typedef struct {
    /* Checks combinations of sizes; NULL: there are none. */
    vd_status (*check)(const vd_training *training, vd_err *err);
    /* Appends all parameters in layout order. */
    void (*declare)(const vd_model *model, vd_parameters *out);
    /* Emits the forward pass; returns one loss per token, +0 where there is none. NULL: the model
     * names the next token, and has `rows` and `logits`. */
    vd_value (*forward)(vd_pass *p);
    /* Emits all blocks: f32 [b, T, channels]. */
    vd_value (*rows)(vd_pass *p);
    /* Emits what follows the blocks: of rows [b, T, channels] the logits [b, T, vocab]. */
    vd_value (*logits)(vd_pass *p, vd_value rows);
    int64_t layers_max; /* for which there is room among the parameters; blocks, with images */
    bool images;        /* reads images and labels instead of tokens */
    /* Replaces tokens and targets by what the model sees and what it must name, and sets `real` and
     * `hidden`: only what is hidden has a loss. NULL: every loss counts. */
    void (*hide)(vd_builder *b, vd_forward *in);
    /* Files of the bare model lack this beginning of its tensors' names; NULL: there is none. */
    const char *base;
    /* Buffers without numbers of their own, such as masks: patterns of fnmatch, the last one NULL,
     * as in the next list. */
    const char *const *buffers;
    /* Parameters that files may have and that the model does not, by what it tells: they are left
     * out of what it becomes, and whoever runs it is told. */
    const char *const *left_out[2];
    const vd_file_copy *copies; /* must be equal, to the bit; the last one NULL */
} vd_model_type;

extern const vd_model_type vd_gpt2, vd_mlp, vd_llama, vd_resnet, vd_bert;

const vd_model_type *vd_type_of(const vd_model *model); /* NULL: there is no such model */

/* ---- parameters.c: what a model declares ---- */

/* All that the model declares, with room for it. Frees nothing that is owned on failure. */
VD_MUST_USE vd_status vd_parameters_of(const vd_model *model, vd_parameters *out, vd_err *err);
/* No parameter is trained any more, and buffers are parameters, which stay as they are. */
VD_MUST_USE vd_status vd_freeze_all(vd_parameters *all, vd_err *err);
void vd_parameters_free(vd_parameters *all);

/* Names of what is declared from now on begin with this, such as "h.3.", and in files with that. */
void vd_declare_scope(vd_parameters *out, const char *format, ...) VD_PRINTF(2, 3);
void vd_file_scope(vd_parameters *out, const char *format, ...) VD_PRINTF(2, 3);
/* `like` has all but the name; `tensor` is the name in files, or NULL. */
void vd_declare(vd_parameters *out, const char *name, const char *tensor, vd_parameter like);
/* Filled with `like.value` at the start. */
void vd_declare_buffer(vd_parameters *out, const char *name, const char *tensor, vd_parameter like);

/* [rows, width], normal with deviation 0.02. */
void vd_declare_table(vd_parameters *out, const char *name, const char *tensor, int64_t rows,
                      int64_t width);

typedef struct {
    int64_t in, out;
    float deviation;
    bool bias;     /* zeros at the start */
    bool by_input; /* the weight is [in, out]; else [out, in] */
    bool may_lack; /* as vd_parameter has it */
} vd_linear_shape;

/* NAME.weight, NAME.bias, and if NAME is a target of LoRA the adapter's NAME.lora_a, normal, and
 * NAME.lora_b, zeros. In files: TENSOR.weight and TENSOR.bias. */
void vd_declare_linear(vd_parameters *out, const char *name, const char *tensor,
                       vd_linear_shape shape);
/* NAME.gamma, ones, and NAME.beta, zeros. In files: TENSOR.weight and TENSOR.bias. */
void vd_declare_norm(vd_parameters *out, const char *name, const char *tensor, int64_t width);
/* NAME.gamma, ones. In files: TENSOR.weight. */
void vd_declare_gain(vd_parameters *out, const char *name, const char *tensor, int64_t width);

/* ---- files.c: where parameters come from ---- */

/* Finds each parameter's tensor, and numbers those that are read as data tensors, from 1 on. */
VD_MUST_USE vd_status vd_find_tensors(const vd_training *t, vd_parameters *all, vd_err *err);
/* Puts those tensors into a program that has room for them after its first data tensor. */
void vd_put_tensors(const vd_training *t, const vd_parameters *all, vd_program *out);
/* Data tensors of the program. */
uint32_t vd_data_count(const vd_parameters *all);
/* Returns the first value of a leaf that starts from a file's tensor. */
vd_value vd_from_tensor(vd_builder *b, const vd_parameter *p);

/* "64,12" */
enum { VD_SHAPE_TEXT = 96 };
void vd_shape_text(const ro_shape *shape, char text[VD_SHAPE_TEXT]);

/* ---- start.c: the state that a training goes on from ---- */

/* For an evaluation, this numbers the state's tensors that parameters are, which follow those of
 * files; none may be left, and every parameter must have a tensor. */
VD_MUST_USE vd_status vd_freeze_start(const vd_training *t, vd_parameters *all, vd_err *err);
/* Is it one of the state's tensors? */
bool vd_in_start(const vd_training *t, const vd_parameter *p);

/* Does it have the program's leaves, which are laid out, and no others? */
VD_MUST_USE vd_status vd_check_start(const vd_training *t, const vd_parameters *all,
                                     const vd_program *program, vd_err *err);
/* Makes its tensors data tensors of the program, from number `first` on. */
void vd_put_start(const vd_training *t, uint32_t first, vd_program *out);
/* A leaf's value at the start, of its type; VD_NONE: the state has no such tensor. */
vd_value vd_from_start(vd_builder *b, const vd_training *t, uint32_t first, const vd_leaf *leaf);

/* ---- layers.c: what a forward pass takes ---- */

/* The number of the micro-batch in names: of one of many, the iteration's. */
const char *vd_micro_name(const vd_training *t);
/* Scope of nodes: "mMICRO.PART" and "mMICRO.h.LAYER.PART". */
void vd_pass_scope(const vd_pass *p, const char *part);
void vd_block_scope(const vd_pass *p, int64_t layer, const char *part);
/* One loss per token of a model that has `rows`: f32 [b, T]. */
vd_value vd_next_losses(vd_pass *p);
/* A forward pass that has taken fewer parameters than the model declares is an error. */
void vd_check_taken(const vd_pass *p);
/* The next parameter's value. */
vd_value vd_take(vd_pass *p);
/* Rows of a table, whose numbers may be of 16 bits, as f32. */
vd_value vd_look_up(const vd_pass *p, const char *name, vd_value table, vd_value ids);
/* What was declared by the function of the like name, applied to x. */
vd_value vd_take_linear(vd_pass *p, vd_value x);
vd_value vd_take_norm(vd_pass *p, vd_value x);
vd_value vd_take_gain(vd_pass *p, vd_value x);
/* The function of the model's feed-forward blocks. */
vd_value vd_take_activation(const vd_pass *p, vd_value x);
/* 0..T-1, or the position of the only row, i32. */
vd_value vd_positions(const vd_pass *p);
/* A place where units are dropped: 0 is the embedding, then three per layer. */
vd_dropout_attr vd_dropout_at(const vd_pass *p, int64_t site);

/* ---- cache.c: attention that keeps keys and values ---- */

/* Attention of a decoder's block: as vd_grouped_attention, or with a cache of what is kept, which
 * is put into it. `qkv` are rows f32 [b, T, heads D], [b, T, kv_heads D] twice. */
/* Numbers of a kept row of keys, and of values: G D. */
int64_t vd_kept_width(const vd_model *model);
vd_value vd_attend(const vd_pass *p, int64_t layer, const vd_value qkv[3], const vd_heads *heads);

/* heads divides channels; a sequence fits the learned positions. */
vd_status vd_check_positions(const vd_training *training, vd_err *err);
int64_t vd_hidden_of(const vd_model *model);
/* sqrt(2 / fan_in): He et al., 2015, before a ReLU. */
float vd_he_deviation(int64_t fan_in);

/* ---- training.c: what all programs need ---- */

/* Makes room for the graph's outputs, one for each leaf. */
vd_status vd_allocate_outputs(vd_builder *b);
/* Who reads the program's bytes refuses more of them; `what` is too many then. */
VD_MUST_USE vd_status vd_check_program(const vd_program *program, const char *what, vd_err *err);

/* ---- given.c: a model whose parameters are all given ---- */

/* All parameters, frozen, each with its data tensor, the first of which has number `first`. */
VD_MUST_USE vd_status vd_given_parameters(const vd_training *t, uint32_t first, vd_parameters *out,
                                          vd_err *err);
/* Makes room for data tensors, `first` of which the caller fills in, and puts the parameters'
 * after them. */
VD_MUST_USE vd_status vd_put_given(const vd_training *t, uint32_t first, const vd_parameters *all,
                                   vd_program *out, vd_err *err);
/* A forward pass over tokens, i32 [1, T], with the values of parameters that are frozen. */
typedef struct {
    vd_training training; /* of `sequence` T */
    vd_forward in;
    vd_pass pass;
    vd_value *parameter; /* owned */
} vd_given_pass;
/* *out must not move. vd_given_pass_free frees it, also after a failure. */
void vd_given_pass_open(vd_builder *b, const vd_training *t, const vd_parameters *all,
                        vd_value tokens, vd_cache *cache, vd_given_pass *out);
void vd_given_pass_free(vd_given_pass *pass);

/* ---- choose.c: the next token ---- */

/* Values of a step that makes a token. */
typedef struct {
    const vd_generation *how;
    vd_value logits; /* f32 [1, V] */
    vd_value seen;   /* i32 [V]; VD_NONE: there is no penalty */
    vd_value step;   /* i32 [1]: tokens made before */
    vd_value first;  /* i32 [1]: position of the token that the logits follow */
    vd_value key;    /* i32 [2], if tokens are drawn */
} vd_choosing;

/* i32 [1] */
vd_value vd_choose_token(vd_builder *b, const vd_choosing *c);
/* Log-probabilities by the logits: f32 [1] of the chosen token; and the `best` likeliest tokens,
 * i32 [1, best], with theirs, f32 [1, best]. */
typedef struct {
    vd_value chosen, best, best_chosen;
} vd_likely;
vd_likely vd_tell_likely(vd_builder *b, const vd_choosing *c, vd_value token);
/* i32 [1] */
vd_value vd_whole(vd_builder *b, const char *name, int64_t value);

/* ---- inputs.c, step.c, optimizer.c ---- */

/* The values of parameters that are read from data; others are left as they are. */
void vd_frozen_values(vd_builder *b, const vd_parameters *all, vd_value *parameter);

/* Whether positions of the data are hidden from the model, which guesses them. */
bool vd_hides_tokens(const vd_model *m);
/* The nodes that read a micro-batch, and their values; no parameters. */
vd_forward vd_read_inputs(vd_builder *b, const vd_training *t);
/* An image f32 [1, H, W, 3] of its bytes i32 [3 H W], plane by plane, as a record of data has it.
 */
vd_value vd_given_image(vd_builder *b, const vd_model *m, vd_value bytes);

/* Outputs of the graph of a step: all nodes of all micro-batches and of the optimizer. */
void vd_build_step(vd_builder *b, const vd_training *t, const vd_parameters *declared);

/* Layout: parameters, their m, then for adamw their v and the two bias corrections. All but the
 * corrections are of the type in which the training stores them. */
void vd_optimizer_leaves(vd_builder *b, const vd_training *t, const vd_parameters *all);

/* One step: sets the graph's outputs, in that layout. */
void vd_optimize(vd_builder *b, const vd_training *t, uint32_t parameters,
                 const vd_value *gradient);

/* Philox streams: nothing shares one (SPEC 10.1). */
#define VD_STREAM_BATCH                      INT64_C(0)
#define VD_STREAM_MASK(micro_batch)          (INT64_C(1) + (micro_batch))
#define VD_STREAM_INIT(parameter)            (INT64_C(0x10000000) + (parameter))
#define VD_STREAM_DROPOUT(micro_batch, site) (INT64_C(0x20000000) + (micro_batch)*65536 + (site))
#define VD_STREAM_SAMPLE                     INT64_C(0x30000000)
#define VD_STREAM_STORE(leaf)                (INT64_C(0x40000000) + (leaf))

#endif
