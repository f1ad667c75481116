/* Keys and notes. Private to verde/commit. */
#ifndef VD_COMMIT_INTERNAL_H
#define VD_COMMIT_INTERNAL_H

#include "verde/commit/commit.h"

/* OpenSSL's type, so that only files that call OpenSSL include its headers. */
typedef struct evp_pkey_st EVP_PKEY;

struct vd_key {
    EVP_PKEY *pkey; /* NULL: another process has the key, and `sign` asks it for signatures */
    vd_public_key public;
    vd_signer sign;
    void *user;
};

/* ---- ed25519.c; programs without OpenSSL have other implementations ---- */

/* Sets *there: whether the curve has a point with this y, canonical and not of small order. */
VD_MUST_USE vd_status vd_curve_has(const vd_public_key *key, bool *there, vd_err *err);
/* Verifies as in RFC 8032, section 5.1.7, without the cofactor; the points' encodings are
 * checked. */
VD_MUST_USE vd_status vd_ed25519_verify(const vd_public_key *key, const void *message, size_t size,
                                        const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);

/* Takes ownership of `pkey`, which must be an Ed25519 private key. */
VD_MUST_USE vd_status vd_key_take(EVP_PKEY *pkey, vd_key **out, vd_err *err);

/* Appends a self-signed certificate (PEM) of this key. */
VD_MUST_USE vd_status vd_key_certificate(const vd_key *key, vd_buf *out, vd_err *err);

/* Appends DSSE's pre-authentication encoding, which a note's signature covers. */
void vd_note_encode(const char *type, const void *payload, size_t size, vd_buf *out);

#endif
