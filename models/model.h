/* The interface of models to the code that builds programs from them. Private to models/. */
#ifndef VD_MODEL_PRIVATE_H
#define VD_MODEL_PRIVATE_H

#include "models/models.h"
#include "verde/graph/build.h"

/* The most trained parameters: one node reads the norms of all their gradients. */
enum {
    VD_TRAINED_MAX = RO_MAX_INPUTS,
    VD_SCOPE_SIZE = 64, /* with the final NUL */
};

/* The use that a layer makes of a parameter. */
typedef enum {
    VD_ROLE_OTHER,
    VD_ROLE_WEIGHT,          /* of a matrix product, [out, in] */
    VD_ROLE_WEIGHT_BY_INPUT, /* of a matrix product, [in, out] */
    VD_ROLE_BIAS,
    VD_ROLE_LORA_A, /* [rank, in], right after the layer's weight and bias */
    VD_ROLE_LORA_B, /* [out, rank] */
} vd_role;

/* A parameter. It starts as normal numbers with this standard deviation, or filled with `value` if
 * the deviation is 0. */
typedef struct {
    char name[VD_NAME_SIZE - 2]; /* ".m" and ".v" are appended for the optimizer's state */
    ro_shape shape;
    float deviation, value;
    vd_role role;
    char tensor[VD_TENSOR_NAME_SIZE]; /* the tensor's name in files; "": not in files */
    vd_file_layout layout;
    bool may_lack; /* true: if files lack its tensor, it starts from random numbers */
    bool frozen;   /* true: read from the data, and no part of the state */
    uint32_t data; /* the data tensor that it is, or that it starts from; 0: none */
} vd_parameter;

typedef struct {
    vd_parameter *parameter; /* owned */
    uint32_t count, capacity;
    uint32_t taken;       /* parameters of layers; the rest are buffers that an evaluation reads */
    vd_parameter *buffer; /* state that is not trained, such as running statistics; owned */
    uint32_t buffer_count, buffer_capacity;
    uint32_t *trained; /* indices of parameters that are not frozen: leaf i is trained[i]; owned */
    uint32_t trained_count;
    const vd_lora *lora;
    uint32_t matched;               /* bit i: some layer is called lora->target[i] */
    char products[200];             /* names of possible LoRA targets, for error messages */
    bool failed;                    /* there was not enough memory */
    char scope[VD_SCOPE_SIZE];      /* prefix of the names of parameters that are declared */
    char file_scope[VD_SCOPE_SIZE]; /* prefix of their names in files */
} vd_parameters;

/* Keys and values of one sequence that attention keeps for later rows. */
typedef struct {
    int64_t length; /* S: the number of positions that it has room for */
    /* i32 [1]: the position of the pass's only row, which attends to the kept rows and itself.
     * VD_NONE: the rows have positions 0, 1, ... and attend to each other. */
    vd_value first;
    vd_value place;  /* i32 [1], used with `first`: where to keep the row; -1: nowhere */
    vd_value *layer; /* keys and values of each layer, f32 [1, S, G D]; the pass replaces them */
} vd_cache;

/* The inputs of one micro-batch's forward pass. */
typedef struct {
    const vd_training *training;
    const vd_parameters *declared;
    const vd_value *parameter; /* the value of each parameter */
    vd_value tokens, targets;  /* i32 [b, T]; or images f32 [b, H, W, 3] and labels i32 [b] */
    /* Only for models that hide tokens, f32 [b, T]: `real` is 1 where a token is not padding,
     * `hidden` is 1 where it is hidden; +0 elsewhere. */
    vd_value real, hidden;
    vd_value *buffer; /* the current value of each buffer; the forward pass replaces it */
    vd_cache *cache;  /* NULL: attention keeps no keys and values */
} vd_forward;

/* The progress of a forward pass, which takes parameters and buffers as they were declared. */
typedef struct {
    vd_builder *b;
    const vd_forward *in;
    uint32_t next, next_buffer;
    vd_value table;  /* the token embedding; `rows` sets it, `logits` reads it */
    vd_value logits; /* [rows, ..., classes], for models that predict classes; else VD_NONE */
} vd_pass;

/* A tensor of files that is a copy of a parameter; both by their names there. */
typedef struct {
    const char *tensor, *of;
} vd_file_copy;

