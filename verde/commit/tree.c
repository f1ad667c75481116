/* RFC 6962 section 2.1: Merkle trees over any number of leaves, none of them doubled. */
#include "verde/commit/sha.h"

#include <stdlib.h>

/* All commitments depend on the size (PROTOCOL.md 2.3). tree.cu hashes whole blocks of SHA-256. */
_Static_assert(VD_LEAF_SIZE % 64 == 0 && (VD_LEAF_SIZE & (VD_LEAF_SIZE - 1)) == 0,
               "a leaf has whole blocks of SHA-256, and holds whole elements of any size");

/* Leaves of the largest tensor: RO_MAX_NUMEL elements of 4 bytes. */
#define LEAVES_MAX ((uint64_t)RO_MAX_NUMEL * 4 / VD_LEAF_SIZE)

void vd_tree_free(vd_tree *tree) {
    free(tree->leaf);
    *tree = (vd_tree){0};
}

vd_status vd_tree_create(vd_tree *tree, uint64_t count, vd_err *err) {
    *tree = (vd_tree){0};
    if (count == 0)
        return vd_fail(err, VD_ERR_LOCAL, "a tree needs at least one leaf");
    if (count <= LEAVES_MAX && count <= SIZE_MAX / (2 * sizeof *tree->leaf))
        tree->leaf = malloc((2 * (size_t)count - 1) * sizeof *tree->leaf);
    if (!tree->leaf)
        return vd_fail(err, VD_ERR_LOCAL, "too little memory for a tree of %llu leaves",
                       (unsigned long long)count);
    tree->node = tree->leaf + count;
    tree->count = count;
    return VD_OK;
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

/* The stored hash of a node [lo, hi), MTH(D[lo:hi]). */
static const vd_hash *stored(const vd_tree *tree, uint64_t lo, uint64_t hi) {
    return hi - lo == 1 ? &tree->leaf[lo] : &tree->node[vd_tree_split(lo, hi) - 1];
}

void vd_tree_fill(vd_sha *sha, const vd_tree *tree, uint64_t lo, uint64_t hi, uint64_t filled) {
    if (hi - lo <= filled)
        return;
    uint64_t split = vd_tree_split(lo, hi);
    vd_tree_fill(sha, tree, lo, split, filled);
    vd_tree_fill(sha, tree, split, hi, filled);
    vd_sha_node(sha, stored(tree, lo, split), stored(tree, split, hi), &tree->node[split - 1]);
}

/* Hashes items of `item_size` bytes as leaves, and the nodes above. */
static void hash_items(vd_sha *sha, const vd_tree *tree, const uint8_t *items, size_t item_size) {
    for (uint64_t i = 0; i < tree->count; i++)
        vd_sha_leaf(sha, items + i * item_size, item_size, &tree->leaf[i]);
    vd_tree_fill(sha, tree, 0, tree->count, 1);
}

vd_status vd_tree_of_items(vd_tree *tree, const void *items, uint64_t count, size_t item_size,
                           vd_err *err) {
    vd_status status = vd_tree_create(tree, count, err);
    if (status != VD_OK)
        return status;
    vd_sha *sha = vd_sha_create();
    if (sha)
        hash_items(sha, tree, items, item_size);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    if (done)
        return VD_OK;
    vd_tree_free(tree);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing a tree");
}

vd_status vd_tree_of_hashes(vd_tree *tree, const vd_hash *item, uint64_t count, vd_err *err) {
    return vd_tree_of_items(tree, item, count, sizeof *item, err);
}

static vd_status no_node(const vd_tree *tree, uint64_t lo, uint64_t hi, vd_err *err) {
    return vd_fail(err, VD_ERR_LOCAL, "leaves [%llu, %llu) are no node of a tree of %llu leaves",
                   (unsigned long long)lo, (unsigned long long)hi, (unsigned long long)tree->count);
}

vd_status vd_tree_node(const vd_tree *tree, uint64_t lo, uint64_t hi, vd_hash *out, vd_err *err) {
    if (!vd_tree_is_node(tree->count, lo, hi))
        return no_node(tree, lo, hi, err);
    *out = *stored(tree, lo, hi);
    return VD_OK;
}

vd_status vd_tree_root(const vd_tree *tree, vd_hash *out, vd_err *err) {
    return vd_tree_node(tree, 0, tree->count, out, err);
}

/* The hash of [left, right) if its node [lo, hi) were `node`. Recursion is at most 64 deep. */
static vd_hash with_node(vd_sha *sha, const vd_tree *tree, uint64_t lo, uint64_t hi,
                         const vd_hash *node, uint64_t left, uint64_t right) {
    if (left == lo && right == hi)
        return *node;
    uint64_t split = vd_tree_split(left, right);
    vd_hash out;
    if (lo < split) {
        out = with_node(sha, tree, lo, hi, node, left, split);
        vd_sha_node(sha, &out, stored(tree, split, right), &out);
    } else {
        out = with_node(sha, tree, lo, hi, node, split, right);
        vd_sha_node(sha, stored(tree, left, split), &out, &out);
    }
    return out;
}

vd_status vd_tree_root_with(const vd_tree *tree, uint64_t lo, uint64_t hi, const vd_hash *node,
                            vd_hash *out, vd_err *err) {
    if (!vd_tree_is_node(tree->count, lo, hi))
        return no_node(tree, lo, hi, err);
    vd_sha *sha = vd_sha_create();
    if (sha)
        *out = with_node(sha, tree, lo, hi, node, 0, tree->count);
    bool done = sha && !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done ? VD_OK
                : vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing nodes");
}

/* RFC 6962's PATH(index, D[0:count]): siblings of the nodes above the leaf, from the bottom up. */
static void audit_path(const vd_tree *tree, uint64_t index, uint64_t lo, uint64_t hi,
                       vd_proof *proof) {
    if (hi - lo == 1)
        return;
    uint64_t split = vd_tree_split(lo, hi);
    bool left = index < split;
    audit_path(tree, index, left ? lo : split, left ? split : hi, proof);
    proof->path[proof->length++] = *stored(tree, left ? split : lo, left ? hi : split);
}

vd_status vd_tree_prove(const vd_tree *tree, uint64_t index, vd_proof *proof, vd_err *err) {
    proof->length = 0;
    if (index >= tree->count)
        return vd_fail(err, VD_ERR_LOCAL, "leaf %llu of a tree of %llu leaves",
                       (unsigned long long)index, (unsigned long long)tree->count);
    audit_path(tree, index, 0, tree->count, proof);
    return VD_OK;
}
