/* This file decides which safetensors files hold a model's tensors, and where in them, byte for
 * byte as the safetensors library does. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *dir; /* for error messages */
    const vd_weights_writing *how;
    vd_weights_plan *plan;
    vd_err *err;
} planning;

/* ---- the tensors ---- */

static int plan_by_name(const void *a, const void *b) {
    return strcmp(((const vd_weight_out *)a)->form.name, ((const vd_weight_out *)b)->form.name);
}

/* Compares as safetensors sorts: larger elements first, then by name. */
static int plan_by_type(const void *a, const void *b) {
    const vd_weight_type x = ((const vd_weight_out *)a)->form.type;
    const vd_weight_type y = ((const vd_weight_out *)b)->form.type;
    return x != y ? (x < y) - (x > y) : plan_by_name(a, b);
}

static bool plan_fits(const vd_weight_out *t) {
    const ro_shape expected = vd_weight_shape(&t->form);
    ro_shape laid;
    if (!vd_layout_shape(t->layout, &t->leaf, &laid) || laid.ndim != expected.ndim)
        return false;
    for (int32_t i = 0; i < laid.ndim; i++)
        if (laid.dim[i] != expected.dim[i])
            return false;
    return t->narrow ? t->leaf.dtype == RO_F32 && t->form.type == VD_WEIGHT_BF16
                     : laid.dtype == expected.dtype;
}

static vd_status plan_check(planning *w, vd_weight_out *tensor, uint32_t count) {
    if (count < 1 || count > VD_WEIGHTS_MAX)
        return vd_fail(w->err, VD_ERR_USAGE, "%s: %u tensors; expected 1 to %d", w->dir, count,
                       VD_WEIGHTS_MAX);
    qsort(tensor, count, sizeof *tensor, plan_by_name);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = tensor[i].form.name;
        if (!vd_weight_name_valid(name))
            return vd_fail(w->err, VD_ERR_USAGE, "%s: \"%.100s\" is no name of a tensor", w->dir,
                           name);
        if (i > 0 && strcmp(tensor[i - 1].form.name, name) == 0)
            return vd_fail(w->err, VD_ERR_USAGE, "%s: two tensors with the name %.100s", w->dir,
                           name);
        if (vd_weight_bytes(&tensor[i].form) == 0 || !plan_fits(&tensor[i]))
            return vd_fail(w->err, VD_ERR_USAGE, "%s: tensor %.100s does not fit its leaf", w->dir,
                           name);
        w->plan->total += vd_weight_bytes(&tensor[i].form);
    }
    qsort(tensor, count, sizeof *tensor, plan_by_type);
    return VD_OK;
}

/* ---- one file ---- */

static void plan_quoted(vd_buf *out, const char *text) {
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (!quoted)
        out->failed = true;
    else
        vd_put(out, quoted, strlen(quoted));
    free(quoted);
    json_decref(value);
}

static void plan_notes(const vd_weights_writing *how, vd_buf *out) {
    vd_printf(out, "\"__metadata__\":{");
    for (uint32_t i = 0; i < how->note_count; i++) {
        vd_printf(out, "%s", i ? "," : "");
        plan_quoted(out, how->note[i].name);
        vd_printf(out, ":");
        plan_quoted(out, how->note[i].value);
    }
    vd_printf(out, "},");
}

static void plan_form(const vd_weight_form *form, uint64_t at, vd_buf *out) {
    vd_printf(out, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", form->name,
              vd_weight_type_name(form->type));
    for (int32_t i = 0; i < form->ndim; i++)
        vd_printf(out, "%s%lld", i ? "," : "", (long long)form->dim[i]);
    vd_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
              (unsigned long long)(at + vd_weight_bytes(form)));
}

static void plan_header(const planning *w, const vd_weight_out *tensor, vd_weights_file *file) {
    vd_buf json = {0};
    vd_printf(&json, "{");
    if (w->how->note_count)
        plan_notes(w->how, &json);
    uint64_t at = 0;
    for (uint32_t i = file->first; i < file->first + file->count; i++) {
        vd_printf(&json, "%s", i > file->first ? "," : "");
        plan_form(&tensor[i].form, at, &json);
        w->plan->at[i] = at;
        at += vd_weight_bytes(&tensor[i].form);
    }
    vd_printf(&json, "}");
    while (json.size % 8 != 0 && vd_buf_ok(&json))
        vd_put_u8(&json, ' ');
    vd_put_u64(&file->header, json.size);
    vd_put(&file->header, json.data, json.size);
    file->header.failed |= !vd_buf_ok(&json);
    vd_buf_free(&json);
    for (uint32_t i = file->first; i < file->first + file->count; i++)
        w->plan->at[i] += file->header.size;
    file->size = file->header.size + at;
}

