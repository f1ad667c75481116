/* This file finds which leaves are a model's weights, and names them as files do. */
#include "verde/load/export.h"

#include <stdlib.h>
#include <string.h>

#include "verde/job/config.h"

static bool has_leaf(const vd_program *program, const char *name, size_t length) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (strlen(program->leaf[i].name) == length &&
            memcmp(program->leaf[i].name, name, length) == 0)
            return true;
    return false;
}

/* The optimizer's leaves: NAME.m and NAME.v beside NAME, adamw.c1, adamw.c2
 * (models/optimizer.c). */
bool vd_is_optimizers(const vd_program *program, const char *name) {
    const size_t length = strlen(name);
    const char *end = length > 2 ? name + length - 2 : "";
    if (strcmp(name, "adamw.c1") == 0 || strcmp(name, "adamw.c2") == 0)
        return true;
    return (strcmp(end, ".m") == 0 || strcmp(end, ".v") == 0) &&
           has_leaf(program, name, length - 2);
}

static vd_status own_names(const vd_program *program, vd_export_row *rows, uint32_t *count,
                           vd_err *err) {
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const vd_leaf *leaf = &program->leaf[i];
        vd_export_row *row = &rows[*count];
        if (vd_is_optimizers(program, leaf->name))
            continue;
        *row = (vd_export_row){.leaf = i};
        if (!vd_weight_form_of(leaf->name, &leaf->shape, &row->form))
            return vd_fail(err, VD_ERR_USAGE, "leaf %s: no name of a tensor in files", leaf->name);
        (*count)++;
    }
    return VD_OK;
}

/* ---- names that transformers uses ---- */

static vd_layout layout_of(const vd_file_name *name) {
    return name->layout == VD_FILE_CONVOLUTION ? VD_LAYOUT_CONVOLUTION : VD_LAYOUT_SAME;
}

static const vd_file_name *name_of(const vd_file_name *names, uint32_t count, const char *leaf) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(names[i].leaf, leaf) == 0)
            return names[i].tensor[0] ? &names[i] : NULL;
    return NULL;
}

/* Fills rows by a table of names. Returns false if it belongs to another model than the
 * program's. */
static bool put_names(const vd_program *program, const vd_file_name *names, uint32_t name_count,
                      vd_export_row *rows, uint32_t *count) {
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const vd_leaf *leaf = &program->leaf[i];
        vd_export_row *row = &rows[*count];
        if (vd_is_optimizers(program, leaf->name))
            continue;
        const vd_file_name *name = name_of(names, name_count, leaf->name);
        ro_shape shape;
        if (!name || !vd_layout_shape(layout_of(name), &leaf->shape, &shape) ||
            !vd_weight_form_of(name->tensor, &shape, &row->form))
            return false;
        row->leaf = i;
        row->layout = layout_of(name);
        (*count)++;
    }
    return *count == name_count;
}

/* Finds the product that a lora_a leaf adapts: attn.q of "h.3.attn.q.lora_a", head of
 * "head.lora_a". *size is the length of its name; 0: the leaf is no lora_a. */
static const char *product_of(const char *leaf, size_t *size) {
    static const char end[] = ".lora_a";
    const size_t length = strlen(leaf), tail = sizeof end - 1;
    const char *start = leaf;
    *size = 0;
    if (length <= tail || strcmp(leaf + length - tail, end) != 0)
        return leaf;
    if (strncmp(leaf, "h.", 2) == 0 && strchr(leaf + 2, '.'))
        start = strchr(leaf + 2, '.') + 1;
    if (start < leaf + length - tail)
        *size = (size_t)(leaf + length - tail - start);
    return start;
}

/* Collects targets and rank of adapters, all that names depend on, from leaves lora_a [rank,
 * in]. */
static void lora_of(const vd_program *program, vd_lora *out) {
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        size_t size;
        const char *product = product_of(program->leaf[i].name, &size);
        int64_t t = 0;
        if (size < 1 || size >= VD_LORA_TARGET_SIZE)
            continue;
        while (t < out->target_count &&
               (strncmp(out->target[t], product, size) != 0 || out->target[t][size]))
            t++;
        if (t == VD_LORA_TARGETS_MAX)
            continue;
        memcpy(out->target[t], product, size);
        out->target_count += t == out->target_count;
        out->rank = program->leaf[i].shape.dim[0];
        out->alpha = 1;
    }
}

bool vd_is_adapter(const vd_program *program) {
    vd_lora lora = {0};
    lora_of(program, &lora);
    return lora.rank > 0;
}

/* An evaluation's leaves are "loss" and perhaps "accuracy" (models/training.c), each one number. */
bool vd_is_evaluation(const vd_program *program) {
    const vd_leaf *leaf = program->leaf;
    return program->leaf_count >= 1 && program->leaf_count <= 2 &&
           strcmp(leaf[0].name, "loss") == 0 &&
           (program->leaf_count == 1 || strcmp(leaf[1].name, "accuracy") == 0);
}

/* Recognises the states of models/generate.c and models/score.c. */
bool vd_is_of_prompt(const vd_program *program) {
    return has_leaf(program, "stopped", strlen("stopped")) ||
           (program->leaf_count == 1 &&
            (has_leaf(program, VD_CLASSES_LEAF, strlen(VD_CLASSES_LEAF)) ||
             has_leaf(program, "log_probability", strlen("log_probability"))));
}

static vd_status names_of(const vd_program *program, const vd_buf *config, vd_file_name **names,
                          uint32_t *count, vd_err *err) {
    const vd_config_choice choice = {.dropout = -1, .pad = -1};
    vd_training training = {0};
    vd_status status = vd_config_read(config->data, config->size, VD_WEIGHTS_CONFIG, &choice,
                                      &training.model, err);
    lora_of(program, &training.model.lora);
    return status == VD_OK ? vd_training_names(&training, names, count, err) : status;
}

vd_status vd_export_rows(const vd_program *program, const vd_buf *config, vd_export_row **rows,
                         uint32_t *count, vd_err *err) {
    vd_file_name *names = NULL;
    vd_err unread = {0};
    uint32_t name_count = 0;
    *count = 0;
    *rows = calloc(program->leaf_count + 1, sizeof **rows);
    if (!*rows)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = VD_OK;
    if (!config)
        status = own_names(program, *rows, count, err);
    else if (names_of(program, config, &names, &name_count, &unread) != VD_OK ||
             !put_names(program, names, name_count, *rows, count))
        status = vd_fail(err, VD_ERR_USAGE,
                         VD_WEIGHTS_CONFIG ": is of a model with other tensors than the program's"
                                           "%s%s",
                         *unread.text ? ": " : "", unread.text);
    free(names);
    if (status != VD_OK) {
        free(*rows);
        *rows = NULL;
    }
    return status;
}
