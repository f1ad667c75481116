/* RFC 6962 section 2.1: Merkle trees over any number of leaves, none of them doubled. */
#include "verde/commit/sha.h"

#include <stdlib.h>

/* Leaves of the largest tensor there is: RO_MAX_NUMEL elements of 4 bytes. */
#define LEAVES_MAX ((uint64_t)RO_MAX_NUMEL * 4 / VD_LEAF_SIZE)

static vd_status no_memory(vd_err *err, const char *what) {
    return vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, while %s", what);
}

void vd_tree_free(vd_tree *tree) {
    free(tree->leaf);
    *tree = (vd_tree){0};
}

/* A tree of `count` leaves that are not hashed yet. */
static vd_status tree_create(vd_tree *tree, uint64_t count, vd_err *err) {
    *tree = (vd_tree){0};
    if (count == 0)
        return vd_fail(err, VD_ERR_LOCAL, "a tree needs at least one leaf");
    if (count <= LEAVES_MAX && count <= SIZE_MAX / sizeof *tree->leaf)
        tree->leaf = malloc((size_t)count * sizeof *tree->leaf);
    if (!tree->leaf)
        return vd_fail(err, VD_ERR_LOCAL, "too little memory for a tree of %llu leaves",
                       (unsigned long long)count);
    tree->count = count;
    return VD_OK;
}

/* Leaves of `leaf_size` bytes; the last one may be shorter. */
static vd_status hash_leaves(vd_tree *tree, const uint8_t *bytes, uint64_t size, size_t leaf_size,
                             vd_err *err) {
    vd_sha *sha = vd_sha_create();
    for (uint64_t i = 0; sha && i < tree->count; i++) {
        uint64_t at = i * leaf_size;
        vd_sha_leaf(sha, bytes + at, size - at < leaf_size ? size - at : leaf_size, &tree->leaf[i]);
    }
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    if (done)
        return VD_OK;
    vd_tree_free(tree);
    return no_memory(err, "hashing leaves");
}

vd_status vd_tree_of_bytes(vd_tree *tree, const void *bytes, uint64_t size, vd_err *err) {
    vd_status status = tree_create(tree, size / VD_LEAF_SIZE + (size % VD_LEAF_SIZE != 0), err);
    return status == VD_OK ? hash_leaves(tree, bytes, size, VD_LEAF_SIZE, err) : status;
}

vd_status vd_tree_of_items(vd_tree *tree, const void *items, uint64_t count, size_t item_size,
                           vd_err *err) {
    vd_status status = tree_create(tree, count, err);
    return status == VD_OK ? hash_leaves(tree, items, count * item_size, item_size, err) : status;
}

vd_status vd_tree_of_hashes(vd_tree *tree, const vd_hash *item, uint64_t count, vd_err *err) {
    return vd_tree_of_items(tree, item, count, sizeof *item, err);
}

uint64_t vd_tree_split(uint64_t lo, uint64_t hi) {
    uint64_t last = hi - lo - 1; /* its highest bit is the largest power of two below hi - lo */
    return lo + (UINT64_C(1) << (63 - __builtin_clzll(last)));
}

bool vd_tree_is_node(uint64_t count, uint64_t lo, uint64_t hi) {
    if (lo >= hi || hi > count)
        return false;
    uint64_t left = 0, right = count;
    while (left != lo || right != hi) {
        if (right - left == 1)
            return false;
        uint64_t split = vd_tree_split(left, right);
        if (lo < split)
            right = split;
        else
            left = split;
        if (lo < left || hi > right)
            return false;
    }
    return true;
}

/* MTH(D[lo:hi]); failures stay in `sha`. No deeper than 64 calls. */
static vd_hash subtree(vd_sha *sha, const vd_hash *leaf, uint64_t lo, uint64_t hi) {
    if (hi - lo == 1)
        return leaf[lo];
    uint64_t split = vd_tree_split(lo, hi);
    vd_hash left = subtree(sha, leaf, lo, split);
    vd_hash right = subtree(sha, leaf, split, hi);
    vd_hash node;
    vd_sha_node(sha, &left, &right, &node);
    return node;
}

vd_status vd_tree_node(const vd_tree *tree, uint64_t lo, uint64_t hi, vd_hash *out, vd_err *err) {
    if (!vd_tree_is_node(tree->count, lo, hi))
        return vd_fail(
            err, VD_ERR_LOCAL, "leaves [%llu, %llu) are no node of a tree of %llu leaves",
            (unsigned long long)lo, (unsigned long long)hi, (unsigned long long)tree->count);
    vd_sha *sha = vd_sha_create();
    if (sha)
        *out = subtree(sha, tree->leaf, lo, hi);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done ? VD_OK : no_memory(err, "hashing a tree");
}

vd_status vd_tree_root(const vd_tree *tree, vd_hash *out, vd_err *err) {
    return vd_tree_node(tree, 0, tree->count, out, err);
}

/* PATH(index, D[lo:hi]): the siblings of all nodes above the leaf, the lowest first. */
static void audit_path(vd_sha *sha, const vd_tree *tree, uint64_t index, uint64_t lo, uint64_t hi,
                       vd_proof *proof) {
    if (hi - lo == 1)
        return;
    uint64_t split = vd_tree_split(lo, hi);
    bool left = index < split;
    audit_path(sha, tree, index, left ? lo : split, left ? split : hi, proof);
    proof->path[proof->length++] = subtree(sha, tree->leaf, left ? split : lo, left ? hi : split);
}

vd_status vd_tree_prove(const vd_tree *tree, uint64_t index, vd_proof *proof, vd_err *err) {
    proof->length = 0;
    if (index >= tree->count)
        return vd_fail(err, VD_ERR_LOCAL, "leaf %llu of a tree of %llu leaves",
                       (unsigned long long)index, (unsigned long long)tree->count);
    vd_sha *sha = vd_sha_create();
    if (sha)
        audit_path(sha, tree, index, 0, tree->count, proof);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done ? VD_OK : no_memory(err, "proving a leaf");
}
