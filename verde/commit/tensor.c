/* Commitments to tensors and to states. */
#include "verde/commit/commit.h"

#include <stdlib.h>

/* Returns 0 for an invalid shape. Shapes come from peers, and may have any bits. */
static uint64_t byte_count(const ro_shape *shape) {
    if (shape->ndim < 1 || shape->ndim > RO_MAX_DIMS)
        return 0;
    int64_t elements = 1;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 1 || shape->dim[i] > RO_MAX_NUMEL / elements)
            return 0;
        elements *= shape->dim[i];
    }
    return (uint64_t)elements * ro_dtype_size(shape->dtype);
}

uint64_t vd_tensor_leaves(const ro_shape *shape) {
    return (byte_count(shape) + VD_LEAF_SIZE - 1) / VD_LEAF_SIZE;
}

bool vd_tensor_commit(const ro_shape *shape, const vd_hash *byte_root, vd_hash *out) {
    if (byte_count(shape) == 0)
        return false;
    vd_buf message = {0};
    vd_put_u32(&message, (uint32_t)shape->dtype);
    vd_put_u32(&message, (uint32_t)shape->ndim);
    for (int i = 0; i < shape->ndim; i++)
        vd_put_u64(&message, (uint64_t)shape->dim[i]);
    vd_put(&message, byte_root->b, VD_HASH_SIZE);
    bool done =
        vd_buf_ok(&message) && vd_hash_tagged("verde/tensor/1", message.data, message.size, out);
    vd_buf_free(&message);
    return done;
}

/* Returns the bytes to commit to: `data`, or a copy, which *copy owns; NULL on failure. */
static const void *committed_bytes(const ro_shape *shape, const void *data, void **copy,
                                   vd_err *err) {
    const uint64_t size = byte_count(shape);
    *copy = NULL;
    if (size == 0) {
        vd_fail(err, VD_ERR_LOCAL, "a tensor to commit to has no valid shape");
        return NULL;
    }
    const void *bytes = vd_to_little(data, size, ro_dtype_size(shape->dtype), copy);
    if (!bytes)
        vd_fail(err, VD_ERR_LOCAL, "out of memory in hashing a tensor");
    return bytes;
}

vd_status vd_tensor_hash(ro_ctx *ro, const ro_shape *shape, const void *data, vd_hash *byte_root,
                         vd_hash *commitment, vd_err *err) {
    void *copy = NULL;
    const void *bytes = committed_bytes(shape, data, &copy, err);
    vd_status status =
        bytes ? vd_root_of_bytes(ro, bytes, byte_count(shape), byte_root, err) : VD_ERR_LOCAL;
    free(copy);
    if (status == VD_OK && !vd_tensor_commit(shape, byte_root, commitment))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    return status;
}

vd_status vd_tensor_tree(ro_ctx *ro, const ro_shape *shape, const void *data, vd_tree *tree,
                         vd_err *err) {
    void *copy = NULL;
    const void *bytes = committed_bytes(shape, data, &copy, err);
    vd_status status =
        bytes ? vd_tree_of_bytes(ro, tree, bytes, byte_count(shape), err) : VD_ERR_LOCAL;
    free(copy);
    return status;
}

bool vd_state_of_root(const vd_hash *program, int64_t step, const vd_hash *root, vd_hash *out) {
    vd_buf message = {0};
    vd_put(&message, program->b, VD_HASH_SIZE);
    vd_put_u64(&message, (uint64_t)step);
    vd_put(&message, root->b, VD_HASH_SIZE);
    bool done =
        vd_buf_ok(&message) && vd_hash_tagged("verde/state/1", message.data, message.size, out);
    vd_buf_free(&message);
    return done;
}

vd_status vd_state_commit(const vd_hash *program, int64_t step, const vd_hash *tensor,
                          uint64_t count, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_hash root;
    vd_status status = vd_tree_of_hashes(&tree, tensor, count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, &root, err);
    if (status == VD_OK && !vd_state_of_root(program, step, &root, out))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a state");
    vd_tree_free(&tree);
    return status;
}
