/* This file writes safetensors files, byte for byte as the safetensors library does. */
#include "verde/weights/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ELEMENTS = 1 << 16 }; /* elements converted at a time */

typedef struct {
    const char *dir;
    const vd_weights_writing *how;
    uint64_t done, total;
    vd_err *err;
} writing;

/* ---- elements ---- */

uint16_t vd_weight_bf16(uint32_t f32) {
    const uint32_t exponent = f32 & 0x7f800000, fraction = f32 & 0x007fffff;
    if (exponent == 0x7f800000 && fraction)
        return 0x7fc0;
    return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}

static vd_status put_little(vd_writer *writer, const void *data, size_t count, size_t element,
                            vd_err *err) {
    void *copy = NULL;
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

/* ---- files ---- */

static vd_status write_planned(writing *w, const vd_weights_file *file,
                               const vd_weight_out *tensor) {
    char path[1024];
    vd_writer writer = {0};
    snprintf(path, sizeof path, "%s/%s", w->dir, file->name);
    vd_status status = vd_writer_open(&writer, path, 0644, w->err);
    if (status != VD_OK)
        return status;
    status = vd_writer_put(&writer, file->header.data, file->header.size, w->err);
    for (uint32_t i = 0; i < file->count && status == VD_OK; i++)
        status = put_tensor(w, &writer, &tensor[file->first + i]);
    if (status == VD_OK)
        status = vd_writer_commit(&writer, w->err);
    vd_writer_abort(&writer);
    return status;
}

vd_status vd_weights_write(const char *dir, vd_weight_out *tensor, uint32_t count,
                           const vd_weights_writing *how, vd_err *err) {
    writing w = {.dir = dir, .how = how, .err = err};
    vd_weights_plan plan = {0};
    vd_status status = vd_weights_plan_make(dir, tensor, count, how, &plan, err);
    if (status != VD_OK)
        return status;
    w.total = plan.total;
    for (uint32_t i = 0; i < plan.file_count && status == VD_OK; i++)
        status = write_planned(&w, &plan.file[i], tensor);
    if (status == VD_OK)
        status = vd_weights_plan_index(&plan, dir, err);
    vd_weights_plan_free(&plan);
    return status;
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
