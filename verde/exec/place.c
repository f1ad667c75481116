/* This file moves data and states to where an executor computes. */
#include <stdlib.h>

#include "repops/device.h"
#include "verde/exec/exec.h"
#include "verde/exec/kept_weights.h"
#include "verde/exec/memory.h"

ro_ctx *vd_exec_memory(const vd_exec *exec) {
    return !exec->ro || ro_ctx_in_host_memory(exec->ro) ? NULL : exec->ro;
}

static vd_status place(ro_ctx *memory, const void *host, size_t size, void **out, vd_err *err) {
    *out = vd_memory_alloc(memory, size);
    if (!*out)
        return vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(memory));
    return vd_memory_write(memory, *out, host, size, err);
}

static vd_status place_data(vd_exec *exec, ro_ctx *memory, vd_err *err) {
    const vd_program *p = exec->program;
    vd_status status = VD_OK;
    if (!exec->placed)
        exec->placed = calloc((size_t)p->data_count + 1, sizeof *exec->placed);
    if (!exec->placed)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < p->data_count; i++)
        if (!exec->placed[i])
            status = place(memory, exec->data[i], vd_shape_bytes(&p->data[i].tensor.shape),
                           &exec->placed[i], err);
    return status;
}

/* Copies the data first, since packed weights get a share of the memory that data leave. */
vd_status vd_exec_place(vd_exec *exec, vd_err *err) {
    ro_ctx *memory = vd_exec_memory(exec);
    if (!exec->data)
        return VD_OK;
    const vd_status status = memory ? place_data(exec, memory, err) : VD_OK;
    if (status == VD_OK && !exec->kept)
        exec->kept = vd_kept_weights_create(exec->program, memory);
    return status;
}

void vd_exec_drop(vd_exec *exec) {
    for (uint32_t i = 0; exec->placed && i < exec->program->data_count; i++)
        if (exec->placed[i])
            vd_memory_free(exec->ro, exec->placed[i]);
    free(exec->placed);
    exec->placed = NULL;
    vd_kept_weights_destroy(exec->kept);
    exec->kept = NULL;
}

vd_status vd_state_place(const vd_exec *exec, vd_state *state, vd_err *err) {
    ro_ctx *memory = vd_exec_memory(exec);
    vd_state placed = {.step = state->step, .count = state->count, .memory = memory};
    vd_status status = VD_OK;
    if (!memory || state->memory == memory)
        return VD_OK;
    placed.tensor = calloc(state->count, sizeof *placed.tensor);
    if (!placed.tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++)
        if (state->tensor[i]) /* NULL if this process does not keep it */
            status = place(memory, state->tensor[i], vd_shape_bytes(&exec->program->leaf[i].shape),
                           &placed.tensor[i], err);
    vd_state_free(status == VD_OK ? state : &placed);
    if (status == VD_OK)
        *state = placed;
    return status;
}
