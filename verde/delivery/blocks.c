/* This file checks a tensor's blocks against the run that they belong to. */
#include "verde/delivery/blocks.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(VD_BLOCK_BYTES % VD_LEAF_SIZE == 0, "a block is a node of its tensor's tree");

size_t vd_block_size(const ro_shape *shape, uint64_t k) {
    const uint64_t left = vd_shape_bytes(shape) - k * VD_BLOCK_BYTES;
    return left < VD_BLOCK_BYTES ? (size_t)left : VD_BLOCK_BYTES;
}

static vd_status commit_to(const ro_shape *shape, const vd_hash *root, const vd_hash *commitment,
                           const char *what, vd_err *err) {
    vd_hash found;
    if (!vd_tensor_commit(shape, root, &found))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in committing to a tensor");
    return vd_hash_equal(&found, commitment)
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "%s do not give the commitment", what);
}

vd_status vd_block_list_check(const ro_shape *shape, const vd_hash *commitment, const void *bytes,
                              size_t size, vd_err *err) {
    const uint64_t count = vd_tensor_blocks(shape);
    vd_hash root;
    if (size != count * VD_HASH_SIZE)
        return vd_fail(err, VD_ERR_PEER, "%zu bytes of hashes, expected %llu hashes of %d", size,
                       (unsigned long long)count, VD_HASH_SIZE);
    vd_status status = vd_root_of_leaves(bytes, count, &root, err);
    return status == VD_OK ? commit_to(shape, &root, commitment, "the hashes of blocks", err)
                           : status;
}

vd_status vd_block_check(const ro_shape *shape, const vd_hash *commitment, const vd_hash *block,
                         uint64_t k, const void *bytes, size_t size, vd_err *err) {
    const size_t expected = vd_block_size(shape, k);
    vd_hash root;
    if (size != expected)
        return vd_fail(err, VD_ERR_PEER, "%zu bytes, expected %zu", size, expected);
    vd_status status = vd_root_of_bytes(NULL, bytes, size, &root, err);
    if (status != VD_OK)
        return status;
    if (!block)
        return commit_to(shape, &root, commitment, "the bytes", err);
    return vd_hash_equal(&root, block)
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "the bytes do not give the block's hash");
}
