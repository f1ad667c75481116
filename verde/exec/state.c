/* This file commits to states and programs, wherever their tensors are. */
#include <stdlib.h>
#include <string.h>

#include "repops/device.h"
#include "verde/exec/exec.h"
#include "verde/exec/memory.h"

size_t vd_shape_bytes(const ro_shape *shape) {
    return (size_t)ro_shape_numel(shape) * ro_dtype_size(shape->dtype);
}

void vd_state_free(vd_state *state) {
    for (uint32_t i = 0; state->tensor && i < state->count; i++)
        vd_memory_free(state->memory, state->tensor[i]);
    free(state->tensor);
    *state = (vd_state){0};
}

static void take_bytes(void *user, const void *bytes, size_t size) {
    vd_sha_put(user, bytes, size);
}

static vd_status hash_program(const vd_program *program, const char *tag, bool named, vd_hash *out,
                              vd_err *err) {
    vd_sha *sha = vd_sha_create();
    bool ok = sha != NULL;
    if (ok)
        vd_sha_put(sha, tag, strlen(tag) + 1); /* with its NUL */
    ok = ok && vd_program_pieces(program, named, take_bytes, sha) && vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "program: out of memory");
}

vd_status vd_program_hash(const vd_program *program, vd_hash *out, vd_err *err) {
    return hash_program(program, "verde/program/1", true, out, err);
}

vd_status vd_program_structure(const vd_program *program, vd_hash *out, vd_err *err) {
    return hash_program(program, "verde/structure/1", false, out, err);
}

bool vd_emitted_state(const vd_hash *state, const vd_hash *emitted, vd_hash *out) {
    const vd_hash both[2] = {*state, *emitted};
    return vd_hash_tagged("verde/logged/1", both, sizeof both, out);
}

static vd_status hash_in_host(ro_ctx *ro, const vd_program *program, const vd_state *state,
                              const bool *wanted, vd_hash *tensor, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++) {
        vd_hash root;
        if (!wanted || wanted[i])
            status = vd_tensor_hash(ro, &program->leaf[i].shape, state->tensor[i], &root,
                                    &tensor[i], err);
    }
    return status;
}

typedef struct {
    const void **data;
    size_t *size;
    uint32_t *leaf;
    vd_hash *root;
    uint32_t count;
} wanted_leaves;

static void list_wanted(const vd_program *program, const vd_state *state, const bool *wanted,
                        wanted_leaves *list) {
    for (uint32_t i = 0; i < state->count; i++) {
        if (wanted && !wanted[i])
            continue;
        list->data[list->count] = state->tensor[i];
        list->size[list->count] = vd_shape_bytes(&program->leaf[i].shape);
        list->leaf[list->count++] = i;
    }
}

/* Hashes states on their device, so that only roots are copied. */
static vd_status hash_on_device(const vd_program *program, const vd_state *state,
                                const bool *wanted, vd_hash *tensor, vd_err *err) {
    const uint32_t count = state->count;
    wanted_leaves w = {calloc(count, sizeof *w.data), calloc(count, sizeof *w.size),
                       calloc(count, sizeof *w.leaf), calloc(count, sizeof *w.root), 0};
    vd_status status = VD_OK;
    if (w.data && w.size && w.leaf && w.root)
        list_wanted(program, state, wanted, &w);
    else
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK && w.count > 0 &&
        ro_tree_roots(state->memory, w.count, w.data, w.size, w.root->b) != RO_OK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(state->memory));
    for (uint32_t i = 0; status == VD_OK && i < w.count; i++)
        if (!vd_tensor_commit(&program->leaf[w.leaf[i]].shape, &w.root[i], &tensor[w.leaf[i]]))
            status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    free(w.data);
    free(w.size);
    free(w.leaf);
    free(w.root);
    return status;
}

vd_status vd_leaves_hash(ro_ctx *ro, const vd_program *program, const vd_state *state,
                         const bool *wanted, vd_hash *tensor, vd_err *err) {
    return state->memory ? hash_on_device(program, state, wanted, tensor, err)
                         : hash_in_host(ro, program, state, wanted, tensor, err);
}

vd_status vd_state_hash(ro_ctx *ro, const vd_program *program, const vd_hash *program_hash,
                        const vd_state *state, vd_hash *tensor, vd_hash *out, vd_err *err) {
    vd_hash *commitment = tensor ? tensor : calloc(state->count, sizeof *commitment);
    vd_status status = commitment ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_leaves_hash(ro, program, state, NULL, commitment, err);
    if (status == VD_OK)
        status = vd_state_commit(program_hash, state->step, commitment, state->count, out, err);
    if (!tensor)
        free(commitment);
    return status;
}
