/* config.json of a model that began here, so that transformers loads it. */
#ifndef VD_JOB_CONFIG_WRITE_H
#define VD_JOB_CONFIG_WRITE_H

#include "models/models.h"

/* Is there a model of transformers that computes the same? gpt2, and llama in its plain form. */
bool vd_config_can_write(const vd_model *model);
/* Appends config.json of such a model, which vd_config_read takes for the same model. `sequence`:
 * tokens that it was trained on at a time, where the model itself has no limit. */
VD_MUST_USE vd_status vd_config_write(const vd_model *model, int64_t sequence, vd_buf *out,
                                      vd_err *err);

/* Appends adapter_config.json of a model with adapters, for PEFT. `base`: where the model lies that
 * they adapt; `names`: of its adapters (vd_training_names). */
VD_MUST_USE vd_status vd_adapter_config_write(const vd_model *model, const char *base,
                                              const vd_file_name *names, uint32_t count,
                                              vd_buf *out, vd_err *err);
/* Do two texts of it mean the same adapters, wherever the model lies? */
bool vd_adapter_config_equal(const vd_buf *a, const vd_buf *b);

/* What training changed of a model that has a config.json already. */
typedef struct {
    const char *dtype;     /* of the files now: "float32", "bfloat16"; NULL: as it was */
    int64_t classes;       /* a new last product for so many; 0: none */
    const vd_model *model; /* what was trained, which `architectures` name; NULL: as it was */
} vd_config_change;

/* Appends the text of that config.json, changed. VD_ERR_USAGE: it is no JSON object. */
VD_MUST_USE vd_status vd_config_changed(const void *text, size_t size,
                                        const vd_config_change *change, vd_buf *out, vd_err *err);

#endif
