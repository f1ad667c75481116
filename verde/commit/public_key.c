/* This file decides which Ed25519 public keys are accepted, and how TLS clients pin them. */
#include "verde/commit/internal.h"

#include <stdlib.h>
#include <string.h>

/* The y of all points of small order. A key of small order makes S*B = R + h*A hold without any
 * secret: with A the neutral element, R = S*B verifies every message. OpenSSL accepts such keys
 * (tests/unit/test_commit_key.c).
 *
 * The curve -x^2 + y^2 = 1 + d x^2 y^2 over GF(p), p = 2^255 - 19, has 8 points whose order divides
 * its cofactor 8. Their y, which is the encoding without the sign of x in bit 255, are 1 (order 1),
 * -1 (order 2), 0 (order 4), and for order 8 the two roots of d y^4 + 2 y^2 = 1 in the field, one
 * the negative of the other. They are also listed in Chalkias, Garillot, Nikolaenko, "Taming the
 * many EdDSAs" (2020), and in libsodium. Both signs are refused, which covers x = 0 with the sign
 * set. The other encoding of a small y, y + p, is refused because it is not canonical. */
static const uint8_t small_order_y[][VD_KEY_SIZE] = {
    {0x01},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0x00},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
     0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
     0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
     0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
     0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
};

/* Returns whether y < p = 2^255 - 19 (ed ff ... ff 7f), RFC 8032, 5.1.3; OpenSSL does not check. */
static bool is_reduced(const uint8_t y[VD_KEY_SIZE]) {
    if (y[0] < 0xed || y[31] != 0x7f)
        return true;
    for (int i = 1; i < 31; i++)
        if (y[i] != 0xff)
            return true;
    return false;
}

/* Checks that the y of an encoding is below p and not of small order. */
static vd_status check_y(const uint8_t bytes[VD_KEY_SIZE], const char *what, vd_err *err) {
    uint8_t y[VD_KEY_SIZE];
    memcpy(y, bytes, sizeof y);
    y[31] &= 0x7f;
    if (!is_reduced(y))
        return vd_fail(err, VD_ERR_PEER, "%s is not canonical: y is not below 2^255-19", what);
    for (size_t i = 0; i < sizeof small_order_y / sizeof *small_order_y; i++)
        if (memcmp(y, small_order_y[i], sizeof y) == 0)
            return vd_fail(err, VD_ERR_PEER, "%s is a point of small order", what);
    return VD_OK;
}

/* Checks what OpenSSL does not: that R of a signature is canonical and not of small order. */
static vd_status check_signature(const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    return check_y(signature, "R of the signature", err);
}

vd_status vd_public_key_check(const vd_public_key *key, vd_err *err) {
    vd_status status = check_y(key->b, "the public key", err);
    bool there = false;
    if (status == VD_OK)
        status = vd_curve_has(key, &there, err);
    return status != VD_OK || there
               ? status
               : vd_fail(err, VD_ERR_PEER, "the public key is no point of the curve");
}

/* The length of TYPE in TYPE:digits, or 0. TYPE has a hyphen or a letter that is no hexadecimal
 * digit, so a damaged key is not mistaken for a later type. */
static size_t later_type(const char *key) {
    static const char of_type[] = "abcdefghijklmnopqrstuvwxyz0123456789-",
                      hex[] = "0123456789abcdef";
    const size_t length = strspn(key, of_type);
    const char *digits = key + length + 1;
    return key[length] == ':' && strspn(key, hex) < length && *digits &&
                   !digits[strspn(digits, hex)]
               ? length
               : 0;
}

vd_status vd_public_key_read(const char *hex, vd_public_key *out, vd_err *err) {
    vd_err inner = {0};
    const size_t type = later_type(hex);
    if (type > 0)
        return vd_fail(err, VD_ERR_VERSION,
                       "a key of type %.*s; this verde reads keys of Ed25519, 64 digits",
                       type < 40 ? (int)type : 40, hex);
    if (strlen(hex) != 2 * VD_KEY_SIZE || !vd_unhex(hex, out->b, VD_KEY_SIZE))
        return vd_fail(err, VD_ERR_PEER,
                       "a public key has 64 lower-case hexadecimal digits, got \"%.80s\"", hex);
    vd_status status = vd_public_key_check(out, &inner);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "%s: got %s", inner.text, hex);
}

bool vd_public_key_pin(const vd_public_key *key, char text[64]) {
    /* RFC 8410: SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING of 32 bytes }. */
    uint8_t spki[12 + VD_KEY_SIZE] = {0x30, 0x2a, 0x30, 0x05, 0x06, 0x03,
                                      0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
    memcpy(spki + 12, key->b, VD_KEY_SIZE);
    vd_hash hash;
    if (!vd_hash_tagged(NULL, spki, sizeof spki, &hash))
        return false;
    char *digest = vd_base64(hash.b, sizeof hash.b);
    if (digest)
        snprintf(text, 64, "sha256//%s", digest);
    free(digest);
    return digest != NULL;
}

vd_status vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                              const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    vd_status status = vd_public_key_check(key, err);
    if (status == VD_OK)
        status = check_signature(signature, err);
    return status == VD_OK ? vd_ed25519_verify(key, message, size, signature, err) : status;
}

bool vd_verify(const vd_public_key *key, const void *message, size_t size,
               const uint8_t signature[VD_SIGNATURE_SIZE]) {
    return vd_signature_verify(key, message, size, signature, NULL) == VD_OK;
}
