/* Merkle trees over byte strings, hashed by all threads of a context. A thread takes blocks of
 * leaves that are subtrees, so hashes do not depend on which thread computes them. */
#include "verde/commit/sha.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    BLOCK_LEAVES = 256, /* a power of two: RFC 6962 splits larger ranges at its multiples */
    BLOCK_BYTES = BLOCK_LEAVES * VD_LEAF_SIZE,
};

/* Estimated microseconds per byte: about 1 GB/s. */
static const double hashing_us = 1e-3;

typedef struct {
    const uint8_t *bytes;
    uint64_t size;
    const vd_tree *tree; /* receives leaves and nodes; NULL: only roots of blocks are kept */
    vd_hash *root;       /* root of each block, if `tree` is NULL */
    atomic_bool failed;
} hashing;

static uint64_t parts_of(uint64_t size, uint64_t part) {
    return size / part + (size % part != 0);
}

/* Hashes leaves, of which the last may be shorter. */
static void hash_leaves(vd_sha *sha, const uint8_t *bytes, uint64_t size, vd_hash *leaf) {
    for (uint64_t at = 0; at < size; at += VD_LEAF_SIZE)
        vd_sha_leaf(sha, bytes + at, size - at < VD_LEAF_SIZE ? (size_t)(size - at) : VD_LEAF_SIZE,
                    leaf++);
}

static void hash_block(vd_sha *sha, const hashing *h, uint64_t block) {
    const uint64_t at = block * BLOCK_BYTES, left = h->size - at;
    const uint64_t size = left < BLOCK_BYTES ? left : BLOCK_BYTES;
    const uint64_t lo = block * BLOCK_LEAVES, hi = lo + parts_of(size, VD_LEAF_SIZE);
    vd_hash leaf[BLOCK_LEAVES];
    hash_leaves(sha, h->bytes + at, size, h->tree ? h->tree->leaf + lo : leaf);
    if (h->tree)
        vd_tree_fill(sha, h->tree, lo, hi, 1);
    else
        vd_sha_root(sha, leaf, hi - lo, &h->root[block]);
    vd_map_pass(h->bytes + at, (size_t)size);
}

static void hash_blocks(void *user, int64_t first, int64_t last, int worker) {
    hashing *h = user;
    (void)worker;
    vd_sha *sha = vd_sha_create();
    for (int64_t i = first; sha && i < last; i++)
        hash_block(sha, h, (uint64_t)i);
    if (!sha || vd_sha_failed(sha))
        atomic_store(&h->failed, true);
    vd_sha_destroy(sha);
}

static vd_status hash_all(ro_ctx *ro, hashing *h, vd_err *err) {
    const int64_t blocks = (int64_t)parts_of(h->size, BLOCK_BYTES);
    if (ro)
        ro_parallel_for(ro, blocks, 1, hashing_us * (double)h->size, hash_blocks, h);
    else
        hash_blocks(h, 0, blocks, 0);
    return atomic_load(&h->failed)
               ? vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing leaves")
               : VD_OK;
}

/* Computes the nodes above the blocks. */
static vd_status fill_above(const vd_tree *tree, vd_err *err) {
    vd_sha *sha = vd_sha_create();
    if (sha)
        vd_tree_fill(sha, tree, 0, tree->count, BLOCK_LEAVES);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done ? VD_OK
                : vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing nodes");
}

vd_status vd_tree_of_bytes(ro_ctx *ro, vd_tree *tree, const void *bytes, uint64_t size,
                           vd_err *err) {
    vd_status status = vd_tree_create(tree, parts_of(size, VD_LEAF_SIZE), err);
    if (status != VD_OK)
        return status;
    hashing h = {.bytes = bytes, .size = size, .tree = tree};
    status = hash_all(ro, &h, err);
    if (status == VD_OK)
        status = fill_above(tree, err);
    if (status != VD_OK)
        vd_tree_free(tree);
    return status;
}

vd_status vd_root_of_bytes(ro_ctx *ro, const void *bytes, uint64_t size, vd_hash *out,
                           vd_err *err) {
    const uint64_t blocks = parts_of(size, BLOCK_BYTES);
    vd_hash one;
    hashing h = {.bytes = bytes, .size = size, .root = &one};
    if (size == 0)
        return vd_fail(err, VD_ERR_LOCAL, "a tree needs at least one leaf");
    if (blocks > 1 && !(h.root = calloc((size_t)blocks, sizeof *h.root)))
        return vd_fail(err, VD_ERR_LOCAL, "too little memory to hash %llu bytes",
                       (unsigned long long)size);
    vd_status status = hash_all(ro, &h, err);
    if (status == VD_OK)
        status = vd_root_of_leaves(h.root, blocks, out, err);
    if (h.root != &one)
        free(h.root);
    return status;
}

vd_status vd_root_of_leaves(const vd_hash *leaf, uint64_t count, vd_hash *out, vd_err *err) {
    if (count == 0)
        return vd_fail(err, VD_ERR_LOCAL, "a tree needs at least one leaf");
    vd_sha *sha = vd_sha_create();
    if (sha)
        vd_sha_root(sha, leaf, count, out);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done ? VD_OK
                : vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing nodes");
}
