/* Judges the head of a request before its body is read.
 *
 * evhttp reports only complete requests, and cannot refuse one earlier. So the head is withheld
 * from evhttp until it is complete. If it passes, evhttp gets it unchanged; if it is refused,
 * evhttp gets a request without a body instead, which is answered with the refusal. */
#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "verde/net/server_internal.h"

static const char stand_in[] = "GET / HTTP/1.1\r\n\r\n";

/* Moves input to conn->head, up to the empty line. Returns true if the head is complete, or longer
 * than evhttp would accept. */
static bool take_head(vd_conn *conn, struct evbuffer *input) {
    uint8_t byte;
    while (conn->head.size <= VD_NET_HEADER_MAX && evbuffer_remove(input, &byte, 1) == 1) {
        vd_put_u8(&conn->head, byte);
        const uint8_t *end = conn->head.data + conn->head.size;
        if (!vd_buf_ok(&conn->head))
            return true;
        if (byte == '\n' && ((conn->head.size >= 2 && end[-2] == '\n') ||
                             (conn->head.size >= 3 && end[-2] == '\r' && end[-3] == '\n')))
            return true;
    }
    return conn->head.size > VD_NET_HEADER_MAX;
}

/* Returns true if the request states the length of a body, in few enough digits not to overflow. A
 * malformed length is left to evhttp to refuse. */
static bool has_body(vd_request *request) {
    const char *text = vd_request_header(request, "Content-Length");
    if (!text || !vd_is_length(text) || strlen(text) > 15)
        return false;
    request->body_size = (size_t)strtoull(text, NULL, 10);
    return request->body_size > 0;
}

static void refuse(vd_conn *conn, struct evbuffer *input, size_t length) {
    const size_t there = evbuffer_get_length(input), size = length < there ? length : there;
    evbuffer_drain(input, size);
    conn->discard = length - size;
    conn->refused = true;
    evbuffer_prepend(input, stand_in, sizeof stand_in - 1);
}

/* ---- room for bodies ---- */

static bool has_room(const vd_server *server, size_t size) {
    const size_t most = server->options.bodies_max;
    return !most || !server->promised || server->promised + size <= most;
}

void vd_conn_fulfil(vd_conn *conn) {
    conn->server->promised -= conn->promised;
    conn->promised = 0;
}

static void promise(vd_conn *conn, size_t size) {
    vd_conn_fulfil(conn);
    conn->promised = size;
    conn->server->promised += size;
}

void vd_conn_keep_parked(vd_conn *conn, struct evbuffer *input) {
    uint8_t piece[4096];
    int got;
    conn->editing = true;
    while ((got = evbuffer_remove(input, piece, sizeof piece)) > 0)
        vd_put(&conn->head, piece, (size_t)got);
    conn->editing = false;
}

/* Stops reading: the kernel's buffer fills up, and the sender has to wait. */
static void park(vd_conn *conn, struct evbuffer *input, size_t size) {
    vd_conn_keep_parked(conn, input);
    conn->wants = size;
    vd_conn_enter(conn, VD_CONN_PARKED);
    bufferevent_disable(conn->bev, EV_READ);
}

static void let_in(vd_conn *conn) {
    struct evbuffer *input = bufferevent_get_input(conn->bev);
    promise(conn, conn->wants);
    vd_conn_enter(conn, VD_CONN_RECEIVING);
    conn->judged = true;
    conn->received = conn->head.size;
    conn->editing = true;
    evbuffer_add(input, conn->head.data, conn->head.size);
    conn->editing = false;
    vd_buf_free(&conn->head);
    bufferevent_enable(conn->bev, EV_READ);
    bufferevent_trigger(conn->bev, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
}

static vd_conn *first_parked(vd_server *server) {
    vd_conn *first = NULL;
    for (vd_conn *conn = server->conns; conn; conn = conn->next)
        if (conn->state == VD_CONN_PARKED && (!first || conn->since < first->since))
            first = conn;
    return first;
}

void vd_conn_unpark(vd_server *server) {
    vd_conn *conn;
    while ((conn = first_parked(server)) && has_room(server, conn->wants))
        let_in(conn);
}

/* ---- judging ---- */

static void judge(vd_conn *conn, struct evbuffer *input) {
    vd_request request = {.method = NULL};
    vd_headers headers;
    const char *version;
    char *text = malloc(conn->head.size + 1);
    vd_response response = {.status = 200};
    vd_head_screened to = VD_HEAD_PASSES;
    if (text) {
        memcpy(text, conn->head.data, conn->head.size);
        text[conn->head.size] = 0;
        if (strlen(text) == conn->head.size && vd_head_parse(text, &request, &headers, &version) &&
            has_body(&request))
            to = conn->server->options.head_screen(conn->server->user, &request, &response);
    }
    const size_t body = to == VD_HEAD_WAITS ? request.body_size : 0;
    if (to != VD_HEAD_REFUSED)
        vd_buf_free(&response.body);
    if (to == VD_HEAD_REFUSED) {
        conn->early = response;
        refuse(conn, input, request.body_size);
    } else if (body && (first_parked(conn->server) || !has_room(conn->server, body))) {
        park(conn, input, body);
    } else {
        promise(conn, body);
        evbuffer_prepend(input, conn->head.data, conn->head.size);
    }
    free(text);
}

bool vd_conn_judge_head(vd_conn *conn, struct evbuffer *input) {
    bool kept = true;
    if (conn->judged)
        return true;
    conn->editing = true;
    if (take_head(conn, input)) {
        conn->judged = true;
        kept = vd_buf_ok(&conn->head);
        if (kept && conn->head.size <= VD_NET_HEADER_MAX)
            judge(conn, input);
        else if (kept) /* evhttp refuses a head this long */
            evbuffer_prepend(input, conn->head.data, conn->head.size);
        if (conn->state != VD_CONN_PARKED)
            vd_buf_free(&conn->head);
    }
    conn->editing = false;
    return kept;
}
