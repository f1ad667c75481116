/* Declarations shared by the client's files. */
#ifndef VD_NET_INTERNAL_H
#define VD_NET_INTERNAL_H

#include <curl/curl.h>

#include "verde/net/net.h"

/* Ignores SIGPIPE unless the program has its own handler: writing to a connection that the peer has
 * reset would raise it, also within OpenSSL. */
void vd_ignore_sigpipe(void);

/* An exchange under way. */
typedef struct {
    CURL *easy;
    struct curl_slist *headers;
    const vd_exchange *exchange;
    vd_answer *answer;
    size_t header_bytes, answer_max;
    bool too_large, out_of_memory; /* reason for which a callback stopped the transfer */
    char why[CURL_ERROR_SIZE];
} vd_transfer;

/* Checks the exchange and creates its handle. An error is also stored in answer->err. */
VD_MUST_USE vd_status vd_transfer_open(vd_transfer *transfer, const vd_exchange *exchange,
                                       const char *ca_path, vd_answer *answer);
/* Translates curl's result to the answer's status and text. */
void vd_transfer_finish(vd_transfer *transfer, CURLcode result);
void vd_transfer_close(vd_transfer *transfer);

#endif
