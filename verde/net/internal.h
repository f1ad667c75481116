/* Shared by the client's files. */
#ifndef VD_NET_INTERNAL_H
#define VD_NET_INTERNAL_H

#include <curl/curl.h>

#include "verde/net/net.h"

/* A write to a connection that the peer has reset raises SIGPIPE, in OpenSSL as anywhere. Switches
 * it off unless the program has a handler of its own. */
void vd_ignore_sigpipe(void);

/* One exchange under way. */
typedef struct {
    CURL *easy;
    struct curl_slist *headers;
    const vd_exchange *exchange;
    vd_answer *answer;
    size_t header_bytes, answer_max;
    bool too_large, out_of_memory; /* why a callback stopped the transfer */
    char why[CURL_ERROR_SIZE];
} vd_transfer;

/* Checks the exchange and makes its handle; failure stands in answer->err too. */
VD_MUST_USE vd_status vd_transfer_open(vd_transfer *transfer, const vd_exchange *exchange,
                                       const char *ca_path, vd_answer *answer);
/* Turns curl's result into the answer's status and sentence. */
void vd_transfer_finish(vd_transfer *transfer, CURLcode result);
void vd_transfer_close(vd_transfer *transfer);

#endif