typedef struct {
    /* Checks combinations of sizes; NULL if there is nothing to check. */
    vd_status (*check)(const vd_training *training, vd_err *err);
    /* Appends all parameters in layout order. */
    void (*declare)(const vd_model *model, vd_parameters *out);
    /* Emits the forward pass; returns one loss per token, +0 where there is none. NULL: the model
     * predicts the next token by `rows` and `logits`. */
    vd_value (*forward)(vd_pass *p);
    /* Emits all blocks; returns f32 [b, T, channels]. */
    vd_value (*rows)(vd_pass *p);
    /* Emits the layers after the blocks: from rows [b, T, channels] the logits [b, T, vocab]. */
    vd_value (*logits)(vd_pass *p, vd_value rows);
    int64_t layers_max; /* most layers within VD_TRAINED_MAX; with images, blocks */
    bool images;        /* true: reads images and labels instead of tokens */
    /* Replaces tokens by what the model sees, with some of them hidden, and targets by what it must
     * predict, and sets `real` and `hidden`. Only hidden tokens have a loss. NULL: every token
     * does. */
    void (*hide)(vd_builder *b, vd_forward *in);
    /* The prefix that tensor names lack in files of the bare model; NULL: none. */
    const char *base;
    /* Tensors of files that carry no information, such as masks: fnmatch patterns, the last one
     * NULL. left_out has such lists too. */
    const char *const *buffers;
    /* Indexed by the model's task: parameters that files may have and that a model for this task
     * does not use. They are left out of what the training writes, and the user is told. */
    const char *const *left_out[2];
    const vd_file_copy *copies; /* must be equal to the bit; the list ends with NULL */
} vd_model_type;

extern const vd_model_type vd_gpt2, vd_mlp, vd_llama, vd_resnet, vd_bert;

const vd_model_type *vd_type_of(const vd_model *model); /* returns NULL if there is no such model */

/* ---- parameters.c: the parameters that a model declares ---- */

/* Lists a model's parameters; vd_parameters_free frees them. On failure *out owns nothing. */
VD_MUST_USE vd_status vd_parameters_of(const vd_model *model, vd_parameters *out, vd_err *err);
/* Freezes all parameters, and turns buffers into parameters, which no longer change. */
VD_MUST_USE vd_status vd_freeze_all(vd_parameters *all, vd_err *err);
void vd_parameters_free(vd_parameters *all);

/* Set the prefix of names of later declarations, such as "h.3.", and of their names in files. */
void vd_declare_scope(vd_parameters *out, const char *format, ...) VD_PRINTF(2, 3);
void vd_file_scope(vd_parameters *out, const char *format, ...) VD_PRINTF(2, 3);
/* `like` has all members but the names; `tensor` is the name in files, or NULL. */
void vd_declare(vd_parameters *out, const char *name, const char *tensor, vd_parameter like);
/* Declares a buffer, which starts filled with `like.value`. */
void vd_declare_buffer(vd_parameters *out, const char *name, const char *tensor, vd_parameter like);

/* Declares a table [rows, width], normal with standard deviation 0.02. */
void vd_declare_table(vd_parameters *out, const char *name, const char *tensor, int64_t rows,
                      int64_t width);

typedef struct {
    int64_t in, out;
    float deviation;
    bool bias;     /* true: there is a bias, which starts as zeros */
    bool by_input; /* the weight is [in, out]; else [out, in] */
    bool may_lack; /* see vd_parameter */
} vd_linear_shape;

/* Declares NAME.weight, NAME.bias and, if NAME is a target of LoRA, the adapter's NAME.lora_a,
 * which starts normal, and NAME.lora_b, which starts as zeros. In files: TENSOR.weight and
 * TENSOR.bias. */
void vd_declare_linear(vd_parameters *out, const char *name, const char *tensor,
                       vd_linear_shape shape);
/* Declares NAME.gamma, which starts as ones, and NAME.beta, zeros. In files: TENSOR.weight and
 * TENSOR.bias. */
void vd_declare_norm(vd_parameters *out, const char *name, const char *tensor, int64_t width);
/* Declares NAME.gamma, which starts as ones. In files: TENSOR.weight. */
void vd_declare_gain(vd_parameters *out, const char *name, const char *tensor, int64_t width);

/* ---- files.c: where parameters come from ---- */

