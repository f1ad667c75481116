/* This file makes a state from a journal and the last image before it, or zeros. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/journal.h"
#include "verde/exec/memory.h"
#include "verde/exec/store.h"

static vd_status zeros(const vd_program *program, vd_state *out, vd_err *err) {
    *out = (vd_state){.step = -1, .count = program->leaf_count};
    out->tensor = calloc(program->leaf_count, sizeof *out->tensor);
    for (uint32_t i = 0; i < program->leaf_count; i++) {
        const size_t size = vd_shape_bytes(&program->leaf[i].shape);
        if (!out->tensor || !(out->tensor[i] = vd_memory_alloc(NULL, size)))
            return vd_fail(err, VD_ERR_LOCAL, "out of memory for a state");
        memset(out->tensor[i], 0, size);
    }
    return VD_OK;
}

/* Loads the last complete image up to a step, or zeros if there is none. */
static vd_status last_image(ro_ctx *ro, const char *dir, const vd_journal *j,
                            const vd_hash *program_hash, int64_t step, vd_state *out, vd_err *err) {
    vd_err unread = {0};
    for (int64_t at = step - step % VD_IMAGE_STEPS; at > 0; at -= VD_IMAGE_STEPS) {
        const vd_status status = vd_store_load_file(ro, dir, j->program, program_hash, at,
                                                    &j->step[at].state, out, &unread);
        if (status == VD_OK)
            return status;
        if (status != VD_ERR_IO)
            return vd_fail(err, status, "%s", unread.text);
    }
    return zeros(j->program, out, err);
}

static vd_status check_state(ro_ctx *ro, const vd_journal *j, const vd_hash *program_hash,
                             const vd_state *state, vd_err *err) {
    vd_hash got;
    const vd_status status = vd_state_hash(ro, j->program, program_hash, state, NULL, &got, err);
    if (status == VD_OK && !vd_hash_equal(&got, &j->step[state->step].state))
        return vd_fail(err, VD_ERR_IO, "%s: does not lead to the state of step %lld that it names",
                       j->path, (long long)state->step);
    return status;
}

vd_status vd_journal_state(ro_ctx *ro, const char *dir, const vd_journal *j,
                           const vd_hash *program_hash, int64_t step, vd_state *out, vd_err *err) {
    *out = (vd_state){0};
    vd_status status =
        step < 0 || step >= j->count
            ? vd_fail(err, VD_ERR_IO,
                      "%s: ends before step %lld; without the directory that it lies in, this "
                      "prompt is run again",
                      j->path, (long long)step)
            : last_image(ro, dir, j, program_hash, step, out, err);
    if (status == VD_OK)
        status = vd_journal_apply(j, step, out, err);
    if (status == VD_OK)
        status = check_state(ro, j, program_hash, out, err);
    if (status != VD_OK)
        vd_state_free(out);
    return status;
}

bool vd_journal_is_in(const char *dir) {
    char path[1024];
    int fd;
    uint64_t size;
    snprintf(path, sizeof path, "%s/journal", dir);
    if (vd_open_file(path, &fd, &size, NULL) != VD_OK)
        return false;
    close(fd);
    return true;
}
