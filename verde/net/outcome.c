/* Who is to blame for a transfer that failed. */
#include "verde/net/internal.h"

/* Only what a peer says over a connection that is provably its own can be held against it. HTTP
 * that makes no sense may be the fault of something between, and is asked again. */
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

/* curl says "out of memory" of a header line that is too long as well: once the peer has had a say,
 * that must not pass for a trouble of this machine. */
static bool peer_had_a_say(const vd_transfer *transfer) {
    curl_off_t microseconds = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &microseconds);
    return microseconds > 0;
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
        return vd_fail(err, VD_ERR_TIMEOUT, "%s%s: no whole answer within %d ms", url,
                       transfer->exchange->path, transfer->exchange->deadline_ms);
    if (transfer->answer->other_key)
        return vd_fail(err, VD_ERR_IO, "%s: another key answers than the one after the #", url);
    return vd_fail(err, blame(result), "%s%s: %s", url, transfer->exchange->path,
                   *transfer->why ? transfer->why : curl_easy_strerror(result));
}

void vd_transfer_finish(vd_transfer *transfer, CURLcode result) {
    vd_answer *answer = transfer->answer;
    long status = 0;
    curl_off_t microseconds = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer->easy, CURLINFO_TOTAL_TIME_T, &microseconds);
    answer->http_status = (int)status;
    answer->other_key = result == CURLE_SSL_PINNEDPUBKEYNOTMATCH;
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
