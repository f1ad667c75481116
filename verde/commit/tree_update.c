/* This file updates a tree: it hashes changed leaves and the nodes above them. */
#include "verde/commit/sha.h"

#include <stdlib.h>

typedef struct {
    vd_sha *sha;
    vd_tree *tree;
    const uint8_t *bytes; /* of the changed leaves */
    uint64_t size;        /* of `bytes` */
    size_t leaf_size;
    uint64_t first, last; /* range [first, last) of the changed leaves */
} updating;

static void update_leaf(const updating *u, uint64_t leaf) {
    const uint64_t at = (leaf - u->first) * u->leaf_size, left = u->size - at;
    vd_sha_leaf(u->sha, u->bytes + at, left < u->leaf_size ? (size_t)left : u->leaf_size,
                &u->tree->leaf[leaf]);
}

/* Hashes the node over leaves [lo, hi) again if a leaf of it changed, and returns its hash.
 * Recursion is at most 64 deep. */
static const vd_hash *update_node(const updating *u, uint64_t lo, uint64_t hi) {
    const bool dirty = lo < u->last && u->first < hi;
    if (hi - lo == 1) {
        if (dirty)
            update_leaf(u, lo);
        return &u->tree->leaf[lo];
    }
    const uint64_t split = vd_tree_split(lo, hi);
    vd_hash *node = &u->tree->node[split - 1];
    if (dirty) {
        const vd_hash *left = update_node(u, lo, split);
        vd_sha_node(u->sha, left, update_node(u, split, hi), node);
    }
    return node;
}

static vd_status update_all(updating *u, vd_err *err) {
    u->sha = vd_sha_create();
    if (u->sha)
        update_node(u, 0, u->tree->count);
    const bool done = u->sha && !vd_sha_failed(u->sha);
    vd_sha_destroy(u->sha);
    return done ? VD_OK
                : vd_fail(err, VD_ERR_LOCAL, "out of memory, or OpenSSL failed, in hashing nodes");
}

vd_status vd_tree_update_items(vd_tree *tree, const void *items, size_t item_size, uint64_t first,
                               uint64_t last, vd_err *err) {
    if (first >= last || last > tree->count)
        return vd_fail(err, VD_ERR_LOCAL, "leaves [%llu, %llu) of a tree of %llu leaves",
                       (unsigned long long)first, (unsigned long long)last,
                       (unsigned long long)tree->count);
    updating u = {.tree = tree,
                  .bytes = (const uint8_t *)items + first * item_size,
                  .size = (last - first) * item_size,
                  .leaf_size = item_size,
                  .first = first,
                  .last = last};
    return update_all(&u, err);
}

vd_status vd_tensor_update(const ro_shape *shape, const void *data, uint64_t from, uint64_t size,
                           vd_tree *tree, vd_err *err) {
    const size_t element = ro_dtype_size(shape->dtype);
    const uint64_t whole = (uint64_t)ro_shape_numel(shape) * element;
    if (tree->count != vd_tensor_leaves(shape) || size == 0 || from >= whole || size > whole - from)
        return vd_fail(err, VD_ERR_LOCAL, "bytes [%llu, +%llu) of a tensor of %llu bytes",
                       (unsigned long long)from, (unsigned long long)size,
                       (unsigned long long)whole);
    const uint64_t first = from / VD_LEAF_SIZE, last = (from + size - 1) / VD_LEAF_SIZE + 1;
    const uint64_t at = first * VD_LEAF_SIZE;
    const uint64_t end = last * VD_LEAF_SIZE < whole ? last * VD_LEAF_SIZE : whole;
    void *copy = NULL;
    updating u = {.tree = tree,
                  .bytes = vd_to_little((const uint8_t *)data + at, end - at, element, &copy),
                  .size = end - at,
                  .leaf_size = VD_LEAF_SIZE,
                  .first = first,
                  .last = last};
    const vd_status status = u.bytes
                                 ? update_all(&u, err)
                                 : vd_fail(err, VD_ERR_LOCAL, "out of memory in hashing a tensor");
    free(copy);
    return status;
}
