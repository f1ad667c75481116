/* The interface between a model and training.c. Private to models/. */
#ifndef VD_MODEL_PRIVATE_H
#define VD_MODEL_PRIVATE_H

#include "models/models.h"
#include "verde/graph/build.h"

/* A parameter: normal with this deviation, or filled with `value` if the deviation is 0. */
typedef struct {
    char name[VD_NAME_SIZE - 2]; /* ".m" and ".v" are appended for the optimizer's state */
    ro_shape shape;
    float deviation, value;
} vd_parameter;

enum { VD_PARAMETERS_MAX = RO_MAX_INPUTS };

typedef struct {
    vd_parameter *parameter; /* owned */
    uint32_t count;
    vd_parameter *buffer; /* state that is not trained, such as running statistics; owned */
    uint32_t buffer_count;
} vd_parameters;

/* The inputs of one micro-batch's forward pass. Parameter i is state value i. */
typedef struct {
    const vd_training *training;
    int64_t micro_batch;
    vd_value tokens, targets; /* i32 [b, T]; or images f32 [b, H, W, 3] and labels i32 [b] */
    /* Only for models that hide tokens, f32 [b, T]: 1 where a token is no padding, and where it is
     * hidden; +0 elsewhere. */
    vd_value real, hidden;
    vd_value *buffer; /* each buffer's value so far; the forward pass puts the next */
} vd_forward;

typedef struct {
    /* Checks combinations of sizes; NULL: there are none. */
    vd_status (*check)(const vd_training *training, vd_err *err);
    /* Appends all parameters in layout order. */
    void (*declare)(const vd_model *model, vd_parameters *out);
    /* Emits the forward pass; returns one loss per token, +0 where there is none. */
    vd_value (*forward)(vd_builder *b, const vd_forward *in);
    int64_t layers_max; /* for which there is room among the parameters; blocks, with images */
    bool images;        /* reads images and labels instead of tokens */
    /* Replaces tokens and targets by what the model sees and what it must name, and sets `real` and
     * `hidden`: only what is hidden has a loss. NULL: every loss counts. */
    void (*hide)(vd_builder *b, vd_forward *in);
} vd_model_type;

extern const vd_model_type vd_gpt2, vd_mlp, vd_llama, vd_resnet, vd_bert;

void vd_declare(vd_parameters *out, ro_shape shape, float deviation, float value,
                const char *format, ...) VD_PRINTF(5, 6);
/* Filled with `value` at the start. */
void vd_declare_buffer(vd_parameters *out, ro_shape shape, float value, const char *format, ...)
    VD_PRINTF(4, 5);
/* NAME.weight [from, to] and NAME.bias, zeros. */
void vd_declare_linear(vd_parameters *out, int64_t from, int64_t to, float deviation,
                       const char *format, ...) VD_PRINTF(5, 6);
/* NAME.gamma, ones, and NAME.beta, zeros. */
void vd_declare_norm(vd_parameters *out, int64_t width, const char *format, ...) VD_PRINTF(3, 4);
/* heads divides channels; a sequence fits the learned positions. */
vd_status vd_check_positions(const vd_training *training, vd_err *err);
/* sqrt(2 / fan_in): He et al., 2015, before a ReLU. */
float vd_he_deviation(int64_t fan_in);

/* Layout: parameters, their m, then for adamw their v and the two bias corrections. */
void vd_optimizer_leaves(vd_builder *b, const vd_optimizer *o, const vd_parameters *all);

/* One step of `steps`: sets the graph's outputs, in that layout. */
void vd_optimize(vd_builder *b, const vd_optimizer *o, int64_t steps, uint32_t parameters,
                 const vd_value *gradient);

/* Philox streams: nothing shares one (SPEC 10.1). */
#define VD_STREAM_BATCH                      INT64_C(0)
#define VD_STREAM_MASK(micro_batch)          (INT64_C(1) + (micro_batch))
#define VD_STREAM_INIT(parameter)            (INT64_C(0x10000000) + (parameter))
#define VD_STREAM_DROPOUT(micro_batch, site) (INT64_C(0x20000000) + (micro_batch)*65536 + (site))

#endif
