#include "verde/cli/export.h"

#include <stdlib.h>
#include <string.h>

static bool has_leaf(const vd_program *program, const char *name, size_t length) {
    for (uint32_t i = 0; i < program->leaf_count; i++)
        if (strlen(program->leaf[i].name) == length &&
            memcmp(program->leaf[i].name, name, length) == 0)
            return true;
    return false;
}

/* NAME.m and NAME.v beside NAME, adamw.c1 and adamw.c2 (models/optimizer.c). */
static bool is_optimizers(const vd_program *program, const char *name) {
    const size_t length = strlen(name);
    const char *end = length > 2 ? name + length - 2 : "";
    if (strcmp(name, "adamw.c1") == 0 || strcmp(name, "adamw.c2") == 0)
        return true;
    return (strcmp(end, ".m") == 0 || strcmp(end, ".v") == 0) &&
           has_leaf(program, name, length - 2);
}

vd_status vd_export_rows(const vd_program *program, vd_export_row **rows, uint32_t *count,
                         vd_err *err) {
    *count = 0;
    *rows = calloc(program->leaf_count + 1, sizeof **rows);
    vd_status status = *rows ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < program->leaf_count && status == VD_OK; i++) {
        const vd_leaf *leaf = &program->leaf[i];
        vd_export_row *row = &(*rows)[*count];
        if (is_optimizers(program, leaf->name))
            continue;
        row->leaf = i;
        row->layout = VD_LAYOUT_SAME;
        if (!vd_weight_form_of(leaf->name, &leaf->shape, &row->form))
            status =
                vd_fail(err, VD_ERR_USAGE, "leaf %s: no name of a tensor in files", leaf->name);
        (*count)++;
    }
    if (status == VD_OK)
        return VD_OK;
    free(*rows);
    *rows = NULL;
    return status;
}
