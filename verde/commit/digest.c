/* SHA-256 through OpenSSL's low-level functions. The EVP interface takes a twentieth of a
 * microsecond more per message, a fifth of the time for a tree's nodes. OpenSSL 3 deprecates these
 * functions, but still has them. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "verde/commit/sha.h"

#include <openssl/sha.h>
#include <stdlib.h>

struct vd_sha {
    SHA256_CTX ctx;
    bool failed;
};

vd_sha *vd_sha_create(void) {
    vd_sha *sha = calloc(1, sizeof *sha);
    if (sha)
        sha->failed = SHA256_Init(&sha->ctx) != 1;
    return sha;
}

void vd_sha_put(vd_sha *sha, const void *bytes, size_t size) {
    if (!sha->failed && SHA256_Update(&sha->ctx, bytes, size) != 1)
        sha->failed = true;
}

void vd_sha_end(vd_sha *sha, vd_hash *out) {
    if (!sha->failed && SHA256_Final(out->b, &sha->ctx) != 1)
        sha->failed = true;
    if (!sha->failed && SHA256_Init(&sha->ctx) != 1)
        sha->failed = true;
}

bool vd_sha_failed(const vd_sha *sha) {
    return sha->failed;
}

void vd_sha_destroy(vd_sha *sha) {
    free(sha);
}
