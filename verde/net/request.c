/* Turns evhttp's requests into jobs for workers, and their responses back to evhttp.
 *
 * When a connection dies while a worker has its request, evhttp leaves the request to us and
 * forgets the connection: only then must the request be freed here. */
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <stdlib.h>

#include "verde/net/server_internal.h"

typedef struct {
    int status;
    const char *text; /* NULL: nothing is wrong */
} fault;

/* evhttp also accepts versions such as HTTP/0.1 and HTTP/1.7, and answers in them. */
static bool is_known_version(struct evhttp_request *http) {
    if (http->major == 1 && (http->minor == 0 || http->minor == 1))
        return true;
    http->major = http->minor = 1;
    return false;
}

/* evhttp uses the first of several lengths, and lets "chunked" override them all. */
static fault what_is_wrong(struct evhttp_request *http, bool writes) {
    const vd_headers headers = {.list = evhttp_request_get_input_headers(http)};
    const char *length;
    const int lengths = vd_headers_count(&headers, "Content-Length", &length);
    const enum evhttp_cmd_type method = evhttp_request_get_command(http);
    const bool write = method == EVHTTP_REQ_PUT || method == EVHTTP_REQ_DELETE;
    if (!is_known_version(http))
        return (fault){400, "neither HTTP/1.0 nor HTTP/1.1"};
    if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_POST && !(writes && write))
        return (fault){405, writes ? "none of GET, POST, PUT and DELETE" : "neither GET nor POST"};
    if (evhttp_request_get_uri(http)[0] != '/')
        return (fault){400, "the target must begin with a slash"};
    if (vd_headers_count(&headers, "Transfer-Encoding", NULL))
        return (fault){411, "Transfer-Encoding is not supported, send a Content-Length"};
    if (lengths > 1)
        return (fault){400, "more than one Content-Length"};
    if (lengths && !vd_is_length(length))
        return (fault){400, "a Content-Length is digits alone"};
    if ((method == EVHTTP_REQ_GET || method == EVHTTP_REQ_DELETE) &&
        evbuffer_get_length(evhttp_request_get_input_buffer(http)))
        return (fault){400, method == EVHTTP_REQ_GET ? "GET has no body" : "DELETE has no body"};
    return (fault){200, NULL};
}

/* Returns the method's name. */
static const char *method_of(struct evhttp_request *http) {
    switch (evhttp_request_get_command(http)) {
    case EVHTTP_REQ_GET: return "GET";
    case EVHTTP_REQ_PUT: return "PUT";
    case EVHTTP_REQ_DELETE: return "DELETE";
    default: return "POST";
    }
}

static bool fill(vd_request *request, struct evhttp_request *http) {
    struct evbuffer *body = evhttp_request_get_input_buffer(http);
    request->method = method_of(http);
    request->path = evhttp_request_get_uri(http);
    request->body_size = evbuffer_get_length(body);
    if (request->body_size)
        request->body = evbuffer_pullup(body, -1);
    return !request->body_size || request->body;
}

/* Responds {"error": text} if there is memory for it, and closes the connection afterwards. */
static void refuse(vd_conn *conn, struct evhttp_request *http, int status, const char *text) {
    struct evkeyvalq *headers = evhttp_request_get_output_headers(http);
    struct evbuffer *body = evbuffer_new();
    if (conn)
        vd_conn_enter(conn, VD_CONN_SENDING);
    if (body)
        evbuffer_add_printf(body, "{\"error\":\"%s\"}", text);
    evhttp_add_header(headers, "Content-Type", "application/json");
    evhttp_add_header(headers, "Connection", "close");
    evhttp_send_reply(http, status, NULL, body);
    if (body)
        evbuffer_free(body);
}

static vd_job *job_create(vd_conn *conn, struct evhttp_request *http) {
    vd_job *job = calloc(1, sizeof *job);
    if (!job || !fill(&job->request, http)) {
        free(job);
        return NULL;
    }
    job->http = http;
    job->conn = conn;
    job->headers.list = evhttp_request_get_input_headers(http);
    job->request.headers = &job->headers;
    job->asker.address = *vd_conn_address(conn);
    job->response.status = 200;
    return job;
}

/* Refuses a job that gets no place in the queue, which need not be the one that came last. */
static void refuse_job(vd_job *job) {
    vd_conn *conn = job->conn;
    struct evhttp_request *http = job->http;
    conn->job = NULL;
    vd_conn_release(conn, job->request.body_size);
    vd_conn_fulfil(conn);
    vd_buf_free(&job->response.body);
    free(job);
    refuse(conn, http, 503, "too many requests");
}

