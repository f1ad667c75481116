/* SHA-256 of plain and tagged messages, and of leaves and nodes of trees. */
#include "verde/commit/sha.h"

#include <string.h>

bool vd_hash_equal(const vd_hash *a, const vd_hash *b) {
    return memcmp(a->b, b->b, VD_HASH_SIZE) == 0;
}

bool vd_sha_finish(vd_sha *sha, vd_hash *out) {
    vd_sha_end(sha, out);
    return !vd_sha_failed(sha);
}

bool vd_hash_tagged(const char *tag, const void *bytes, size_t size, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    if (tag)
        vd_sha_put(sha, tag, strlen(tag) + 1); /* with its NUL */
    vd_sha_put(sha, bytes, size);
    bool done = vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    return done;
}

void vd_sha_leaf(vd_sha *sha, const void *data, size_t size, vd_hash *out) {
    vd_sha_put(sha, &(uint8_t){0x00}, 1);
    if (size > 0)
        vd_sha_put(sha, data, size);
    vd_sha_end(sha, out);
}

void vd_sha_node(vd_sha *sha, const vd_hash *left, const vd_hash *right, vd_hash *out) {
    uint8_t message[1 + 2 * VD_HASH_SIZE] = {0x01};
    memcpy(message + 1, left->b, VD_HASH_SIZE);
    memcpy(message + 1 + VD_HASH_SIZE, right->b, VD_HASH_SIZE);
    vd_sha_put(sha, message, sizeof message);
    vd_sha_end(sha, out);
}

void vd_sha_root(vd_sha *sha, const vd_hash *leaf, uint64_t count, vd_hash *out) {
    if (count == 1) {
        *out = leaf[0];
        return;
    }
    const uint64_t split = vd_tree_split(0, count);
    vd_hash left, right;
    vd_sha_root(sha, leaf, split, &left);
    vd_sha_root(sha, leaf + split, count - split, &right);
    vd_sha_node(sha, &left, &right, out);
}

bool vd_leaf_hash(const void *data, size_t size, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_leaf(sha, data, size, out);
    bool done = !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done;
}

bool vd_node_hash(const vd_hash *left, const vd_hash *right, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_node(sha, left, right, out);
    bool done = !vd_sha_failed(sha);
    vd_sha_destroy(sha);
    return done;
}
