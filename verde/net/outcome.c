/* Decides who is to blame for a failed transfer. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "verde/net/internal.h"

enum { VD_KEY_TEXT = 2 * VD_KEY_SIZE + 1 };

/* Only what a peer says over a connection that is provably its own is held against it. Malformed
 * HTTP may come from an intermediary, and is asked again. */
static vd_status blame(CURLcode result) {
    switch (result) {
    case CURLE_OPERATION_TIMEDOUT: return VD_ERR_TIMEOUT;
    case CURLE_FILESIZE_EXCEEDED: return VD_ERR_PEER;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
    case CURLE_NOT_BUILT_IN:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE: return VD_ERR_LOCAL;
    default: return VD_ERR_IO;
    }
}

/* Returns true if the peer could respond. Then "out of memory" from curl may mean a header line
 * that is too long, and must not count as trouble of this machine. */
static bool peer_had_a_say(const vd_transfer *transfer) {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds);
    return microseconds > 0;
}

/* Returns the peer's first certificate in PEM, or NULL if curl has kept none. */
static const char *shown_certificate(const vd_transfer *transfer) {
    struct curl_certinfo *info = NULL;
    if (curl_easy_getinfo(transfer->easy, CURLINFO_CERTINFO, &info) != CURLE_OK || !info ||
        info->num_of_certs < 1)
        return NULL;
    for (struct curl_slist *line = info->certinfo[0]; line; line = line->next)
        if (strncmp(line->data, "Cert:", 5) == 0)
            return line->data + 5;
    return NULL;
}

/* Describes a certificate's key: in hexadecimal if it is an Ed25519 key, else by its type. */
static void name_key(const char *pem, char text[VD_KEY_TEXT]) {
    uint8_t key[VD_KEY_SIZE];
    size_t size = sizeof key;
    BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;
    X509 *certificate = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *pkey = certificate ? X509_get0_pubkey(certificate) : NULL;
    const char *type = pkey ? EVP_PKEY_get0_type_name(pkey) : NULL;
    if (pkey && EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519 &&
        EVP_PKEY_get_raw_public_key(pkey, key, &size) == 1 && size == sizeof key)
        vd_hex(key, size, text);
    else
        snprintf(text, VD_KEY_TEXT, "a key of type %.40s", type ? type : "unknown");
    X509_free(certificate);
    BIO_free(bio);
    ERR_clear_error();
}

static vd_status another_key(const vd_transfer *transfer, vd_err *err) {
    char expected[2 * VD_KEY_SIZE + 1], shown[VD_KEY_TEXT];
    vd_hex(transfer->exchange->to->key.b, VD_KEY_SIZE, expected);
    name_key(shown_certificate(transfer), shown);
    return vd_fail(err, VD_ERR_IO, "%s: another key answers: expected %s, as after the `#`, got %s",
                   transfer->exchange->to->url, expected, shown);
}

/* Returns the kernel's reason, such as "Connection refused", or else curl's. */
static const char *why_not_connected(const vd_transfer *transfer, CURLcode result) {
    long number = 0;
    if (result == CURLE_COULDNT_CONNECT)
        curl_easy_getinfo(transfer->easy, CURLINFO_OS_ERRNO, &number);
    return number           ? strerror((int)number)
           : *transfer->why ? transfer->why
                            : curl_easy_strerror(result);
}

static vd_status failed(const vd_transfer *transfer, CURLcode result, vd_err *err) {
    const char *url = transfer->exchange->to->url;
    if (result == CURLE_OUT_OF_MEMORY && peer_had_a_say(transfer))
        return vd_fail(err, VD_ERR_IO, "%s%s: a header of the answer is too long", url,
                       transfer->exchange->path);
    if (transfer->too_large || result == CURLE_FILESIZE_EXCEEDED)
        return vd_fail(err, VD_ERR_PEER, "%s%s: the answer is larger than %zu bytes", url,
                       transfer->exchange->path, transfer->answer_max);
    if (transfer->out_of_memory)
        return vd_fail(err, VD_ERR_LOCAL, "%s: no memory for the answer", url);
    if (result == CURLE_OPERATION_TIMEDOUT)
        return vd_fail(err, VD_ERR_TIMEOUT, "%s%s: no whole answer within %.3g s", url,
                       transfer->exchange->path, 1e-3 * transfer->exchange->deadline_ms);
    if (transfer->answer->other_key)
        return another_key(transfer, err);
    return vd_fail(err, blame(result), "%s%s: %s", url, transfer->exchange->path,
                   why_not_connected(transfer, result));
}

void vd_transfer_finish(vd_transfer *transfer, CURLcode result) {
    vd_answer *answer = transfer->answer;
    long status = 0;
    curl_off_t microseconds = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer->easy, CURLINFO_TOTAL_TIME_T, &microseconds);
    answer->http_status = (int)status;
    answer->other_key = result == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
    answer->unknown_host = result == CURLE_COULDNT_RESOLVE_HOST;
    answer->untrusted = result == CURLE_PEER_FAILED_VERIFICATION;
    answer->seconds = (double)microseconds / 1e6;
    if (result != CURLE_OK)
        failed(transfer, result, &answer->err);
    else if (status != 200)
        vd_fail(&answer->err, status == 400 ? VD_ERR_PEER : VD_ERR_IO,
                "%s%s: HTTP status %ld, expected 200", transfer->exchange->to->url,
                transfer->exchange->path, status);
    else
        answer->err = (vd_err){0};
}

static const char *skip(const char *text, const char *prefix) {
    const size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : text;
}

const char *vd_answer_reason(const vd_exchange *exchange, const vd_answer *answer) {
    const char *after = skip(answer->err.text, exchange->to->url);
    return after == answer->err.text ? after : skip(skip(after, exchange->path), ": ");
}
