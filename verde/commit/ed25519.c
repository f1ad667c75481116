/* Ed25519 and its curve through OpenSSL, whose error queue is left unchanged. Programs without
 * OpenSSL have other implementations of these two functions (verde/wasm). */
#include "verde/commit/internal.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <string.h>

/* Sets `square` to 1 if the curve has points with this y, else to -1 (0: y is of small order). For
 * such a point, x^2 = (y^2 - 1) / (d y^2 + 1), where d = -121665 / 121666. Multiplied by squares,
 * this is (y^2 - 1) (121666 - 121665 y^2) 121666; `square` is its Legendre symbol. */
static bool find_square(BIGNUM *y, BIGNUM *p, BN_CTX *ctx, int *square) {
    BIGNUM *y2 = BN_CTX_get(ctx), *v = BN_CTX_get(ctx), *u = BN_CTX_get(ctx);
    if (!u || !BN_set_bit(p, 255) || !BN_sub_word(p, 19) || !BN_mod_sqr(y2, y, p, ctx) ||
        !BN_copy(v, y2) || !BN_mul_word(v, 121665) || !BN_sub_word(v, 121666) ||
        !BN_mul_word(v, 121666) || !BN_copy(u, y2) || !BN_sub_word(u, 1))
        return false;
    BN_set_negative(v, !BN_is_negative(v));
    if (!BN_mod_mul(u, u, v, p, ctx))
        return false;
    *square = BN_kronecker(u, p, ctx);
    return *square != -2;
}

vd_status vd_curve_has(const vd_public_key *key, bool *there, vd_err *err) {
    uint8_t bytes[VD_KEY_SIZE];
    int square = 0;
    memcpy(bytes, key->b, sizeof bytes);
    bytes[31] &= 0x7f;
    ERR_set_mark();
    BN_CTX *ctx = BN_CTX_new();
    bool done = false;
    if (ctx) {
        BN_CTX_start(ctx);
        BIGNUM *p = BN_CTX_get(ctx), *y = BN_CTX_get(ctx);
        done = y && BN_lebin2bn(bytes, sizeof bytes, y) && find_square(y, p, ctx, &square);
        BN_CTX_end(ctx);
    }
    BN_CTX_free(ctx);
    ERR_pop_to_mark();
    *there = square == 1;
    return done ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory in checking a public key");
}

/* Returns whether OpenSSL failed without memory, rather than because the signature is wrong. */
static bool out_of_memory(void) {
    return ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
}

static vd_status verify(EVP_PKEY *pkey, EVP_MD_CTX *ctx, const void *message, size_t size,
                        const uint8_t *signature, vd_err *err) {
    if (!pkey || !ctx || EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) != 1)
        return vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not prepare to check a signature");
    if (EVP_DigestVerify(ctx, signature, VD_SIGNATURE_SIZE, message, size) == 1)
        return VD_OK;
    if (out_of_memory())
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in checking a signature");
    return vd_fail(err, VD_ERR_PEER, "the signature is not by this key over these bytes");
}

vd_status vd_ed25519_verify(const vd_public_key *key, const void *message, size_t size,
                            const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    ERR_set_mark();
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->b, VD_KEY_SIZE);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    const vd_status status = verify(pkey, ctx, message, size, signature, err);
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    ERR_pop_to_mark();
    return status;
}
