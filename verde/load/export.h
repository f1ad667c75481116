/* Which leaves of a state are a model's weights, and what they are called in files. */
#ifndef VD_EXPORT_H
#define VD_EXPORT_H

#include "verde/exec/state_proof.h"
#include "verde/load/load.h"
#include "verde/weights/weights.h"

/* One tensor of an exported model. */
typedef struct {
    uint32_t leaf; /* of the program's layout */
    vd_weight_form form;
    vd_layout layout;
} vd_export_row;

/* The tensors that a program's model has in files. What an optimizer keeps (moments, corrections)
 * is left out. They have the names of transformers by `config`, the text of config.json; if it is
 * NULL, the leaves' own. VD_ERR_USAGE: it is of a model with other leaves. Who checks a model
 * trusts nobody for its names: leaves and shapes are the program's, and a leaf of a family has one
 * name. *rows is the caller's to free. */
VD_MUST_USE vd_status vd_export_rows(const vd_program *program, const vd_buf *config,
                                     vd_export_row **rows, uint32_t *count, vd_err *err);

/* Is the leaf one of what the optimizer keeps, not of the model? */
bool vd_is_optimizers(const vd_program *program, const char *leaf);
/* Are all its weights those of low-rank adapters? */
bool vd_is_adapter(const vd_program *program);
/* Is its state the score of an evaluation, not a model? */
bool vd_is_evaluation(const vd_program *program);
/* Is its state what a model said of a prompt, not a model? */
bool vd_is_of_prompt(const vd_program *program);

/* The text of config.json, or of adapter_config.json, in a directory; *there says whether there is
 * one. */
VD_MUST_USE vd_status vd_config_load(const char *dir, const char *name, vd_buf *out, bool *there,
                                     vd_err *err);
/* Puts config.json, of adapters adapter_config.json, and what goes with them, for `verde export`,
 * into the directory of a run whose model transformers has. */
VD_MUST_USE vd_status vd_config_save(const char *dir, const vd_loaded *loaded, vd_err *err);
/* Copies config.json, adapter_config.json and what goes with them from where vd_config_save has
 * put them to an exported model, whose files hold `narrow` numbers or not. Does nothing if there is
 * none. */
VD_MUST_USE vd_status vd_config_export(const char *from, const char *to, bool narrow, vd_err *err);
/* Copies those of the tokenizer's files and generation_config.json that one folder has to another.
 */
VD_MUST_USE vd_status vd_companions_copy(const char *from, const char *to, vd_err *err);
/* Does config.json in `dir` mean the model of the job, whose program is `program`? VD_ERR_PEER: no.
 */
VD_MUST_USE vd_status vd_config_compare(const char *dir, const vd_buf *config, const char *job,
                                        const vd_hash *program, vd_err *err);

#endif
