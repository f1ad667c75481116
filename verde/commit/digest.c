/* SHA-256 through OpenSSL. The algorithm is fetched once for the process: a fetch per message takes
 * longer than hashing a leaf of 1 KiB. */
#include "verde/commit/sha.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

struct vd_sha {
    EVP_MD_CTX *ctx;
    bool failed;
};

static EVP_MD *sha256; /* lives as long as the process */
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void) {
    sha256 = EVP_MD_fetch(NULL, "SHA2-256", NULL);
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
    /* A context whose allocation failed once must not be touched: OpenSSL would read through NULL.
     */
    if (!sha->failed && EVP_DigestUpdate(sha->ctx, bytes, size) != 1)
        sha->failed = true;
}

void vd_sha_end(vd_sha *sha, vd_hash *out) {
    if (!sha->failed && EVP_DigestFinal_ex(sha->ctx, out->b, NULL) != 1)
        sha->failed = true;
    if (!sha->failed && EVP_DigestInit_ex(sha->ctx, NULL, NULL) != 1)
        sha->failed = true;
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
