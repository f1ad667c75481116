/* Writes config.json of a model that was trained here from the start, so that transformers loads
 * it. */
#ifndef VD_JOB_CONFIG_WRITE_H
#define VD_JOB_CONFIG_WRITE_H

#include "models/models.h"

/* Returns whether transformers has an equal model: gpt2, and llama without extensions. */
bool vd_config_can_write(const vd_model *model);
/* Appends config.json of such a model; vd_config_read reads the same model back. `sequence` is the
 * length that it was trained on, for models without a limit of their own. */
VD_MUST_USE vd_status vd_config_write(const vd_model *model, int64_t sequence, vd_buf *out,
                                      vd_err *err);

/* Appends PEFT's adapter_config.json. `base` is where the adapted model is; `names` are those of
 * the adapters (vd_training_names). */
VD_MUST_USE vd_status vd_adapter_config_write(const vd_model *model, const char *base,
                                              const vd_file_name *names, uint32_t count,
                                              vd_buf *out, vd_err *err);
/* Returns whether two such texts describe the same adapters, wherever the model is. */
bool vd_adapter_config_equal(const vd_buf *a, const vd_buf *b);

/* What training changes in an existing config.json. */
typedef struct {
    const char *dtype;     /* of the files: "float32" or "bfloat16"; NULL: unchanged */
    int64_t classes;       /* classes of a new head; 0: no new head */
    const vd_model *model; /* the trained model, for `architectures`; NULL: unchanged */
} vd_config_change;

/* Appends config.json with these changes. VD_ERR_USAGE: the text is no JSON object. */
VD_MUST_USE vd_status vd_config_changed(const void *text, size_t size,
                                        const vd_config_change *change, vd_buf *out, vd_err *err);

#endif
