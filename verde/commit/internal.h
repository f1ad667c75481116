/* Keys and notes: shared by the files of verde/commit only. */
#ifndef VD_COMMIT_INTERNAL_H
#define VD_COMMIT_INTERNAL_H

#include "verde/commit/commit.h"

/* OpenSSL's, which only the files that call it include. */
typedef struct evp_pkey_st EVP_PKEY;

struct vd_key {
    EVP_PKEY *pkey; /* NULL: elsewhere, and `sign` asks for signatures */
    vd_public_key public;
    vd_signer sign;
    void *user;
};

/* ---- ed25519.c: what a program without OpenSSL has from elsewhere ---- */

/* Whether the curve has a point with this y, which is canonical and of no small order. */
VD_MUST_USE vd_status vd_curve_has(const vd_public_key *key, bool *there, vd_err *err);
/* RFC 8032, section 5.1.7, without the cofactor; the caller has checked the points' encodings. */
VD_MUST_USE vd_status vd_ed25519_verify(const vd_public_key *key, const void *message, size_t size,
                                        const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);

/* Takes over `pkey`, which must be an Ed25519 private key. */
VD_MUST_USE vd_status vd_key_take(EVP_PKEY *pkey, vd_key **out, vd_err *err);

/* Appends a self-signed certificate (PEM) of this key. */
VD_MUST_USE vd_status vd_key_certificate(const vd_key *key, vd_buf *out, vd_err *err);

/* DSSE's pre-authentication encoding: what a note's signature covers. */
void vd_note_encode(const char *type, const void *payload, size_t size, vd_buf *out);

#endif
