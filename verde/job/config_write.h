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

/* Appends the text of another config.json, with `dtype` ("float32", "bfloat16") as the type of the
 * files. VD_ERR_USAGE: it is no JSON object. */
VD_MUST_USE vd_status vd_config_set_dtype(const void *text, size_t size, const char *dtype,
                                          vd_buf *out, vd_err *err);

#endif
