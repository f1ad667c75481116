/* SHA-256 and Ed25519 by libsodium, which is plain C, instead of OpenSSL (digest.c and ed25519.c in
 * verde/commit). */
#define CONFIGURED 1 /* libsodium's headers otherwise warn of an undocumented build */
#include <sodium/crypto_hash_sha256.h>
#include <sodium/crypto_sign_ed25519.h>
#include <sodium/private/ed25519_ref10.h>
#include <sodium/utils.h>
#include <stdlib.h>
#include <string.h>

#include "verde/commit/internal.h"
#include "verde/commit/sha.h"

struct vd_sha {
    crypto_hash_sha256_state state;
};

vd_sha *vd_sha_create(void) {
    vd_sha *sha = calloc(1, sizeof *sha);
    if (sha)
        crypto_hash_sha256_init(&sha->state);
    return sha;
}

void vd_sha_put(vd_sha *sha, const void *bytes, size_t size) {
    crypto_hash_sha256_update(&sha->state, bytes, size);
}

void vd_sha_end(vd_sha *sha, vd_hash *out) {
    crypto_hash_sha256_final(&sha->state, out->b);
    crypto_hash_sha256_init(&sha->state);
}

bool vd_sha_failed(const vd_sha *sha) {
    (void)sha;
    return false;
}

void vd_sha_destroy(vd_sha *sha) {
    free(sha);
}

vd_status vd_curve_has(const vd_public_key *key, bool *there, vd_err *err) {
    ge25519_p3 point;
    (void)err;
    *there = ge25519_frombytes(&point, key->b) == 0;
    return VD_OK;
}

vd_status vd_ed25519_verify(const vd_public_key *key, const void *message, size_t size,
                            const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    return crypto_sign_ed25519_verify_detached(signature, message, size, key->b) == 0
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "the signature is not by this key over these bytes");
}

/* A verifier has no private key, so signing always fails. */
vd_status vd_sign(const vd_key *key, const void *message, size_t size,
                  uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    (void)key, (void)message, (void)size, (void)signature;
    return vd_fail(err, VD_ERR_LOCAL, "nothing is signed here");
}

/* ---- functions that libsodium calls in files of its own that need an operating system ---- */

void sodium_memzero(void *block, size_t size) {
    memset(block, 0, size); /* nothing here is secret */
}

int sodium_memcmp(const void *a, const void *b, size_t size) {
    return memcmp(a, b, size) == 0 ? 0 : -1;
}

int sodium_is_zero(const unsigned char *bytes, const size_t size) {
    unsigned char any = 0;
    for (size_t i = 0; i < size; i++)
        any |= bytes[i];
    return any == 0;
}
