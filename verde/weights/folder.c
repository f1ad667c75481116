/* This file opens a folder of Hugging Face: maps the model's files, sorts their tensors by name. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_MAX_BYTES = 700 }; /* of a folder; a file's name still fits behind it */

static bool folder_path(char path[1024], const char *dir, const char *name) {
    return snprintf(path, 1024, "%s/%s", dir, name) < 1024;
}

static bool folder_has(const char *dir, const char *name) {
    char path[1024];
    struct stat info;
    return folder_path(path, dir, name) && stat(path, &info) == 0;
}

static vd_status add_file(vd_weights *w, const char *path, vd_err *err) {
    const uint32_t first = w->count, index = w->file_count;
    vd_status status = vd_weights_map(w, path, err);
    if (status != VD_OK)
        return status;
    const vd_map *map = w->file[index].map;
    status = vd_header_read(map->data, map->size, map->path, index, w, err);
    if (status == VD_OK)
        vd_weights_point(w, first);
    return status;
}

/* ---- shards ---- */

static bool is_shard_name(const char *name) {
    static const char end[] = ".safetensors";
    const size_t length = strlen(name), tail = sizeof end - 1;
    if (name[0] == '.' || length <= tail || length > 255 || strcmp(name + length - tail, end) != 0)
        return false;
    for (; *name; name++)
        if (*name <= 0x20 || *name >= 0x7f || *name == '/' || *name == '\\')
            return false;
    return true;
}

/* Adds each file that the index names, once. */
static vd_status add_shards(vd_weights *w, const char *dir, const char *index, json_t *map,
                            vd_err *err) {
    const char *tensor;
    json_t *value, *seen = json_object();
    vd_status status = seen ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", index);
    json_object_foreach(map, tensor, value) {
        const char *name = json_string_value(value);
        char path[1024];
        if (status != VD_OK)
            break;
        if (!name || !is_shard_name(name))
            status = vd_fail(err, VD_ERR_USAGE,
                             "%s: tensor %.80s: its file must be a name that ends in .safetensors, "
                             "of this folder, got \"%.60s\"",
                             index, tensor, name ? name : "(no string)");
        else if (json_object_get(seen, name))
            continue;
        else if (w->file_count == VD_WEIGHTS_FILES_MAX)
            status = vd_fail(err, VD_ERR_USAGE, "%s: names more than %d files", index,
                             VD_WEIGHTS_FILES_MAX);
        else if (json_object_set_new(seen, name, json_true()) != 0 || !folder_path(path, dir, name))
            status = vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", index);
        else
            status = add_file(w, path, err);
    }
    json_decref(seen);
    return status;
}

static const char *name_of(const vd_weight_file *file) {
    return strrchr(file->path, '/') + 1;
}

/* Checks that each tensor is in the file that the index names, and the index names no others. */
static vd_status check_index(const vd_weights *w, const char *index, json_t *map, vd_err *err) {
    const char *tensor;
    json_t *value;
    for (uint32_t i = 0; i < w->count; i++) {
        const vd_weight_file *file = &w->file[w->tensor[i].file];
        const char *name = w->tensor[i].form.name,
                   *said = json_string_value(json_object_get(map, name));
        if (!said || strcmp(said, name_of(file)) != 0)
            return vd_fail(err, VD_ERR_USAGE, "%s: holds tensor %.100s, which %s places in %.60s",
                           file->path, name, VD_WEIGHTS_INDEX, said ? said : "no file");
    }
    json_object_foreach(map, tensor, value) if (!vd_weights_find(w, tensor)) return vd_fail(
        err, VD_ERR_USAGE, "%s: places tensor %.100s in %.60s, which lacks it", index, tensor,
        json_string_value(value));
    return VD_OK;
}

static int folder_by_name(const void *a, const void *b) {
    const vd_weight *x = a, *y = b;
    return strcmp(x->form.name, y->form.name);
}

