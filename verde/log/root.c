/* A trainer's commitment to a step's log, and proofs of sections. PROTOCOL.md section 11.5. */
#include "verde/log/internal.h"

static vd_status no_memory(vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, while hashing a log");
}

bool vd_log_section_hash_with(vd_sha *sha, const void *bytes, size_t size, vd_hash *out) {
    static const char tag[] = "verde/section/1"; /* with its NUL */
    vd_sha_put(sha, tag, sizeof tag);
    vd_sha_put(sha, bytes, size);
    return vd_sha_finish(sha, out);
}

bool vd_log_section_hash(const void *bytes, size_t size, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    const bool done = sha && vd_log_section_hash_with(sha, bytes, size, out);
    vd_sha_destroy(sha);
    return done;
}

bool vd_log_root(const vd_log_run *run, int64_t step, uint32_t sections, const vd_hash *tree_root,
                 vd_hash *out) {
    vd_buf bytes = {0};
    vd_log_put_header(&bytes, run, step, sections);
    vd_put(&bytes, tree_root->b, VD_HASH_SIZE);
    const bool done =
        vd_buf_ok(&bytes) && vd_hash_tagged("verde/log/1", bytes.data, bytes.size, out);
    vd_buf_free(&bytes);
    return done;
}

enum { LEAF = 8 + VD_HASH_SIZE };

static void put_leaf(vd_buf *out, const vd_log_leaf *leaf) {
    vd_put_u64(out, leaf->size);
    vd_put(out, leaf->digest.b, VD_HASH_SIZE);
}

vd_status vd_log_tree(const vd_log_entry *entry, uint32_t count, vd_tree *tree, vd_hash *tree_root,
                      vd_err *err) {
    *tree = (vd_tree){0};
    *tree_root = (vd_hash){0};
    if (count == 0)
        return VD_OK;
    vd_buf leaves = {0};
    for (uint32_t i = 0; i < count; i++)
        put_leaf(&leaves, &(vd_log_leaf){entry[i].size, entry[i].hash});
    vd_status status =
        vd_buf_ok(&leaves) ? vd_tree_of_items(tree, leaves.data, count, LEAF, err) : no_memory(err);
    vd_buf_free(&leaves);
    if (status == VD_OK)
        status = vd_tree_root(tree, tree_root, err);
    if (status != VD_OK)
        vd_tree_free(tree);
    return status;
}

vd_status vd_log_proof_verify(const vd_log_run *run, int64_t step, uint32_t index,
                              uint32_t sections, const vd_log_leaf *leaf, const vd_hash *tree_root,
                              const vd_proof *proof, const vd_hash *root, vd_err *err) {
    vd_hash own, hash;
    vd_buf bytes = {0};
    if (!vd_log_root(run, step, sections, tree_root, &own))
        return no_memory(err);
    if (!vd_hash_equal(&own, root))
        return vd_fail(err, VD_ERR_PEER,
                       "the tree's root does not give the root of step %lld's log",
                       (long long)step);
    put_leaf(&bytes, leaf);
    const bool done = vd_buf_ok(&bytes) && vd_leaf_hash(bytes.data, bytes.size, &hash);
    vd_buf_free(&bytes);
    return done ? vd_proof_verify(proof, index, sections, &hash, tree_root, err) : no_memory(err);
}
