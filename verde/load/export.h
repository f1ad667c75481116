/* Finds which leaves of a state are a model's weights, and their names in files. */
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

/* Lists the tensors of a program's model as its files have them, without the optimizer's moments
 * and corrections. Tensors have transformers' names by `config`, the text of config.json, or the
 * leaves' names if it is NULL. VD_ERR_USAGE: `config` describes a model with other leaves. Names
 * need not be trusted: leaves and shapes are the program's, and a leaf has one name in its family
 * of models. The caller frees *rows. */
VD_MUST_USE vd_status vd_export_rows(const vd_program *program, const vd_buf *config,
                                     vd_export_row **rows, uint32_t *count, vd_err *err);

/* Returns whether the leaf belongs to the optimizer, not to the model. */
bool vd_is_optimizers(const vd_program *program, const char *leaf);
/* Returns whether all weights of the program are those of low-rank adapters. */
bool vd_is_adapter(const vd_program *program);
/* Returns whether the program's state is the score of an evaluation, not a model. */
bool vd_is_evaluation(const vd_program *program);
/* Returns whether the program's state is a model's answer to a prompt, not a model. */
bool vd_is_of_prompt(const vd_program *program);

/* Reads config.json or adapter_config.json in a directory; *there says whether the file exists. */
VD_MUST_USE vd_status vd_config_load(const char *dir, const char *name, vd_buf *out, bool *there,
                                     vd_err *err);
/* Writes into a run's directory what `verde export` copies later: config.json, or
 * adapter_config.json for adapters, and the model's companion files; only if transformers has the
 * run's model. */
VD_MUST_USE vd_status vd_config_save(const char *dir, const vd_loaded *loaded, vd_err *err);
/* Copies what vd_config_save wrote from a run to an exported model; `narrow`: its files hold bf16.
 * Does nothing if vd_config_save wrote nothing. */
VD_MUST_USE vd_status vd_config_export(const char *from, const char *to, bool narrow, vd_err *err);
/* Copies the tokenizer's files and generation_config.json, where they exist, to another folder. */
VD_MUST_USE vd_status vd_companions_copy(const char *from, const char *to, vd_err *err);
/* Checks that config.json in `dir` describes the model of the job, whose program is `program`.
 * VD_ERR_PEER: it does not. */
VD_MUST_USE vd_status vd_config_compare(const char *dir, const vd_buf *config, const char *job,
                                        const vd_hash *program, vd_err *err);

#endif
