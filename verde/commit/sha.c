/* SHA-256 through OpenSSL. The algorithm is fetched once for the process: a fetch per message takes
 * longer than hashing a leaf of 1 KiB. */
#include "verde/commit/sha.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct vd_sha {
    EVP_MD_CTX *ctx;
    bool failed;
};

static EVP_MD *sha256; /* lives as long as the process */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void) {
    sha256 = EVP_MD_fetch(NULL, "SHA2-256", NULL);
}

bool vd_hash_equal(const vd_hash *a, const vd_hash *b) {
    return memcmp(a->b, b->b, VD_HASH_SIZE) == 0;
}

vd_sha *vd_sha_create(void) {
    pthread_once(&sha256_once, fetch_sha256);
    vd_sha *sha = calloc(1, sizeof *sha);
    if (!sha)
        return NULL;
    sha->ctx = EVP_MD_CTX_new();
    if (!sha256 || !sha->ctx || EVP_DigestInit_ex(sha->ctx, sha256, NULL) != 1) {
        vd_sha_destroy(sha);
        return NULL;
    }
    return sha;
}

void vd_sha_put(vd_sha *sha, const void *bytes, size_t size) {
    if (EVP_DigestUpdate(sha->ctx, bytes, size) != 1)
        sha->failed = true;
}

static void finish(vd_sha *sha, vd_hash *out) {
    if (EVP_DigestFinal_ex(sha->ctx, out->b, NULL) != 1)
        sha->failed = true;
    if (EVP_DigestInit_ex(sha->ctx, NULL, NULL) != 1)
        sha->failed = true;
}

bool vd_sha_finish(vd_sha *sha, vd_hash *out) {
    finish(sha, out);
    return !sha->failed;
}

bool vd_sha_failed(const vd_sha *sha) {
    return sha->failed;
}

void vd_sha_destroy(vd_sha *sha) {
    if (!sha)
        return;
    EVP_MD_CTX_free(sha->ctx);
    free(sha);
}

bool vd_hash_tagged(const char *tag, const void *bytes, size_t size, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    if (tag)
        vd_sha_put(sha, tag, strlen(tag) + 1); /* with its 0x00 */
    vd_sha_put(sha, bytes, size);
    bool done = vd_sha_finish(sha, out);
    vd_sha_destroy(sha);
    return done;
}

void vd_sha_leaf(vd_sha *sha, const void *data, size_t size, vd_hash *out) {
    vd_sha_put(sha, "\x00", 1);
    vd_sha_put(sha, data, size);
    finish(sha, out);
}

void vd_sha_node(vd_sha *sha, const vd_hash *left, const vd_hash *right, vd_hash *out) {
    uint8_t message[1 + 2 * VD_HASH_SIZE] = {0x01};
    memcpy(message + 1, left->b, VD_HASH_SIZE);
    memcpy(message + 1 + VD_HASH_SIZE, right->b, VD_HASH_SIZE);
    vd_sha_put(sha, message, sizeof message);
    finish(sha, out);
}

bool vd_leaf_hash(const void *data, size_t size, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_leaf(sha, data, size, out);
    bool done = !sha->failed;
    vd_sha_destroy(sha);
    return done;
}

bool vd_node_hash(const vd_hash *left, const vd_hash *right, vd_hash *out) {
    vd_sha *sha = vd_sha_create();
    if (!sha)
        return false;
    vd_sha_node(sha, left, right, out);
    bool done = !sha->failed;
    vd_sha_destroy(sha);
    return done;
}
