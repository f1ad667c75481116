/* This file hashes the programs of a collection, and their run roots. PROTOCOL.md section 1.4. */
#include "verde/commit/collection.h"

bool vd_collection_commit(uint64_t count, const vd_hash *programs, vd_hash *out) {
    vd_buf bytes = {0};
    vd_put_u64(&bytes, count);
    vd_put(&bytes, programs->b, sizeof programs->b);
    const bool ok =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/collection/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return ok;
}

vd_status vd_collection_hash(const vd_hash *program, uint64_t count, vd_hash *out, vd_err *err) {
    vd_hash programs;
    vd_status status = vd_collection_root(program, count, &programs, err);
    if (status == VD_OK && !vd_collection_commit(count, &programs, out))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return status;
}

vd_status vd_collection_root(const vd_hash *item, uint64_t count, vd_hash *out, vd_err *err) {
    vd_tree tree = {0};
    vd_status status = vd_tree_of_hashes(&tree, item, count, err);
    if (status == VD_OK)
        status = vd_tree_root(&tree, out, err);
    vd_tree_free(&tree);
    return status;
}
