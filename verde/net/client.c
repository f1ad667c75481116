/* Asks many endpoints at once, with curl's multi interface on the caller's thread. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "verde/net/internal.h"

enum { POLL_MS = 200 }; /* how often `stop` is checked */

struct vd_client {
    CURLM *multi;
    char *ca_path;
};

void vd_ignore_sigpipe(void) {
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

vd_status vd_client_create(const char *ca_path, vd_client **out, vd_err *err) {
    *out = NULL;
    vd_status status = ca_path ? vd_check_readable(ca_path, err) : VD_OK;
    if (status != VD_OK) /* curl would wait for a FIFO, and report a missing file for each answer */
        return status;
    /* curl counts these calls; since 7.84 it also locks them. */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return vd_fail(err, VD_ERR_LOCAL, "could not initialise curl");
    vd_ignore_sigpipe();
    vd_client *client = calloc(1, sizeof *client);
    if (!client) {
        curl_global_cleanup();
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the client");
    }
    client->multi = curl_multi_init();
    client->ca_path = ca_path ? strdup(ca_path) : NULL;
    if (!client->multi || (ca_path && !client->ca_path) ||
        curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)VD_NET_ASK_MAX) != CURLM_OK ||
        curl_multi_setopt(client->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) != CURLM_OK) {
        vd_client_destroy(client);
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the client");
    }
    *out = client;
    return VD_OK;
}

void vd_client_destroy(vd_client *client) {
    if (!client)
        return;
    curl_multi_cleanup(client->multi);
    free(client->ca_path);
    free(client);
    curl_global_cleanup();
}

void vd_answer_free(vd_answer *answer) {
    vd_buf_free(&answer->body);
    *answer = (vd_answer){0};
}

static void client_start(vd_client *client, const vd_exchange *exchange, vd_transfer *transfer,
                         vd_answer *answer) {
    if (vd_transfer_open(transfer, exchange, client->ca_path, answer) != VD_OK)
        return;
    if (curl_multi_add_handle(client->multi, transfer->easy) == CURLM_OK)
        /* replaced when the transfer ends */
        vd_fail(&answer->err, VD_ERR_LOCAL, "%s: the exchange was broken off", exchange->to->url);
    else
        vd_fail(&answer->err, VD_ERR_LOCAL, "%s: no memory for the request", exchange->to->url);
}

static void collect(vd_client *client) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        vd_transfer *transfer = NULL;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
        vd_transfer_finish(transfer, message->data.result);
    }
}

static bool stopped(size_t count, const vd_exchange *exchange) {
    for (size_t i = 0; i < count; i++)
        if (exchange[i].stop && atomic_load(exchange[i].stop))
            return true;
    return false;
}

/* Drives all transfers to their ends, which come at the deadlines by curl's own timers. */
static void drive(vd_client *client, size_t count, const vd_exchange *exchange) {
    int running = 1;
    while (curl_multi_perform(client->multi, &running) == CURLM_OK) {
        collect(client);
        if (!running || stopped(count, exchange) ||
            curl_multi_poll(client->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK)
            return;
    }
}

static void stop(vd_client *client, vd_transfer *transfer) {
    if (transfer->easy)
        curl_multi_remove_handle(client->multi, transfer->easy);
    vd_transfer_close(transfer);
}

void vd_client_ask(vd_client *client, size_t count, const vd_exchange *exchange,
                   vd_answer *answer) {
    for (size_t i = 0; i < count; i++)
        answer[i] = (vd_answer){0};
    for (size_t i = VD_NET_ASK_MAX; i < count; i++)
        vd_fail(&answer[i].err, VD_ERR_USAGE, "more than %d exchanges at once", VD_NET_ASK_MAX);
    vd_transfer transfer[VD_NET_ASK_MAX] = {0};
    size_t started = count < VD_NET_ASK_MAX ? count : VD_NET_ASK_MAX;
    for (size_t i = 0; i < started; i++)
        client_start(client, &exchange[i], &transfer[i], &answer[i]);
    drive(client, started, exchange);
    for (size_t i = 0; i < started; i++)
        stop(client, &transfer[i]);
}
