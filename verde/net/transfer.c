/* One exchange of the client: the options of its curl handle, and the reception of the answer. */
#include <string.h>

#include "verde/net/internal.h"

/* ---- receiving: a callback that returns less than it was given stops the transfer ---- */

static size_t on_header(char *bytes, size_t one, size_t size, void *user) {
    (void)bytes, (void)one;
    vd_transfer *transfer = user;
    transfer->header_bytes += size;
    transfer->too_large |= transfer->header_bytes > VD_NET_RESPONSE_HEADER_MAX;
    return transfer->too_large ? 0 : size;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *user) {
    (void)one;
    vd_transfer *transfer = user;
    vd_buf *body = &transfer->answer->body;
    if (size > transfer->answer_max - body->size) {
        transfer->too_large = true;
        return 0;
    }
    vd_put(body, bytes, size);
    transfer->out_of_memory = !vd_buf_ok(body);
    return transfer->out_of_memory ? 0 : size;
}

/* Counts bytes. Only this callback sees all bytes of HTTP: CURLINFO_REQUEST_SIZE includes the body
 * of a small request, but not of a large one. */
static int on_trace(CURL *easy, curl_infotype type, char *bytes, size_t size, void *user) {
    (void)easy, (void)bytes;
    const vd_transfer *transfer = user;
    const bool out = type == CURLINFO_HEADER_OUT || type == CURLINFO_DATA_OUT;
    const bool in = type == CURLINFO_HEADER_IN || type == CURLINFO_DATA_IN;
    transfer->answer->bytes_out += out ? size : 0;
    transfer->answer->bytes_in += in ? size : 0;
    if ((in || out) && transfer->exchange->moved)
        atomic_fetch_add(transfer->exchange->moved, size);
    return 0;
}

/* ---- options: curl does not remember a failure, so each option is checked ---- */

#define SET(option, value) (curl_easy_setopt(easy, option, value) == CURLE_OK)

static bool set_url(CURL *easy, const vd_exchange *exchange) {
    char url[sizeof exchange->to->url + VD_NET_PATH_MAX + 1];
    snprintf(url, sizeof url, "%s%s", exchange->to->url, exchange->path);
    return SET(CURLOPT_URL, url) && SET(CURLOPT_PROTOCOLS_STR, "https") &&
           SET(CURLOPT_PATH_AS_IS, 1L);
}

static bool set_trust(CURL *easy, const vd_endpoint *to, const char *ca_path) {
    if (!SET(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_3) || !SET(CURLOPT_SSL_SESSIONID_CACHE, 0L))
        return false;
    /* the key is the identity: the certificate's names do not matter */
    if (to->pinned)
        return SET(CURLOPT_PINNEDPUBLICKEY, to->pin) && SET(CURLOPT_SSL_VERIFYPEER, 0L) &&
               SET(CURLOPT_SSL_VERIFYHOST, 0L) && SET(CURLOPT_CERTINFO, 1L); /* for naming it */
    return !ca_path || (SET(CURLOPT_CAINFO, ca_path) && SET(CURLOPT_CAPATH, NULL));
}

static bool set_limits(CURL *easy, const vd_exchange *exchange, size_t answer_max) {
    long connect_ms =
        exchange->deadline_ms < VD_NET_CONNECT_MS ? exchange->deadline_ms : VD_NET_CONNECT_MS;
    return SET(CURLOPT_TIMEOUT_MS, (long)exchange->deadline_ms) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms) &&
           SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)answer_max) &&
           SET(CURLOPT_MAXAGE_CONN, (long)VD_NET_REUSE_S) && SET(CURLOPT_NOSIGNAL, 1L) &&
           /* a name that does not resolve must not block past the deadline */
           SET(CURLOPT_QUICK_EXIT, 1L);
}

/* Forbids what curl would do by itself, or because the server or the environment says so. */
static bool set_refusals(CURL *easy) {
    return SET(CURLOPT_FOLLOWLOCATION, 0L) && SET(CURLOPT_PROXY, "") && SET(CURLOPT_NOPROXY, "*") &&
           SET(CURLOPT_ACCEPT_ENCODING, NULL) && SET(CURLOPT_HTTP_CONTENT_DECODING, 0L) &&
           SET(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1) && SET(CURLOPT_HTTP09_ALLOWED, 0L) &&
           SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
}