static vd_status folder_sort(vd_weights *w, const char *path, vd_err *err) {
    if (w->count == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: there is no tensor in it", path);
    qsort(w->tensor, w->count, sizeof *w->tensor, folder_by_name);
    for (uint32_t i = 1; i < w->count; i++)
        if (folder_by_name(&w->tensor[i - 1], &w->tensor[i]) == 0)
            return vd_fail(err, VD_ERR_USAGE, "%s: tensor %.100s lies in %s too",
                           w->file[w->tensor[i].file].path, w->tensor[i].form.name,
                           w->file[w->tensor[i - 1].file].path);
    return VD_OK;
}

static vd_status open_shards(vd_weights *w, const char *dir, vd_err *err) {
    char path[1024];
    vd_buf text = {0};
    json_t *root = NULL;
    folder_path(path, dir, VD_WEIGHTS_INDEX);
    vd_status status = vd_read_file(path, VD_WEIGHTS_INDEX_MAX, &text, err);
    while (text.size > 0 && strchr(" \n\r\t", text.data[text.size - 1]) && text.data[text.size - 1])
        text.size--;
    if (status == VD_OK)
        status = vd_weights_json(text.data, text.size, path, &root, err);
    json_t *map = json_object_get(root, "weight_map");
    if (status == VD_OK && !json_is_object(map))
        status = vd_fail(err, VD_ERR_USAGE, "%s: `weight_map` must be an object", path);
    if (status == VD_OK)
        status = add_shards(w, dir, path, map, err);
    if (status == VD_OK)
        status = folder_sort(w, path, err);
    if (status == VD_OK)
        status = check_index(w, path, map, err);
    json_decref(root);
    vd_buf_free(&text);
    return status;
}

/* ---- the folder ---- */

static vd_status is_none(const char *dir, vd_err *err) {
    static const char *const pickles[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                          "model.pt", "model.pth", "pytorch_model.pt"};
    for (size_t i = 0; i < sizeof pickles / sizeof pickles[0]; i++)
        if (folder_has(dir, pickles[i]))
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: holds %s, a pickle: reading one runs what is in it, so that none "
                           "is ever read; save the model as safetensors",
                           dir, pickles[i]);
    return vd_fail(err, VD_ERR_USAGE, "%s: expected %s, or %s and its shards", dir,
                   VD_WEIGHTS_SINGLE, VD_WEIGHTS_INDEX);
}

static vd_status open_folder(vd_weights *w, const char *dir, vd_err *err) {
    char path[1024];
    const bool single = folder_has(dir, VD_WEIGHTS_SINGLE);
    const bool shards = folder_has(dir, VD_WEIGHTS_INDEX);
    const bool adapter = folder_has(dir, VD_WEIGHTS_ADAPTER);
    if (strlen(dir) > PATH_MAX_BYTES)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than %d bytes", dir,
                       PATH_MAX_BYTES);
    if (single + shards + adapter > 1)
        return vd_fail(err, VD_ERR_USAGE, "%s: holds %s and %s; which is meant?", dir,
                       single ? VD_WEIGHTS_SINGLE : VD_WEIGHTS_INDEX,
                       single && shards ? VD_WEIGHTS_INDEX : VD_WEIGHTS_ADAPTER);
    if (!single && !shards && !adapter)
        return is_none(dir, err);
    w->has_config = folder_has(dir, VD_WEIGHTS_CONFIG);
    folder_path(path, dir, VD_WEIGHTS_CONFIG);
    vd_status status =
        w->has_config ? vd_read_file(path, VD_WEIGHTS_CONFIG_MAX, &w->config, err) : VD_OK;
    if (status != VD_OK || shards)
        return status == VD_OK ? open_shards(w, dir, err) : status;
    folder_path(path, dir, adapter ? VD_WEIGHTS_ADAPTER : VD_WEIGHTS_SINGLE);
    status = add_file(w, path, err);
    return status == VD_OK ? folder_sort(w, path, err) : status;
}

vd_status vd_weights_open(const char *path, vd_weights *out, vd_err *err) {
    struct stat info;
    *out = (vd_weights){0};
    if (stat(path, &info) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%.200s: no such file or directory", path);
    vd_status status;
    if (S_ISDIR(info.st_mode))
        status = open_folder(out, path, err);
    else if (strlen(path) >= 1024)
        status = vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 1023 bytes", path);
    else
        status = add_file(out, path, err);
    if (status == VD_OK && !S_ISDIR(info.st_mode))
        status = folder_sort(out, path, err);
    if (status != VD_OK)
        vd_weights_close(out);
    return status;
}

const vd_weight *vd_weights_find(const vd_weights *w, const char *name) {
    uint32_t low = 0, high = w->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(w->tensor[middle].form.name, name);
        if (order == 0)
            return &w->tensor[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
