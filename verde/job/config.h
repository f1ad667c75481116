/* config.json of a model that was trained elsewhere, as transformers writes it: to a vd_model. */
#ifndef VD_JOB_CONFIG_H
#define VD_JOB_CONFIG_H

#include "models/models.h"

enum { VD_CONFIG_ELEMENTS_MAX = 1 << 16 }; /* brackets, and commas, of config.json */

/* What the job says about the model besides its file. */
typedef struct {
    float dropout;   /* in place of the file's rates, which must be equal else; below 0: theirs */
    int64_t classes; /* bert, resnet: a new last product for so many classes; 0: the file's */
    int64_t pad;     /* bert: in place of the file's; below 0: that */
} vd_config_choice;

/* Reads config.json of gpt2, llama, mistral, qwen2, qwen3, bert, or resnet, which has the fields of
 * transformers' ResNetConfig and stands for torchvision's files. Sets all of `out` that is about
 * the file; mask_rate, mask, image and lora are the caller's.
 *
 * Each field is used, or known to have no influence, or must have the one value that this program
 * computes; any other field is an error that names it. VD_ERR_USAGE; `name` stands before it. */
VD_MUST_USE vd_status vd_config_read(const void *text, size_t size, const char *name,
                                     const vd_config_choice *choice, vd_model *out, vd_err *err);

/* The tokens that end a text by eos_token_id, one or a list, of config.json or
 * generation_config.json: those of the vocabulary, each once. VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_config_stops(const void *text, size_t size, const char *name,
                                      int64_t vocab, int64_t stop[VD_STOPS_MAX], int64_t *count,
                                      vd_err *err);

/* Appends what config.json says of a model, in text of one spelling: a line for each size and
 * switch, reals by their bits. What a job may say in its place (dropout, padding, what is hidden,
 * images, adapters) is not in it. Programs of pretrained models commit to it. */
void vd_config_meaning(const vd_model *model, vd_buf *out);

#endif