static bool set_callbacks(CURL *easy, vd_transfer *transfer) {
    return SET(CURLOPT_HEADERFUNCTION, on_header) && SET(CURLOPT_HEADERDATA, transfer) &&
           SET(CURLOPT_WRITEFUNCTION, on_body) && SET(CURLOPT_WRITEDATA, transfer) &&
           SET(CURLOPT_DEBUGFUNCTION, on_trace) && SET(CURLOPT_DEBUGDATA, transfer) &&
           SET(CURLOPT_VERBOSE, 1L) && SET(CURLOPT_ERRORBUFFER, transfer->why) &&
           SET(CURLOPT_PRIVATE, transfer);
}

static bool add_header(vd_transfer *transfer, const char *line) {
    struct curl_slist *longer = curl_slist_append(transfer->headers, line);
    if (longer)
        transfer->headers = longer;
    return longer != NULL;
}

static bool set_headers(CURL *easy, vd_transfer *transfer) {
    const vd_exchange *exchange = transfer->exchange;
    const char *type = exchange->content_type ? exchange->content_type : "application/json";
    char line[256];
    if ((size_t)snprintf(line, sizeof line, "Content-Type: %s", type) >= sizeof line)
        return false;
    /* without "Expect:" curl waits a second for "100 Continue" before a large body */
    if (exchange->body && (!add_header(transfer, "Expect:") || !add_header(transfer, line)))
        return false;
    if (exchange->header && !add_header(transfer, exchange->header))
        return false;
    return !transfer->headers || SET(CURLOPT_HTTPHEADER, transfer->headers);
}

static bool set_body(CURL *easy, vd_transfer *transfer) {
    const vd_exchange *exchange = transfer->exchange;
    if (!set_headers(easy, transfer))
        return false;
    if (!exchange->body ? !SET(CURLOPT_HTTPGET, 1L)
                        : !SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body_size) ||
                              !SET(CURLOPT_POSTFIELDS, exchange->body))
        return false;
    return !exchange->method || SET(CURLOPT_CUSTOMREQUEST, exchange->method);
}

static bool is_path(const char *path) {
    if (!path || *path != '/' || strlen(path) > VD_NET_PATH_MAX)
        return false;
    for (const char *c = path; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '#')
            return false;
    return true;
}

static vd_status transfer_check(const vd_exchange *exchange, vd_err *err) {
    if (!exchange->to || !*exchange->to->url)
        return vd_fail(err, VD_ERR_USAGE, "the exchange names no endpoint");
    if (!is_path(exchange->path))
        return vd_fail(err, VD_ERR_USAGE, "%s: the path must begin with `/`, without spaces",
                       exchange->to->url);
    if (exchange->deadline_ms <= 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: the deadline must be positive, got %d ms",
                       exchange->to->url, exchange->deadline_ms);
    if (exchange->body_size > VD_NET_REQUEST_MAX)
        return vd_fail(err, VD_ERR_USAGE, "%s: a request holds %d bytes at most, got %zu",
                       exchange->to->url, VD_NET_REQUEST_MAX, exchange->body_size);
    return VD_OK;
}

vd_status vd_transfer_open(vd_transfer *transfer, const vd_exchange *exchange, const char *ca_path,
                           vd_answer *answer) {
    size_t answer_max = exchange->answer_max ? exchange->answer_max : VD_NET_RESPONSE_MAX;
    *transfer = (vd_transfer){.exchange = exchange, .answer = answer, .answer_max = answer_max};
    vd_status status = transfer_check(exchange, &answer->err);
    if (status != VD_OK)
        return status;
    CURL *easy = transfer->easy = curl_easy_init();
    if (easy && set_url(easy, exchange) && set_trust(easy, exchange->to, ca_path) &&
        set_limits(easy, exchange, answer_max) && set_refusals(easy) &&
        set_callbacks(easy, transfer) && set_body(easy, transfer))
        return VD_OK;
    return vd_fail(&answer->err, VD_ERR_LOCAL, "%s: curl refuses the options of this request",
                   exchange->to->url);
}

void vd_transfer_close(vd_transfer *transfer) {
    curl_easy_cleanup(transfer->easy);
    curl_slist_free_all(transfer->headers);
    *transfer = (vd_transfer){0};
}
