/* Writing safetensors files, byte for byte as safetensors itself does. */
#include "verde/weights/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ELEMENTS = 1 << 16 }; /* that are turned round or rounded at a time */

typedef struct {
    const char *dir;
    const vd_weights_writing *how;
    uint64_t done, total;
    uint32_t shards;
    vd_err *err;
} writing;

/* Tensors first .. last - 1 of one file. */
typedef struct {
    const vd_weight_out *tensor;
    uint32_t count;
} shard;

/* ---- elements ---- */

uint16_t vd_weight_bf16(uint32_t f32) {
    const uint32_t exponent = f32 & 0x7f800000, fraction = f32 & 0x007fffff;
    if (exponent == 0x7f800000 && fraction)
        return 0x7fc0;
    return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}

static vd_status put_little(vd_writer *writer, const void *data, size_t count, size_t element,
                            vd_err *err) {
    void *copy;
    const void *bytes = vd_to_little(data, count * element, element, &copy);
    vd_status status = bytes ? vd_writer_put(writer, bytes, count * element, err)
                             : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", writer->path);
    free(copy);
    return status;
}

static vd_status put_narrow(vd_writer *writer, const uint8_t *data, size_t count, vd_err *err) {
    uint16_t *narrow = malloc(count * sizeof *narrow);
    if (!narrow)
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", writer->path);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, data + 4 * i, sizeof bits);
        narrow[i] = vd_weight_bf16(bits);
    }
    vd_status status = put_little(writer, narrow, count, sizeof *narrow, err);
    free(narrow);
    return status;
}

static vd_status put_elements(vd_writer *writer, const vd_weight_out *t, const uint8_t *data,
                              vd_err *err) {
    const size_t element = ro_dtype_size(t->leaf.dtype);
    const size_t count = (size_t)ro_shape_numel(&t->leaf);
    vd_status status = VD_OK;
    for (size_t at = 0, now; at < count && status == VD_OK; at += now) {
        now = count - at < CHUNK_ELEMENTS ? count - at : CHUNK_ELEMENTS;
        status = t->narrow ? put_narrow(writer, data + at * element, now, err)
                           : put_little(writer, data + at * element, now, element, err);
    }
    return status;
}

static vd_status put_tensor(writing *w, vd_writer *writer, const vd_weight_out *t) {
    void *laid = NULL;
    if (t->layout != VD_LAYOUT_SAME) {
        laid = malloc((size_t)ro_shape_numel(&t->leaf) * ro_dtype_size(t->leaf.dtype));
        if (!laid)
            return vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", writer->path);
        vd_layout_copy(t->layout, &t->leaf, t->data, laid);
    }
    vd_status status = put_elements(writer, t, laid ? laid : t->data, w->err);
    free(laid);
    w->done += vd_weight_bytes(&t->form);
    if (status == VD_OK && w->how->progress)
        w->how->progress(w->how->user, w->done, w->total);
    return status;
}

/* ---- one file ---- */

static void put_quoted(vd_buf *out, const char *text) {
    json_t *value = json_string(text);
    char *quoted = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (!quoted)
        out->failed = true;
    else
        vd_put(out, quoted, strlen(quoted));
    free(quoted);
    json_decref(value);
}

static void put_notes(const vd_weights_writing *how, vd_buf *out) {
    vd_printf(out, "\"__metadata__\":{");
    for (uint32_t i = 0; i < how->note_count; i++) {
        vd_printf(out, "%s", i ? "," : "");
        put_quoted(out, how->note[i].name);
        vd_printf(out, ":");
        put_quoted(out, how->note[i].value);
    }
    vd_printf(out, "},");
}

static void put_form(const vd_weight_form *form, uint64_t at, vd_buf *out) {
    vd_printf(out, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", form->name,
              vd_weight_type_name(form->type));
    for (int32_t i = 0; i < form->ndim; i++)
        vd_printf(out, "%s%lld", i ? "," : "", (long long)form->dim[i]);
    vd_printf(out, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
              (unsigned long long)(at + vd_weight_bytes(form)));
}

static void put_header(const writing *w, const shard *s, vd_buf *out) {
    vd_buf json = {0};
    vd_printf(&json, "{");
    if (w->how->note_count)
        put_notes(w->how, &json);
    uint64_t at = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        vd_printf(&json, "%s", i ? "," : "");
        put_form(&s->tensor[i].form, at, &json);
        at += vd_weight_bytes(&s->tensor[i].form);
    }
    vd_printf(&json, "}");
    while (json.size % 8 != 0 && vd_buf_ok(&json))
        vd_put_u8(&json, ' ');
    vd_put_u64(out, json.size);
    vd_put(out, json.data, json.size);
    out->failed |= !vd_buf_ok(&json);
    vd_buf_free(&json);
}

static vd_status write_shard(writing *w, const shard *s, const char *name) {
    char path[1024];
    vd_writer writer;
    vd_buf header = {0};
    snprintf(path, sizeof path, "%s/%s", w->dir, name);
    vd_status status = vd_writer_open(&writer, path, 0644, w->err);
    if (status != VD_OK)
        return status;
    put_header(w, s, &header);
    status = vd_buf_ok(&header) ? vd_writer_put(&writer, header.data, header.size, w->err)
                                : vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", path);
    for (uint32_t i = 0; i < s->count && status == VD_OK; i++)
        status = put_tensor(w, &writer, &s->tensor[i]);
    if (status == VD_OK)
        status = vd_writer_commit(&writer, w->err);
    vd_writer_abort(&writer);
    vd_buf_free(&header);
    return status;
}

/* ---- shards ---- */

