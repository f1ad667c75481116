/* Names, types and shapes of tensors in files. */
#include "verde/weights/internal.h"

#include <string.h>

/* One row for each type of files; `committed` is 0 if repops has no such type. */
static const struct {
    const char *name;
    size_t size;
    int32_t committed;
} types[VD_WEIGHT_TYPES] = {
    [VD_WEIGHT_BOOL] = {"BOOL", 1, 0},
    [VD_WEIGHT_U8] = {"U8", 1, RO_U8},
    [VD_WEIGHT_I8] = {"I8", 1, RO_I8},
    [VD_WEIGHT_F8_E5M2] = {"F8_E5M2", 1, 0},
    [VD_WEIGHT_F8_E4M3] = {"F8_E4M3", 1, 0},
    [VD_WEIGHT_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 1, 0},
    [VD_WEIGHT_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 1, 0},
    [VD_WEIGHT_I16] = {"I16", 2, 0},
    [VD_WEIGHT_U16] = {"U16", 2, RO_U16},
    [VD_WEIGHT_F16] = {"F16", 2, RO_F16},
    [VD_WEIGHT_BF16] = {"BF16", 2, RO_BF16},
    [VD_WEIGHT_I32] = {"I32", 4, RO_I32},
    [VD_WEIGHT_U32] = {"U32", 4, 0},
    [VD_WEIGHT_F32] = {"F32", 4, RO_F32},
    [VD_WEIGHT_C64] = {"C64", 8, 0},
    [VD_WEIGHT_F64] = {"F64", 8, 0},
    [VD_WEIGHT_I64] = {"I64", 8, 0},
    [VD_WEIGHT_U64] = {"U64", 8, 0},
};

const char *vd_weight_type_name(vd_weight_type type) {
    return types[type].name;
}

size_t vd_weight_type_size(vd_weight_type type) {
    return types[type].size;
}

bool vd_weight_type_of(const char *name, vd_weight_type *out) {
    for (int i = 0; i < VD_WEIGHT_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = (vd_weight_type)i;
            return true;
        }
    return false;
}

bool vd_weight_name_valid(const char *name) {
    const size_t length = strlen(name);
    if (length < 1 || length >= VD_WEIGHT_NAME_SIZE)
        return false;
    for (; *name; name++)
        if (*name <= 0x20 || *name >= 0x7f || *name == '"' || *name == '\\')
            return false;
    return true;
}

uint64_t vd_weight_bytes(const vd_weight_form *form) {
    int64_t elements = 1;
    for (int32_t i = 0; i < form->ndim; i++) {
        if (form->dim[i] < 1 || form->dim[i] > RO_MAX_NUMEL / elements)
            return 0;
        elements *= form->dim[i];
    }
    return (uint64_t)elements * types[form->type].size;
}

ro_shape vd_weight_shape(const vd_weight_form *form) {
    ro_shape shape = {types[form->type].committed, form->ndim ? form->ndim : 1, {1}};
    if (!shape.dtype)
        return (ro_shape){RO_U8, 1, {(int64_t)vd_weight_bytes(form)}};
    for (int32_t i = 0; i < form->ndim; i++)
        shape.dim[i] = form->dim[i];
    return shape;
}

bool vd_weight_form_equal(const vd_weight_form *a, const vd_weight_form *b) {
    if (strcmp(a->name, b->name) != 0 || a->type != b->type || a->ndim != b->ndim)
        return false;
    for (int32_t i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

void vd_weight_form_text(const vd_weight_form *form, char text[VD_WEIGHT_FORM_TEXT]) {
    int at = snprintf(text, VD_WEIGHT_FORM_TEXT, "%s [", types[form->type].name);
    for (int32_t i = 0; i < form->ndim; i++)
        at += snprintf(text + at, (size_t)(VD_WEIGHT_FORM_TEXT - at), "%s%lld", i ? "," : "",
                       (long long)form->dim[i]);
    snprintf(text + at, (size_t)(VD_WEIGHT_FORM_TEXT - at), "]");
}
