/* Files whose tensors are mapped. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BIG_ENDIAN_MACHINE = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ };

static vd_status map_file(vd_weight_file *file, vd_err *err) {
    /* Where elements must be turned round, that happens in private copies of the pages. */
    const int protection = BIG_ENDIAN_MACHINE ? PROT_READ | PROT_WRITE : PROT_READ;
    if (file->size == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: the file is empty", file->path);
    void *map = mmap(NULL, file->size, protection, MAP_PRIVATE, file->fd, 0);
    if (map == MAP_FAILED)
        return vd_fail(err, VD_ERR_LOCAL, "%s: cannot map its %llu bytes", file->path,
                       (unsigned long long)file->size);
    file->map = map;
    return VD_OK;
}

vd_status vd_weights_map(vd_weights *w, const char *path, vd_err *err) {
    vd_weight_file *grown = realloc(w->file, (w->file_count + 1) * sizeof *grown);
    if (!grown)
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    w->file = grown;
    vd_weight_file *file = &w->file[w->file_count++];
    *file = (vd_weight_file){.fd = -1};
    snprintf(file->path, sizeof file->path, "%s", path);
    vd_status status = vd_open_file(path, &file->fd, &file->size, err);
    return status == VD_OK ? map_file(file, err) : status;
}

void vd_weights_point(vd_weights *w, uint32_t first) {
    for (uint32_t i = first; i < w->count; i++) {
        vd_weight *tensor = &w->tensor[i];
        uint8_t *bytes = (uint8_t *)w->file[tensor->file].map + tensor->at;
        if (BIG_ENDIAN_MACHINE)
            vd_from_little(bytes, tensor->size, ro_dtype_size(tensor->shape.dtype));
        tensor->data = bytes;
    }
}

void vd_weights_close(vd_weights *w) {
    for (uint32_t i = 0; i < w->file_count; i++) {
        if (w->file[i].map)
            munmap(w->file[i].map, w->file[i].size);
        if (w->file[i].fd >= 0)
            close(w->file[i].fd);
    }
    free(w->file);
    free(w->tensor);
    vd_buf_free(&w->config);
    *w = (vd_weights){0};
}

/* ---- files without a header ---- */

bool vd_weight_form_of(const char *name, const ro_shape *shape, vd_weight_form *out) {
    *out = (vd_weight_form){.ndim = shape->ndim};
    if (!vd_weight_name_valid(name) || shape->ndim < 1 || shape->ndim > RO_MAX_DIMS)
        return false;
    memcpy(out->name, name, strlen(name) + 1);
    memcpy(out->dim, shape->dim, sizeof out->dim);
    for (int type = 0; type < VD_WEIGHT_TYPES; type++) {
        out->type = (vd_weight_type)type;
        if (vd_weight_shape(out).dtype == shape->dtype &&
            vd_weight_type_size(out->type) == ro_dtype_size(shape->dtype) &&
            vd_weight_shape(out).ndim == shape->ndim)
            return vd_weight_bytes(out) > 0;
    }
    return false;
}

vd_status vd_weights_open_raw(const char *path, const vd_weight_form *form, uint32_t count,
                              vd_weights *out, vd_err *err) {
    *out = (vd_weights){.tensor = calloc(count + 1, sizeof *out->tensor)};
    vd_status status = out->tensor ? vd_weights_map(out, path, err)
                                   : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count && status == VD_OK; i++) {
        const uint64_t size = vd_weight_bytes(&form[i]);
        out->tensor[i] = (vd_weight){form[i], vd_weight_shape(&form[i]), NULL, at, size, 0};
        at += size;
    }
    if (status == VD_OK && at != out->file[0].size)
        status = vd_fail(err, VD_ERR_PEER, "%s: expected %llu bytes of tensors, found %llu", path,
                         (unsigned long long)at, (unsigned long long)out->file[0].size);
    out->count = count;
    if (status == VD_OK)
        vd_weights_point(out, 0);
    else
        vd_weights_close(out);
    return status;
}
