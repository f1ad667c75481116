/* Reads a model's config.json, as transformers writes it, into a vd_model. */
#ifndef VD_JOB_CONFIG_H
#define VD_JOB_CONFIG_H

#include "models/models.h"

enum { VD_CONFIG_ELEMENTS_MAX = 1 << 16 }; /* limit on brackets, and on commas, in config.json */

/* What the job says about the model besides config.json. */
typedef struct {
    float dropout;   /* replaces the file's rates; below 0: uses those, which must be equal */
    int64_t classes; /* bert, resnet: number of classes of a new head; 0: the file's head */
    int64_t pad;     /* bert: replaces the file's padding token; below 0: uses that */
} vd_config_choice;

/* Reads config.json of gpt2, llama, mistral, qwen2, qwen3, bert or resnet. A resnet's has the
 * fields of transformers' ResNetConfig, though its weights are torchvision's. Sets all of `out`
 * that the file decides; mask_rate, mask, image and lora are left as the caller set them.
 *
 * A field is either used, or known to have no influence, or must have the one value that this
 * program computes; any other field is an error that names it. VD_ERR_USAGE; the error begins with
 * `name`. */
VD_MUST_USE vd_status vd_config_read(const void *text, size_t size, const char *name,
                                     const vd_config_choice *choice, vd_model *out, vd_err *err);

/* Reads the tokens that end a text: eos_token_id, one or a list, of config.json or
 * generation_config.json. Keeps those of the vocabulary, each once. VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_config_stops(const void *text, size_t size, const char *name,
                                      int64_t vocab, int64_t stop[VD_STOPS_MAX], int64_t *count,
                                      vd_err *err);

/* Appends what config.json says of a model, as text with only one spelling: a line for each size
 * and switch, reals by their bits. It leaves out what a job may replace (dropout, padding, masking,
 * images, adapters). Programs of pretrained models commit to this text. */
void vd_config_meaning(const vd_model *model, vd_buf *out);

#endif