/* Finds each parameter's tensor, and numbers those that are read as data tensors, from 1 on. */
VD_MUST_USE vd_status vd_find_tensors(const vd_training *t, vd_parameters *all, vd_err *err);
/* Copies those tensors into a program that has room for them after its first data tensor. */
void vd_put_tensors(const vd_training *t, const vd_parameters *all, vd_program *out);
/* Returns the number of the program's data tensors, data tensor 0 included. */
uint32_t vd_data_count(const vd_parameters *all);
/* Emits the first value of a leaf that starts from a file's tensor. */
vd_value vd_from_tensor(vd_builder *b, const vd_parameter *p);

/* Writes a shape as "64,12". */
enum { VD_SHAPE_TEXT = 96 };
void vd_shape_text(const ro_shape *shape, char text[VD_SHAPE_TEXT]);

/* ---- start.c: the state that a training continues from ---- */

/* For an evaluation: numbers the state's tensors that are parameters, after those of files. Every
 * tensor of the state must be a parameter, and every parameter must have a tensor. */
VD_MUST_USE vd_status vd_freeze_start(const vd_training *t, vd_parameters *all, vd_err *err);
/* Returns whether the parameter is one of the state's tensors. */
bool vd_in_start(const vd_training *t, const vd_parameter *p);

/* Checks that the state has the leaves of the program, whose layout is complete, and no others. */
VD_MUST_USE vd_status vd_check_start(const vd_training *t, const vd_parameters *all,
                                     const vd_program *program, vd_err *err);
/* Makes the state's tensors data tensors of the program, from number `first` on. */
void vd_put_start(const vd_training *t, uint32_t first, vd_program *out);
/* Emits a leaf's first value, in the leaf's type; VD_NONE: the state has no such tensor. */
vd_value vd_from_start(vd_builder *b, const vd_training *t, uint32_t first, const vd_leaf *leaf);

/* ---- layers.c: layers of a forward pass, with the parameters that they take ---- */

/* Returns the micro-batch's number in names; of several, a placeholder for the iteration's. */
const char *vd_micro_name(const vd_training *t);
/* Set the scope of nodes: "mMICRO.PART" and "mMICRO.h.LAYER.PART". */
void vd_pass_scope(const vd_pass *p, const char *part);
void vd_block_scope(const vd_pass *p, int64_t layer, const char *part);
/* Emits one loss per token for a model that has `rows`: f32 [b, T]. */
vd_value vd_next_losses(vd_pass *p);
/* Fails if a forward pass has taken fewer parameters than the model declares. */
void vd_check_taken(const vd_pass *p);
/* Returns the next parameter's value. */
vd_value vd_take(vd_pass *p);
/* Looks up rows of a table, which may be stored in 16 bits, and returns them as f32. */
vd_value vd_look_up(const vd_pass *p, const char *name, vd_value table, vd_value ids);
/* Apply the next layer to x, declared by vd_declare_linear, vd_declare_norm or vd_declare_gain. */
vd_value vd_take_linear(vd_pass *p, vd_value x);
vd_value vd_take_norm(vd_pass *p, vd_value x);
vd_value vd_take_gain(vd_pass *p, vd_value x);
/* Applies the activation of the model's feed-forward blocks. */
vd_value vd_take_activation(const vd_pass *p, vd_value x);
/* Emits 0..T-1, or the position of the only row, i32. */
vd_value vd_positions(const vd_pass *p);
/* Returns the dropout of a site: 0 is the embedding, then there are three per layer. */
vd_dropout_attr vd_dropout_at(const vd_pass *p, int64_t site);

/* ---- cache.c: attention that keeps keys and values ---- */

/* Returns the numbers in a kept row of keys, or of values: G D. */
int64_t vd_kept_width(const vd_model *model);
/* Emits attention of a decoder's block: vd_grouped_attention, or attention that adds its keys and
 * values to the pass's cache. qkv: rows f32 [b, T, heads D], and twice [b, T, kv_heads D]. */
vd_value vd_attend(const vd_pass *p, int64_t layer, const vd_value qkv[3], const vd_heads *heads);

/* Checks that heads divides channels, and that a sequence fits the learned positions. */
vd_status vd_check_positions(const vd_training *training, vd_err *err);
int64_t vd_hidden_of(const vd_model *model);
/* Returns sqrt(2 / fan_in), for weights before a ReLU (He et al., 2015). */
float vd_he_deviation(int64_t fan_in);

/* ---- training.c: functions that all kinds of programs need ---- */

/* Allocates the graph's outputs, one for each leaf. */
vd_status vd_allocate_outputs(vd_builder *b);
/* Refuses a program whose encoding is too long for readers: there are too many `what`. */
VD_MUST_USE vd_status vd_check_program(const vd_program *program, const char *what, vd_err *err);

