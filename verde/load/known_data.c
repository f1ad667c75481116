/* This file remembers which data were hashed, so that runs that share data hash it once. */
#include "verde/load/known_data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool describe(const char *path, uint64_t offset, const vd_data *data, vd_known_tensor *out) {
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    *out = (vd_known_tensor){.device = (uint64_t)info.st_dev,
                             .file = (uint64_t)info.st_ino,
                             .size = (uint64_t)info.st_size,
                             .changed_s = (uint64_t)info.st_ctim.tv_sec,
                             .changed_ns = (uint64_t)info.st_ctim.tv_nsec,
                             .offset = offset,
                             .shape = data->tensor.shape};
    memcpy(out->root, data->root, sizeof out->root);
    return true;
}

static bool same(const vd_known_tensor *a, const vd_known_tensor *b) {
    return a->device == b->device && a->file == b->file && a->size == b->size &&
           a->changed_s == b->changed_s && a->changed_ns == b->changed_ns &&
           a->offset == b->offset && ro_shape_equal(&a->shape, &b->shape) &&
           memcmp(a->root, b->root, sizeof a->root) == 0;
}

bool vd_data_is_known(const vd_known_data *known, const char *path, uint64_t offset,
                      const vd_data *data) {
    vd_known_tensor wanted;
    if (!known || known->count == 0 || !describe(path, offset, data, &wanted))
        return false;
    for (uint32_t i = 0; i < known->count; i++)
        if (same(&known->list[i], &wanted))
            return true;
    return false;
}

void vd_data_note(vd_known_data *known, const char *path, uint64_t offset, const vd_data *data) {
    vd_known_tensor tensor;
    if (!known || !describe(path, offset, data, &tensor))
        return;
    if (known->count == known->room) {
        const uint32_t room = known->room ? 2 * known->room : 64;
        vd_known_tensor *more = realloc(known->list, room * sizeof *more);
        if (!more)
            return;
        known->list = more;
        known->room = room;
    }
    known->list[known->count++] = tensor;
}

void vd_known_data_free(vd_known_data *known) {
    free(known->list);
    *known = (vd_known_data){0};
}
