/* SHA-256 in trees. Private to verde/commit. */
#ifndef VD_COMMIT_SHA_H
#define VD_COMMIT_SHA_H

#include "verde/commit/commit.h"

/* Hash a leaf, and a node. A tree's hashes share one context, so that it is allocated once. */
void vd_sha_leaf(vd_sha *sha, const void *data, size_t size, vd_hash *out);
void vd_sha_node(vd_sha *sha, const vd_hash *left, const vd_hash *right, vd_hash *out);

/* RFC 6962's MTH over `count` leaf hashes, at least one. Recursion is at most 64 deep. */
void vd_sha_root(vd_sha *sha, const vd_hash *leaf, uint64_t count, vd_hash *out);

/* Allocates a tree of `count` leaves, whose hashes are not set. */
VD_MUST_USE vd_status vd_tree_create(vd_tree *tree, uint64_t count, vd_err *err);
/* Computes the inner nodes of [lo, hi), a node of the tree, from its leaves. Nodes of up to
 * `filled` leaves, 1 or more, are set already. */
void vd_tree_fill(vd_sha *sha, const vd_tree *tree, uint64_t lo, uint64_t hi, uint64_t filled);

/* Ends a message; failures are remembered in `sha`. */
void vd_sha_end(vd_sha *sha, vd_hash *out);
bool vd_sha_failed(const vd_sha *sha);

#endif
