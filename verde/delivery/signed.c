/* This file signs a client's requests to a daemon, and signs again if one was refused (401). */
#include "verde/delivery/signed.h"

#include <jansson.h>
#include <openssl/rand.h>
#include <string.h>
#include <time.h>

#include "verde/commit/json.h"
#include "verde/protocol/signed_request.h"

static const char *method_of(const vd_exchange *exchange) {
    return exchange->method ? exchange->method : exchange->body ? "POST" : "GET";
}

static vd_status sign_exchange(const vd_key *key, const vd_exchange *exchange, vd_buf *header,
                               vd_err *err) {
    uint8_t nonce[VD_NONCE_SIZE];
    const vd_request_head head = {method_of(exchange), exchange->path, exchange->body_size};
    if (!exchange->to->pinned)
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: `#KEY` is missing; give the URL as the provider prints it",
                       exchange->to->url);
    if (RAND_bytes(nonce, sizeof nonce) != 1)
        return vd_fail(err, VD_ERR_LOCAL, "no random numbers");
    vd_printf(header, VD_REQUEST_HEADER ": ");
    vd_status status = vd_request_sign(key, &exchange->to->key, &head, exchange->body,
                                       (int64_t)time(NULL), nonce, header, err);
    vd_put_u8(header, 0);
    return status == VD_OK && !vd_buf_ok(header) ? vd_fail(err, VD_ERR_LOCAL, "out of memory")
                                                 : status;
}

static void ask_signed(vd_client *client, const vd_key *key, const vd_exchange *exchange,
                       vd_answer *answer) {
    vd_exchange with = *exchange;
    vd_buf header = {0};
    *answer = (vd_answer){0};
    if (sign_exchange(key, exchange, &header, &answer->err) == VD_OK) {
        with.header = (const char *)header.data;
        vd_client_ask(client, 1, &with, answer);
    }
    vd_buf_free(&header);
}

/* Asks a second time after a 401: curl may resend a request on another connection, and the provider
 * refuses it because it has already seen the nonce. */
void vd_signed_ask(vd_client *client, const vd_key *key, const vd_exchange *exchange,
                   vd_answer *answer) {
    if (!key) {
        vd_client_ask(client, 1, exchange, answer);
        return;
    }
    ask_signed(client, key, exchange, answer);
    if (answer->http_status != 401)
        return;
    vd_answer_free(answer);
    ask_signed(client, key, exchange, answer);
}

void vd_answer_why(const vd_answer *answer, char *why, size_t size) {
    json_t *body = NULL;
    vd_err printable;
    if (answer->http_status && answer->body.size)
        (void)!vd_json_read(answer->body.data, answer->body.size, 64, &body, NULL);
    const char *error = json_string_value(json_object_get(body, "error"));
    if (error)
        vd_fail(&printable, VD_ERR_IO, "HTTP status %d: %.200s", answer->http_status, error);
    else
        vd_fail(&printable, VD_ERR_IO, "%s", answer->err.text);
    snprintf(why, size, "%s", printable.text);
    json_decref(body);
}
