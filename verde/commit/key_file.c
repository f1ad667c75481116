/* This file reads and writes keys in files. */
#include "verde/commit/internal.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEY_FILE_MAX = 16 << 10 };

/* Gives no password, since otherwise OpenSSL would ask on the terminal, and a daemon would hang. */
static int no_password(char *text, int size, int writing, void *user) {
    (void)text, (void)size, (void)writing, (void)user;
    return -1;
}

static EVP_PKEY *parse_pem(const vd_buf *pem) {
    ERR_set_mark();
    BIO *bio = BIO_new_mem_buf(pem->data, (int)pem->size);
    EVP_PKEY *pkey = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    ERR_pop_to_mark();
    return pkey;
}

static void free_secret(vd_buf *buf) {
    if (buf->data)
        OPENSSL_cleanse(buf->data, buf->capacity);
    vd_buf_free(buf);
}

vd_status vd_key_load(const char *pem_path, vd_key **out, vd_err *err) {
    *out = NULL;
    vd_buf pem = {0};
    vd_status status = vd_read_file(pem_path, KEY_FILE_MAX, &pem, err);
    if (status != VD_OK)
        return status;
    EVP_PKEY *pkey = parse_pem(&pem);
    free_secret(&pem);
    if (!pkey)
        return vd_fail(err, VD_ERR_USAGE, "%s: expected an unencrypted private key in PEM",
                       pem_path);
    if (EVP_PKEY_get_base_id(pkey) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(pkey);
        return vd_fail(err, VD_ERR_USAGE, "%s: expected an Ed25519 key", pem_path);
    }
    return vd_key_take(pkey, out, err);
}

static vd_status write_in(const char *directory, const char *name, const vd_buf *bytes, int mode,
                          vd_err *err) {
    char path[1024];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path)
        return vd_fail(err, VD_ERR_USAGE, "%s/%s: the path is too long", directory, name);
    if (!vd_buf_ok(bytes))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory while writing %s", path);
    return vd_write_file(path, bytes->data, bytes->size, mode, err);
}

static vd_status save_certificate(const vd_key *key, const char *directory, vd_err *err) {
    vd_buf pem = {0};
    vd_status status = vd_key_certificate(key, &pem, err);
    if (status == VD_OK)
        status = write_in(directory, "tls.crt", &pem, 0644, err);
    vd_buf_free(&pem);
    return status;
}

static vd_status save_public(const vd_key *key, const char *directory, vd_err *err) {
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hex(key->public.b, VD_KEY_SIZE, hex);
    vd_buf text = {0};
    vd_printf(&text, "%s\n", hex);
    vd_status status = write_in(directory, "key.pub", &text, 0644, err);
    vd_buf_free(&text);
    return status;
}

static vd_status save_private(const vd_key *key, const char *directory, vd_err *err) {
    vd_buf pem = {0};
    ERR_set_mark();
    BIO *bio = BIO_new(BIO_s_secmem());
    char *text = NULL;
    long size = 0;
    if (bio && PEM_write_bio_PKCS8PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL) == 1)
        size = BIO_get_mem_data(bio, &text);
    if (size > 0)
        vd_put(&pem, text, (size_t)size);
    BIO_free(bio);
    ERR_pop_to_mark();
    vd_status status = size > 0 ? write_in(directory, "key.pem", &pem, 0600, err)
                                : vd_fail(err, VD_ERR_LOCAL, "OpenSSL could not encode the key");
    free_secret(&pem);
    return status;
}

/* Refuses to overwrite a key, because the identity would be lost for good. */
static vd_status refuse_overwrite(const char *directory, vd_err *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/key.pem", directory); /* if this is cut off, write_in fails */
    if (access(path, F_OK) == 0)
        return vd_fail(err, VD_ERR_USAGE, "%s exists already and is not overwritten", path);
    return VD_OK;
}

vd_status vd_key_save(const vd_key *key, const char *directory, vd_err *err) {
    uint32_t made;
    vd_status status = vd_make_dirs(directory, &made, err);
    if (status == VD_OK)
        status = refuse_overwrite(directory, err);
    if (status == VD_OK)
        status = save_public(key, directory, err);
    if (status == VD_OK)
        status = save_certificate(key, directory, err);
    /* key.pem comes last: if it exists, the others do */
    return status == VD_OK ? save_private(key, directory, err) : status;
}