/* How many of the tensors go into the next file. */
static uint32_t fits(const writing *w, const vd_weight_out *tensor, uint32_t count) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += vd_weight_bytes(&tensor[i].form);
        if (i > 0 && w->how->shard_bytes && bytes > w->how->shard_bytes)
            return i;
    }
    return count;
}

static void shard_name(const writing *w, uint32_t index, char name[64]) {
    snprintf(name, 64, "model-%05u-of-%05u.safetensors", index + 1, w->shards);
}

static vd_status write_index(const writing *w, const json_t *map) {
    char path[1024];
    json_t *root =
        json_pack("{s{sI}sO}", "metadata", "total_size", (json_int_t)w->total, "weight_map", map);
    char *text = root ? json_dumps(root, JSON_INDENT(2) | JSON_SORT_KEYS) : NULL;
    vd_buf out = {0};
    snprintf(path, sizeof path, "%s/%s", w->dir, VD_WEIGHTS_INDEX);
    if (text)
        vd_put(&out, text, strlen(text));
    vd_put_u8(&out, '\n');
    vd_status status = text && vd_buf_ok(&out)
                           ? vd_write_file(path, out.data, out.size, 0644, w->err)
                           : vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", path);
    vd_buf_free(&out);
    free(text);
    json_decref(root);
    return status;
}

static vd_status write_shards(writing *w, const vd_weight_out *tensor, uint32_t count) {
    json_t *map = json_object();
    vd_status status = map ? VD_OK : vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", w->dir);
    for (uint32_t first = 0, i = 0; first < count && status == VD_OK; i++) {
        char name[64];
        const shard s = {tensor + first, fits(w, tensor + first, count - first)};
        shard_name(w, i, name);
        for (uint32_t k = 0; k < s.count && status == VD_OK; k++)
            if (json_object_set_new(map, s.tensor[k].form.name, json_string(name)) != 0)
                status = vd_fail(w->err, VD_ERR_LOCAL, "%s: out of memory", w->dir);
        if (status == VD_OK)
            status = write_shard(w, &s, name);
        first += s.count;
    }
    if (status == VD_OK)
        status = write_index(w, map);
    json_decref(map);
    return status;
}

/* ---- what is asked for ---- */

static int write_by_name(const void *a, const void *b) {
    return strcmp(((const vd_weight_out *)a)->form.name, ((const vd_weight_out *)b)->form.name);
}

/* The order of safetensors: larger elements first, then by name. */
static int write_by_type(const void *a, const void *b) {
    const vd_weight_type x = ((const vd_weight_out *)a)->form.type;
    const vd_weight_type y = ((const vd_weight_out *)b)->form.type;
    return x != y ? (x < y) - (x > y) : write_by_name(a, b);
}

static bool form_fits(const vd_weight_out *t) {
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

static vd_status check_tensors(writing *w, vd_weight_out *tensor, uint32_t count) {
    if (count < 1 || count > VD_WEIGHTS_MAX)
        return vd_fail(w->err, VD_ERR_USAGE, "%s: %u tensors; expected 1 to %d", w->dir, count,
                       VD_WEIGHTS_MAX);
    qsort(tensor, count, sizeof *tensor, write_by_name);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = tensor[i].form.name;
        if (!vd_weight_name_valid(name))
            return vd_fail(w->err, VD_ERR_USAGE, "%s: \"%.100s\" is no name of a tensor", w->dir,
                           name);
        if (i > 0 && strcmp(tensor[i - 1].form.name, name) == 0)
            return vd_fail(w->err, VD_ERR_USAGE, "%s: two tensors with the name %.100s", w->dir,
                           name);
        if (vd_weight_bytes(&tensor[i].form) == 0 || !form_fits(&tensor[i]))
            return vd_fail(w->err, VD_ERR_USAGE, "%s: tensor %.100s does not fit its leaf", w->dir,
                           name);
        w->total += vd_weight_bytes(&tensor[i].form);
    }
    qsort(tensor, count, sizeof *tensor, write_by_type);
    return VD_OK;
}

vd_status vd_weights_write(const char *dir, vd_weight_out *tensor, uint32_t count,
                           const vd_weights_writing *how, vd_err *err) {
    writing w = {.dir = dir, .how = how, .err = err};
    if (strlen(dir) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", dir);
    vd_status status = check_tensors(&w, tensor, count);
    if (status != VD_OK)
        return status;
    for (uint32_t first = 0; first < count; w.shards++)
        first += fits(&w, tensor + first, count - first);
    const shard all = {tensor, count};
    if (how->adapter)
        return write_shard(&w, &all, VD_WEIGHTS_ADAPTER);
    return w.shards == 1 ? write_shard(&w, &all, VD_WEIGHTS_SINGLE)
                         : write_shards(&w, tensor, count);
}

vd_status vd_weights_clear(const char *dir, bool ask, vd_err *err) {
    static const char *const names[] = {VD_WEIGHTS_SINGLE, VD_WEIGHTS_INDEX, VD_WEIGHTS_ADAPTER};
    for (int i = 0; i < 3; i++) {
        char path[1024];
        if (snprintf(path, sizeof path, "%s/%s", dir, names[i]) >= (int)sizeof path)
            return vd_fail(err, VD_ERR_USAGE, "%.60s...: path too long", dir);
        if (ask && access(path, F_OK) == 0)
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: exists already; give another directory, or --force to overwrite it",
                           path);
        if (!ask && unlink(path) != 0 && errno != ENOENT)
            return vd_fail(err, VD_ERR_LOCAL, "cannot remove %s: %s", path, strerror(errno));
    }
    return VD_OK;
}
