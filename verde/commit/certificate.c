/* This file makes the self-signed TLS certificate of a key. Clients pin the key; the certificate
 * has a name and dates for programs that check them nevertheless. */
#include "verde/commit/internal.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum { DAY_SECONDS = 86400, VALID_DAYS = 3652 };

static bool add_extension(X509 *cert, int nid, const char *value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool done = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return done;
}

static bool set_serial(X509 *cert) {
    uint8_t bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* makes it positive and always 16 bytes long */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return done;
}

static bool set_names(X509 *cert, const vd_public_key *key) {
    char text[2 * VD_KEY_SIZE + 1]; /* 64 characters, the limit of a common name */
    vd_hex(key->b, VD_KEY_SIZE, text);
    X509_NAME *name = X509_get_subject_name(cert);
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1,
                                      0) == 1 &&
           X509_set_issuer_name(cert, name) == 1;
}

/* Sets dates from yesterday on, because clocks differ. */
static bool set_dates(X509 *cert) {
    return X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_SECONDS) &&
           X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS, 0, NULL);
}

static bool fill(X509 *cert, const vd_key *key) {
    return X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
           set_names(cert, &key->public) && set_dates(cert) &&
           X509_set_pubkey(cert, key->pkey) == 1 &&
           add_extension(cert, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1") &&
           add_extension(cert, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, NID_ext_key_usage, "serverAuth,clientAuth") &&
           add_extension(cert, NID_subject_key_identifier, "hash") &&
           X509_sign(cert, key->pkey, NULL) > 0; /* Ed25519 takes no digest */
}

vd_status vd_key_certificate(const vd_key *key, vd_buf *out, vd_err *err) {
    ERR_set_mark();
    X509 *cert = X509_new();
    BIO *bio = BIO_new(BIO_s_mem());
    bool done = cert && bio && fill(cert, key) && PEM_write_bio_X509(bio, cert) == 1;
    char *text = NULL;
    long size = done ? BIO_get_mem_data(bio, &text) : 0;
    if (done && size > 0)
        vd_put(out, text, (size_t)size);
    BIO_free(bio);
    X509_free(cert);
    ERR_pop_to_mark();
    if (done && vd_buf_ok(out))
        return VD_OK;
    return vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not make a certificate");
}