static void queue_job(vd_server *server, vd_job *job) {
    job->conn->job = job;
    vd_conn_enter(job->conn, VD_CONN_HANDLING);
    vd_job *out = vd_worker_put(&server->worker[job->lane], job);
    if (out)
        refuse_job(out);
}

static void send_response(vd_conn *conn, struct evhttp_request *http, vd_response *response,
                          vd_lane lane);

static vd_lane lane_of(const vd_server *server, vd_screened to) {
    const vd_lane lane = to == VD_READS   ? VD_LANE_READ
                         : to == VD_LASTS ? VD_LANE_LASTING
                                          : VD_LANE_HANDLER;
    return server->worker[lane].handler ? lane : VD_LANE_HANDLER;
}

void vd_request_arrived(struct evhttp_request *http, void *user) {
    vd_server *server = user;
    vd_conn *conn = vd_conn_of(http);
    const fault wrong = what_is_wrong(http, server->options.writes);
    if (conn)
        vd_conn_keep_input(conn);
    if (conn && conn->refused) { /* evhttp has read our substitute for its head */
        conn->refused = false;
        send_response(conn, http, &conn->early, VD_LANE_HANDLER);
        vd_buf_free(&conn->early.body);
        return;
    }
    if (!conn || wrong.text) {
        refuse(conn, http, conn ? wrong.status : 500, conn ? wrong.text : "no TLS");
        return;
    }
    vd_job *job = job_create(conn, http);
    if (!job) {
        refuse(conn, http, 500, "out of memory");
        return;
    }
    vd_conn_hold(conn, job->request.body_size);
    vd_screen screen = server->options.screen;
    const vd_screened to =
        screen ? screen(server->user, &job->request, job->asker.name, &job->response) : VD_WAITS;
    job->lane = lane_of(server, to);
    if (to == VD_LASTS)
        job->asker.address = (vd_address){{0}};
    if (to == VD_ANSWERED)
        vd_request_answer(job);
    else
        queue_job(server, job);
}

/* ---- the way back ---- */

static void on_sent(struct evhttp_request *http, void *user) {
    (void)http;
    vd_conn *conn = user;
    vd_conn_keep_input(conn);
    vd_conn_enter(conn, conn->held ? VD_CONN_RECEIVING : VD_CONN_IDLE);
    conn->received = conn->held;
    conn->judged = conn->held > 0; /* evhttp may have read part of the next head */
}

static void free_body(const void *data, size_t size, void *user) {
    (void)size, (void)user;
    free((void *)data);
}

/* Moves the body into evhttp's buffer without copying it. */
static bool move_body(vd_buf *body, struct evbuffer *out) {
    if (!body->data)
        return true;
    if (evbuffer_add_reference(out, body->data, body->size, free_body, NULL) != 0)
        return false;
    *body = (vd_buf){0};
    return true;
}

static void send_response(vd_conn *conn, struct evhttp_request *http, vd_response *response,
                          vd_lane lane) {
    const char *type = response->content_type ? response->content_type : "application/octet-stream";
    size_t size = response->body.size;
    /* A download above the limit of all of them is sent alone, in addition to what is held. */
    const bool alone = lane == VD_LANE_READ && size > conn->server->options.read_max;
    struct evbuffer *out = evbuffer_new();
    if (lane == VD_LANE_READ && !vd_conn_hold_reads(conn, size)) {
        refuse(conn, http, 503, "too many downloads at once");
    } else if (!out || !vd_buf_ok(&response->body) || size > VD_NET_RESPONSE_MAX ||
               !(alone || vd_conn_make_memory(conn->server, size)) ||
               !move_body(&response->body, out)) {
        refuse(conn, http, 500, "no memory for the response");
    } else {
        vd_conn_hold(conn, alone ? 0 : size);
        vd_conn_enter(conn, VD_CONN_SENDING);
        evhttp_add_header(evhttp_request_get_output_headers(http), "Content-Type", type);
        evhttp_request_set_on_complete_cb(http, on_sent, conn);
        evhttp_send_reply(http, response->status, NULL, out);
    }
    if (out)
        evbuffer_free(out);
}

void vd_request_answer(vd_job *job) {
    vd_conn *conn = job->conn;
    if (!conn || !evhttp_request_get_connection(job->http)) {
        vd_request_drop(job);
        return;
    }
    conn->job = NULL;
    vd_conn_release(conn, job->request.body_size);
    vd_conn_fulfil(conn);
    vd_conn_unpark(conn->server);
    send_response(conn, job->http, &job->response, job->lane);
    vd_buf_free(&job->response.body);
    free(job);
}

void vd_request_drop(vd_job *job) {
    if (job->conn)
        job->conn->job = NULL;
    if (!evhttp_request_get_connection(job->http))
        evhttp_request_free(job->http);
    vd_buf_free(&job->response.body);
    free(job);
}
