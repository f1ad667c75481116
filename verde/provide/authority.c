/* Decides who sent a request, and whether that key may. */
#include <string.h>

#include "verde/provide/internal.h"

static bool is_enrolled(const vd_daemon *daemon, const vd_public_key *key) {
    for (uint32_t i = 0; i < daemon->options.client_count; i++)
        if (memcmp(&daemon->options.client[i], key, sizeof *key) == 0)
            return true;
    return false;
}

bool vd_is_operator(const vd_daemon *daemon, const vd_public_key *key) {
    return memcmp(&daemon->key, key, sizeof *key) == 0;
}

/* The operator may list, cancel and delete jobs. An operator whose key is enrolled is a client,
 * too. */
static bool may(const vd_daemon *daemon, const vd_public_key *key, const vd_route *route) {
    return is_enrolled(daemon, key) || (vd_is_operator(daemon, key) && vd_is_of_operator(route));
}

bool vd_is_of_operator(const vd_route *route) {
    return route->kind == VD_ROUTE_JOB || route->kind == VD_ROUTE_CANCEL ||
           (route->kind == VD_ROUTE_JOBS && route->is_get);
}

bool vd_authority_judge(const vd_daemon *daemon, const vd_request *request, const vd_route *route,
                        vd_request_claim *claim, vd_response *response) {
    const char *header = vd_request_header(request, VD_REQUEST_HEADER);
    const vd_request_head head = {request->method, request->path, request->body_size};
    vd_err err = {0};
    if (!header) {
        vd_reply_error(response, 401,
                       "the request has no header " VD_REQUEST_HEADER " (PROTOCOL.md section 8.5)");
        return false;
    }
    vd_status status =
        vd_request_judge(header, strlen(header), &daemon->key, &head, vd_unix_time(), claim, &err);
    if (status != VD_OK) {
        vd_reply_error(response, status == VD_ERR_PEER ? 401 : 503, "%s", err.text);
        return false;
    }
    if (may(daemon, &claim->client, route))
        return true;
    char key[VD_ID_SIZE];
    vd_hex(claim->client.b, VD_KEY_SIZE, key);
    vd_reply_error(response, 403, "the key %s is not enrolled at this provider", key);
    return false;
}

bool vd_authority_judge_body(vd_daemon *daemon, const vd_request *request,
                             const vd_request_claim *claim, vd_response *response) {
    char client[VD_ID_SIZE], nonce[2 * VD_NONCE_SIZE + 1];
    vd_err err = {0};
    const int64_t now = vd_unix_time();
    vd_hex(claim->client.b, VD_KEY_SIZE, client);
    vd_hex(claim->nonce, VD_NONCE_SIZE, nonce);
    vd_status status = vd_request_judge_body(claim, request->body, request->body_size, &err);
    if (status == VD_OK) /* earlier nonces may go: requests that old are refused */
        status = vd_ledger_take_nonce(daemon->ledger, client, nonce, claim->time,
                                      now - 2 * VD_REQUEST_CLOCK_S, &err);
    if (status == VD_ERR_PEER)
        vd_reply_error(response, 401, "%s", err.text);
    else if (status != VD_OK)
        vd_reply_trouble(daemon, response, &err);
    return status == VD_OK;
}
