#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"

size_t vd_shape_bytes(const ro_shape *shape) {
    return (size_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype);
}

void vd_state_free(vd_state *state) {
    for (uint32_t i = 0; state->tensor && i < state->count; i++)
        free(state->tensor[i]);
    free(state->tensor);
    *state = (vd_state){0};
}

vd_status vd_program_hash(const vd_program *program, vd_hash *out, vd_err *err) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    bool ok = vd_buf_ok(&bytes) && vd_hash_tagged("verde/program/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "program: out of memory");
}

vd_status vd_state_hash(const vd_program *program, const vd_hash *program_hash,
                        const vd_state *state, vd_hash *tensor, vd_hash *out, vd_err *err) {
    vd_hash *commitment = tensor ? tensor : calloc(state->count, sizeof *commitment);
    vd_status status = commitment ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++) {
        vd_hash root;
        status = vd_tensor_hash(&program->leaf[i].shape, state->tensor[i], &root, &commitment[i],
                                NULL, err);
    }
    if (status == VD_OK)
        status = vd_state_commit(program_hash, state->step, commitment, state->count, out, err);
    if (!tensor)
        free(commitment);
    return status;
}