/* ---- all of them ---- */

/* The number of the remaining tensors that go into the next file. */
static uint32_t plan_next(const planning *w, const vd_weight_out *tensor, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count && !w->how->adapter; i++) {
        bytes += vd_weight_bytes(&tensor[i].form);
        if (i > 0 && w->how->shard_bytes && bytes > w->how->shard_bytes)
            return i;
    }
    return count;
}

static void plan_name(const planning *w, uint32_t i, char name[VD_WEIGHTS_FILE_NAME]) {
    if (w->how->adapter)
        snprintf(name, VD_WEIGHTS_FILE_NAME, "%s", VD_WEIGHTS_ADAPTER);
    else if (w->plan->file_count == 1)
        snprintf(name, VD_WEIGHTS_FILE_NAME, "%s", VD_WEIGHTS_SINGLE);
    else
        snprintf(name, VD_WEIGHTS_FILE_NAME, "model-%05u-of-%05u.safetensors", i + 1,
                 w->plan->file_count);
}

static vd_status plan_files(planning *w, const vd_weight_out *tensor, uint32_t count) {
    vd_weights_plan *plan = w->plan;
    for (uint32_t first = 0; first < count; plan->file_count++)
        first += plan_next(w, tensor + first, count - first);
    plan->at = calloc(count, sizeof *plan->at);
    plan->file = calloc(plan->file_count, sizeof *plan->file);
    bool done = plan->at && plan->file;
    for (uint32_t i = 0, first = 0; i < plan->file_count && done; i++) {
        vd_weights_file *file = &plan->file[i];
        plan_name(w, i, file->name);
        file->first = first;
        file->count = plan_next(w, tensor + first, count - first);
        first += file->count;
        plan_header(w, tensor, file);
        done = vd_buf_ok(&file->header);
    }
    return done ? VD_OK : vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", w->dir);
}

static vd_status plan_index(planning *w, const vd_weight_out *tensor) {
    vd_weights_plan *plan = w->plan;
    json_t *map = json_object();
    bool done = map != NULL;
    for (uint32_t i = 0; i < plan->file_count && done; i++)
        for (uint32_t k = 0; k < plan->file[i].count && done; k++)
            done = json_object_set_new(map, tensor[plan->file[i].first + k].form.name,
                                       json_string(plan->file[i].name)) == 0;
    json_t *root = json_pack("{s{sI}so}", "metadata", "total_size", (json_int_t)plan->total,
                             "weight_map", map);
    char *text = done && root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    if (text)
        vd_put(&plan->index, text, strlen(text));
    vd_put_u8(&plan->index, '\n');
    done = text && vd_buf_ok(&plan->index);
    free(text);
    json_decref(root);
    return done ? VD_OK : vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", w->dir);
}

void vd_weights_plan_free(vd_weights_plan *plan) {
    for (uint32_t i = 0; plan->file && i < plan->file_count; i++)
        vd_buf_free(&plan->file[i].header);
    free(plan->file);
    free(plan->at);
    vd_buf_free(&plan->index);
    *plan = (vd_weights_plan){0};
}

vd_status vd_weights_plan_make(const char *dir, vd_weight_out *tensor, uint32_t count,
                               const vd_weights_writing *how, vd_weights_plan *out, vd_err *err) {
    planning w = {dir, how, out, err};
    *out = (vd_weights_plan){0};
    if (strlen(dir) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", dir);
    vd_status status = plan_check(&w, tensor, count);
    if (status == VD_OK)
        status = plan_files(&w, tensor, count);
    if (status == VD_OK && out->file_count > 1)
        status = plan_index(&w, tensor);
    if (status != VD_OK)
        vd_weights_plan_free(out);
    return status;
}

vd_status vd_weights_plan_index(const vd_weights_plan *plan, const char *dir, vd_err *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, VD_WEIGHTS_INDEX);
    return plan->index.size ? vd_write_file(path, plan->index.data, plan->index.size, 0644, err)
                            : VD_OK;
}
