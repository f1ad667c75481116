/* This file commits to a state after a step that wrote a few rows, by hashing only these. */
#include "verde/exec/live.h"

#include <stdlib.h>

void vd_live_free(vd_live *live) {
    for (uint32_t i = 0; live->tree && i < live->program->leaf_count; i++)
        vd_tree_free(&live->tree[i]);
    free(live->tree);
    free(live->tensor);
    vd_tree_free(&live->state);
    *live = (vd_live){0};
}

static vd_status commit_leaf(vd_live *live, uint32_t leaf, vd_err *err) {
    vd_hash root;
    const vd_status status = vd_tree_root(&live->tree[leaf], &root, err);
    if (status != VD_OK)
        return status;
    if (!vd_tensor_commit(&live->program->leaf[leaf].shape, &root, &live->tensor[leaf]))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    return VD_OK;
}

static vd_status hash_leaves(vd_live *live, ro_ctx *ro, const vd_state *state, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < live->program->leaf_count; i++) {
        status = vd_tensor_tree(ro, &live->program->leaf[i].shape, state->tensor[i], &live->tree[i],
                                err);
        if (status == VD_OK)
            status = commit_leaf(live, i, err);
    }
    return status;
}

vd_status vd_live_create(ro_ctx *ro, const vd_program *program, const vd_hash *program_hash,
                         const vd_state *state, vd_live *out, vd_err *err) {
    const uint32_t count = program->leaf_count;
    *out = (vd_live){.program = program, .program_hash = *program_hash};
    out->tree = calloc(count, sizeof *out->tree);
    out->tensor = calloc(count, sizeof *out->tensor);
    vd_status status = out->tree && out->tensor
                           ? hash_leaves(out, ro, state, err)
                           : vd_fail(err, VD_ERR_LOCAL, "out of memory for trees of a state");
    if (status == VD_OK)
        status = vd_tree_of_hashes(&out->state, out->tensor, count, err);
    if (status != VD_OK)
        vd_live_free(out);
    return status;
}

vd_status vd_live_update(vd_live *live, const vd_state *state, const vd_written *written,
                         uint32_t count, vd_err *err) {
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        const uint32_t leaf = written[i].leaf;
        status = vd_tensor_update(&live->program->leaf[leaf].shape, state->tensor[leaf],
                                  written[i].from, written[i].size, &live->tree[leaf], err);
        if (status == VD_OK)
            status = commit_leaf(live, leaf, err);
        if (status == VD_OK)
            status = vd_tree_update_items(&live->state, live->tensor, sizeof *live->tensor, leaf,
                                          leaf + 1, err);
    }
    return status;
}

vd_status vd_live_commit(const vd_live *live, int64_t step, vd_hash *out, vd_err *err) {
    vd_hash root;
    const vd_status status = vd_tree_root(&live->state, &root, err);
    if (status == VD_OK && !vd_state_of_root(&live->program_hash, step, &root, out))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
    return status;
}

vd_status vd_live_check(const vd_live *live, ro_ctx *ro, const vd_state *state, vd_err *err) {
    for (uint32_t i = 0; i < live->program->leaf_count; i++) {
        const vd_leaf *leaf = &live->program->leaf[i];
        vd_hash root, tensor;
        const vd_status status =
            vd_tensor_hash(ro, &leaf->shape, state->tensor[i], &root, &tensor, err);
        if (status != VD_OK)
            return status;
        if (!vd_hash_equal(&tensor, &live->tensor[i]))
            return vd_fail(err, VD_ERR_LOCAL,
                           "%s of the state at step %lld is not what was committed to: the memory "
                           "changed by itself, or a write was missed",
                           leaf->name, (long long)state->step);
    }
    return VD_OK;
}
