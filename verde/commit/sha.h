/* SHA-256 in trees: shared by the files of verde/commit only. */
#ifndef VD_COMMIT_SHA_H
#define VD_COMMIT_SHA_H

#include "verde/commit/commit.h"

/* Hashes of one tree share a context: making one costs as much as hashing a leaf. */
void vd_sha_leaf(vd_sha *sha, const void *data, size_t size, vd_hash *out);
void vd_sha_node(vd_sha *sha, const vd_hash *left, const vd_hash *right, vd_hash *out);

/* The end of a message; failures stay in `sha`. */
void vd_sha_end(vd_sha *sha, vd_hash *out);
bool vd_sha_failed(const vd_sha *sha);

#endif
