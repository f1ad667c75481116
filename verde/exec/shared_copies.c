/* This file lends device copies of shared data to one program after another. */
#include "verde/exec/shared_copies.h"

#include <stdlib.h>

#include "verde/exec/memory.h"

void vd_shared_free(vd_shared_copies *s) {
    for (uint32_t i = 0; s->placed && i < s->count; i++)
        if (s->placed[i])
            vd_memory_free(s->ro, s->placed[i]);
    free(s->data);
    free(s->size);
    free(s->placed);
    *s = (vd_shared_copies){0};
}

static bool make_room(vd_shared_copies *s, const vd_exec *exec) {
    const uint32_t count = exec->program->data_count;
    vd_shared_free(s);
    *s = (vd_shared_copies){.ro = exec->ro, .count = count};
    s->data = calloc((size_t)count + 1, sizeof *s->data);
    s->size = calloc((size_t)count + 1, sizeof *s->size);
    s->placed = calloc((size_t)count + 1, sizeof *s->placed);
    return s->data && s->size && s->placed;
}

void vd_shared_take(vd_shared_copies *s, vd_exec *exec, uint32_t own) {
    if (!exec->placed || !make_room(s, exec)) /* without memory they are copied again */
        return;
    for (uint32_t i = own; i < s->count; i++) {
        s->data[i] = exec->data[i];
        s->size[i] = vd_shape_bytes(&exec->program->data[i].tensor.shape);
        s->placed[i] = exec->placed[i];
        exec->placed[i] = NULL;
    }
}

void vd_shared_give(vd_shared_copies *s, vd_exec *exec) {
    const uint32_t count = exec->program->data_count;
    if (!s->placed || exec->placed || s->ro != exec->ro)
        return;
    exec->placed = calloc((size_t)count + 1, sizeof *exec->placed);
    for (uint32_t i = 0; exec->placed && i < count && i < s->count; i++)
        if (s->placed[i] && s->data[i] == exec->data[i] &&
            s->size[i] == vd_shape_bytes(&exec->program->data[i].tensor.shape)) {
            exec->placed[i] = s->placed[i];
            s->placed[i] = NULL;
        }
}