/* ---- given.c: a model whose parameters are all given ---- */

/* Gives all parameters, frozen, each with a data tensor; the first has number `first`. */
VD_MUST_USE vd_status vd_given_parameters(const vd_training *t, uint32_t first, vd_parameters *out,
                                          vd_err *err);
/* Makes room for the data tensors: `first` of them, which the caller fills in, and then the
 * parameters', which this fills in. */
VD_MUST_USE vd_status vd_put_given(const vd_training *t, uint32_t first, const vd_parameters *all,
                                   vd_program *out, vd_err *err);
/* A forward pass over tokens, i32 [1, T], with frozen parameters. */
typedef struct {
    vd_training training; /* a copy, with `sequence` T */
    vd_forward in;
    vd_pass pass;
    vd_value *parameter; /* owned */
} vd_given_pass;
/* *out must not move afterwards. The caller frees it by vd_given_pass_free, also after a
 * failure. */
void vd_given_pass_open(vd_builder *b, const vd_training *t, const vd_parameters *all,
                        vd_value tokens, vd_cache *cache, vd_given_pass *out);
void vd_given_pass_free(vd_given_pass *pass);

/* ---- choose.c: choosing the next token ---- */

/* Inputs of choosing a token in a step. */
typedef struct {
    const vd_generation *how;
    vd_value logits; /* f32 [1, V] */
    vd_value seen;   /* i32 [V]; VD_NONE: no repetition penalty */
    vd_value step;   /* i32 [1]: how many tokens were made before */
    vd_value first;  /* i32 [1]: position of the token that the logits come from */
    vd_value key;    /* i32 [2], needed if tokens are drawn */
} vd_choosing;

/* Emits the chosen token, i32 [1]. */
vd_value vd_choose_token(vd_builder *b, const vd_choosing *c);
/* Log-probabilities: `chosen`, f32 [1], of the chosen token; `best`, i32 [1, how->best], the most
 * likely tokens, and `best_chosen`, f32 [1, how->best], of those. */
typedef struct {
    vd_value chosen, best, best_chosen;
} vd_likely;
vd_likely vd_tell_likely(vd_builder *b, const vd_choosing *c, vd_value token);
/* Emits an integer constant, i32 [1]. */
vd_value vd_whole(vd_builder *b, const char *name, int64_t value);

/* ---- inputs.c, step.c, optimizer.c ---- */

/* Sets the values of frozen parameters, which are read from data; others stay as they are. */
void vd_frozen_values(vd_builder *b, const vd_parameters *all, vd_value *parameter);

/* Returns whether the model learns by predicting hidden tokens. */
bool vd_hides_tokens(const vd_model *m);
/* Emits the nodes that read a micro-batch; `parameter` stays unset. */
vd_forward vd_read_inputs(vd_builder *b, const vd_training *t);
/* Emits an image f32 [1, H, W, 3] from i32 [3 H W]: its bytes plane by plane, as in a record. */
vd_value vd_given_image(vd_builder *b, const vd_model *m, vd_value bytes);

/* Sets the graph's outputs for one step: all micro-batches and the optimizer. */
void vd_build_step(vd_builder *b, const vd_training *t, const vd_parameters *declared);

/* Adds the leaves of the optimizer's layout: trained parameters, their m, then for adamw their v
 * and the two bias corrections. All but the corrections have the type in which the training stores
 * them. */
void vd_optimizer_leaves(vd_builder *b, const vd_training *t, const vd_parameters *all);

/* Emits the updates of one step: sets the graph's outputs, in that layout. */
void vd_optimize(vd_builder *b, const vd_training *t, uint32_t parameters,
                 const vd_value *gradient);

/* Philox streams; no two uses share one (SPEC 10.1). */
#define VD_STREAM_BATCH                      INT64_C(0)
#define VD_STREAM_MASK(micro_batch)          (INT64_C(1) + (micro_batch))
#define VD_STREAM_INIT(parameter)            (INT64_C(0x10000000) + (parameter))
#define VD_STREAM_DROPOUT(micro_batch, site) (INT64_C(0x20000000) + (micro_batch)*65536 + (site))
#define VD_STREAM_SAMPLE                     INT64_C(0x30000000)
#define VD_STREAM_STORE(leaf)                (INT64_C(0x40000000) + (leaf))

#endif
