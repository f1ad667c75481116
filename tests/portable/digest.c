/* SHA-256 for machines without OpenSSL: replaces verde/commit/digest.c. */
#include "repops/tools/sha256.h"
#include "verde/commit/sha.h"

#include <stdlib.h>

struct vd_sha {
    vd_buf message;
    bool failed;
};

vd_sha *vd_sha_create(void) {
    return calloc(1, sizeof(vd_sha));
}

void vd_sha_put(vd_sha *sha, const void *bytes, size_t size) {
    vd_put(&sha->message, bytes, size);
}

void vd_sha_end(vd_sha *sha, vd_hash *out) {
    char text[2 * VD_HASH_SIZE + 1];
    sha->failed |= !vd_buf_ok(&sha->message);
    sha256_text(sha->message.data ? sha->message.data : (const uint8_t *)"", sha->message.size,
                text);
    sha->failed |= !vd_unhex(text, out->b, VD_HASH_SIZE);
    sha->message.size = 0;
}

bool vd_sha_failed(const vd_sha *sha) {
    return sha->failed;
}

void vd_sha_destroy(vd_sha *sha) {
    if (sha)
        vd_buf_free(&sha->message);
    free(sha);
}
