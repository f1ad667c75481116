/* Ed25519 private keys, and signing. OpenSSL's error queue is left unchanged, because the TLS
 * server in the same thread reads it after its own calls. */
#include "verde/commit/internal.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>

vd_status vd_key_take(EVP_PKEY *pkey, vd_key **out, vd_err *err) {
    vd_key *key = calloc(1, sizeof *key);
    size_t size = VD_KEY_SIZE;
    if (!key || EVP_PKEY_get_raw_public_key(pkey, key->public.b, &size) != 1) {
        free(key);
        EVP_PKEY_free(pkey);
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for a key");
    }
    key->pkey = pkey;
    *out = key;
    return VD_OK;
}

vd_status vd_key_generate(vd_key **out, vd_err *err) {
    *out = NULL;
    ERR_set_mark();
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    ERR_pop_to_mark();
    if (!pkey)
        return vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not generate an Ed25519 key");
    return vd_key_take(pkey, out, err);
}

vd_status vd_key_from_seed(const uint8_t seed[32], vd_key **out, vd_err *err) {
    *out = NULL;
    ERR_set_mark();
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);
    ERR_pop_to_mark();
    if (!pkey)
        return vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not make an Ed25519 key");
    return vd_key_take(pkey, out, err);
}

vd_status vd_key_elsewhere(const vd_public_key *public, vd_signer sign, void *user, vd_key **out,
                           vd_err *err) {
    vd_key *key = calloc(1, sizeof *key);
    if (!key)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory for a key");
    *key = (vd_key){.public = *public, .sign = sign, .user = user};
    *out = key;
    return VD_OK;
}

void vd_key_destroy(vd_key *key) {
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

void vd_key_public(const vd_key *key, vd_public_key *out) {
    *out = key->public;
}

void *vd_key_evp(const vd_key *key) {
    return key->pkey;
}

vd_status vd_sign(const vd_key *key, const void *message, size_t size,
                  uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    size_t length = VD_SIGNATURE_SIZE;
    if (!key->pkey)
        return key->sign(key->user, message, size, signature, err);
    ERR_set_mark();
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool done = ctx && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) == 1 &&
                EVP_DigestSign(ctx, signature, &length, message, size) == 1;
    EVP_MD_CTX_free(ctx);
    ERR_pop_to_mark();
    return done ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not sign");
}
