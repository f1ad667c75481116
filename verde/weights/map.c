/* This file maps the files that hold tensors. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>

vd_status vd_weights_map(vd_weights *w, const char *path, vd_err *err) {
    vd_weight_file *grown = realloc(w->file, (w->file_count + 1) * sizeof *grown);
    vd_map *map = calloc(1, sizeof *map);
    if (grown)
        w->file = grown;
    if (!grown || !map) {
        free(map);
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    }
    vd_status status = vd_map_file(path, map, err);
    if (status == VD_OK && map->size == 0)
        status = vd_fail(err, VD_ERR_USAGE, "%s: the file is empty", path);
    if (status == VD_OK) {
        w->file[w->file_count++] = (vd_weight_file){map->path, map};
        return VD_OK;
    }
    vd_map_free(map);
    free(map);
    return status;
}

void vd_weights_point(vd_weights *w, uint32_t first) {
    for (uint32_t i = first; i < w->count; i++) {
        vd_weight *tensor = &w->tensor[i];
        uint8_t *bytes = w->file[tensor->file].map->data + tensor->at;
        vd_from_little(bytes, tensor->size, ro_dtype_size(tensor->shape.dtype));
        tensor->data = bytes;
    }
}

void vd_weights_close(vd_weights *w) {
    for (uint32_t i = 0; i < w->file_count; i++) {
        vd_map_free(w->file[i].map);
        free(w->file[i].map);
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
    if (status == VD_OK && at != out->file[0].map->size)
        status = vd_fail(err, VD_ERR_PEER, "%s: expected %llu bytes of tensors, found %llu", path,
                         (unsigned long long)at, (unsigned long long)out->file[0].map->size);
    out->count = count;
    if (status == VD_OK)
        vd_weights_point(out, 0);
    else
        vd_weights_close(out);
    return status;
}
