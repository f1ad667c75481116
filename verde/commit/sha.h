/* SHA-256 in trees: shared by the files of verde/commit only. */
#ifndef VD_COMMIT_SHA_H
#define VD_COMMIT_SHA_H

#include "verde/commit/commit.h"

/* Hashes of one tree share a context, which is allocated once. */
void vd_sha_leaf(vd_sha *sha, const void *data, size_t size, vd_hash *out);
void vd_sha_node(vd_sha *sha, const vd_hash *left, const vd_hash *right, vd_hash *out);

/* MTH over `count` leaf hashes, at least one. No deeper than 64 calls. */
void vd_sha_root(vd_sha *sha, const vd_hash *leaf, uint64_t count, vd_hash *out);

/* A tree of `count` leaves whose hashes are not there yet. */
VD_MUST_USE vd_status vd_tree_create(vd_tree *tree, uint64_t count, vd_err *err);
/* Computes the inner nodes of [lo, hi), a node of the tree, from its leaves. Nodes of at most
 * `filled` leaves, 1 or more, are there already. */
void vd_tree_fill(vd_sha *sha, const vd_tree *tree, uint64_t lo, uint64_t hi, uint64_t filled);

/* The end of a message; failures stay in `sha`. */
void vd_sha_end(vd_sha *sha, vd_hash *out);
bool vd_sha_failed(const vd_sha *sha);

#endif
