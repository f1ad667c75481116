/* Deadlines and limits that evhttp lacks.
 *
 * evhttp's timeout counts inactivity only, so one byte a second holds a connection for ever; and it
 * would count against a client that waits for a long response. It stays off. Instead every
 * connection has a state with a deadline, looked at every VD_NET_SWEEP_MS; a late one is given the
 * bufferevent's own timeout event, after which evhttp closes it in its ordinary way. */
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>

#include "verde/net/server_internal.h"

static int conn_index = -1; /* of vd_conn in an SSL object, which lives exactly as long */

static void on_ssl_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
                        void *argp) {
    (void)parent, (void)data, (void)index, (void)argl, (void)argp;
    vd_conn *conn = ptr;
    if (!conn)
        return;
    if (conn->job) {
        vd_worker_abandon(&conn->server->worker, conn->job);
        conn->job->conn = NULL;
    }
    vd_conn_release(conn, conn->held);
    conn->server->conn_count--;
    *conn->link = conn->next;
    if (conn->next)
        conn->next->link = conn->link;
    free(conn);
}

static void no_log(int severity, const char *text) {
    (void)severity, (void)text;
}

static void setup_once(void) {
    conn_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, on_ssl_free);
    event_set_log_callback(no_log); /* libevent warns on stderr of what any client may do */
}

bool vd_conn_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, setup_once) == 0 && conn_index >= 0;
}

void vd_conn_hold(vd_conn *conn, size_t bytes) {
    conn->held += bytes;
    conn->server->held += bytes;
}

void vd_conn_release(vd_conn *conn, size_t bytes) {
    conn->held -= bytes;
    conn->server->held -= bytes;
}

static int time_allowed(const vd_server_options *options, vd_conn_state state) {
    switch (state) {
    case VD_CONN_IDLE: return options->idle_ms;
    case VD_CONN_RECEIVING: return options->request_ms;
    case VD_CONN_SENDING: return options->send_ms;
    default: return 0;
    }
}

void vd_conn_enter(vd_conn *conn, vd_conn_state state) {
    int ms = time_allowed(&conn->server->options, state);
    conn->state = state;
    conn->deadline = ms ? vd_seconds() + ms / 1e3 : INFINITY;
}

/* Sees every byte that TLS delivers, before evhttp does. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *user) {
    (void)input;
    vd_conn *conn = user;
    vd_conn_hold(conn, info->n_added);
    vd_conn_release(conn, info->n_deleted);
    if (info->n_added && conn->state == VD_CONN_IDLE)
        vd_conn_enter(conn, VD_CONN_RECEIVING);
    if (conn->server->held > VD_NET_HELD_MAX && conn->state == VD_CONN_RECEIVING) {
        bufferevent_disable(conn->bev, EV_READ);
        conn->deadline = 0;
    }
}

static vd_conn *conn_create(vd_server *server, SSL *ssl) {
    vd_conn *conn = calloc(1, sizeof *conn);
    if (!conn || SSL_set_ex_data(ssl, conn_index, conn) != 1) {
        free(conn);
        return NULL;
    }
    conn->server = server;
    conn->next = server->conns;
    conn->link = &server->conns;
    if (conn->next)
        conn->next->link = &conn->next;
    server->conns = conn;
    server->conn_count++;
    conn->deadline = vd_seconds() + server->options.handshake_ms / 1e3;
    return conn;
}

struct bufferevent *vd_conn_accept(struct event_base *base, void *user) {
    vd_server *server = user;
    SSL *ssl = SSL_new(server->tls);
    vd_conn *conn = ssl ? conn_create(server, ssl) : NULL;
    if (!conn) {
        SSL_free(ssl);
        return NULL; /* evhttp goes on in plain text: vd_conn_of then refuses */
    }
    conn->bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                               BEV_OPT_CLOSE_ON_FREE);
    if (!conn->bev)
        return NULL; /* ssl and conn are freed */
    /* evhttp would buffer a chunk header without an end. No honest request comes near this. */
    size_t most = server->options.request_max + 2 * VD_NET_HEADER_MAX;
    bufferevent_setwatermark(conn->bev, EV_READ, 0, most + (64 << 10));
    evbuffer_add_cb(bufferevent_get_input(conn->bev), on_input, conn);
    if (server->conn_count >= server->options.connection_max)
        evconnlistener_disable(server->listener);
    return conn->bev;
}

vd_conn *vd_conn_of(struct evhttp_request *http) {
    struct evhttp_connection *evcon = evhttp_request_get_connection(http);
    SSL *ssl = bufferevent_openssl_get_ssl(evhttp_connection_get_bufferevent(evcon));
    return ssl ? SSL_get_ex_data(ssl, conn_index) : NULL;
}

/* ---- the sweep ---- */

/* evhttp closes the connection; its memory, and so conn, goes when the event loop comes round. A
 * bufferevent without callbacks was closed before in this round. */
static void cut(vd_conn *conn, short event) {
    bufferevent_event_cb callback;
    bufferevent_getcb(conn->bev, NULL, NULL, &callback, NULL);
    conn->state = VD_CONN_CUT;
    conn->deadline = INFINITY;
    if (callback)
        bufferevent_trigger_event(conn->bev, (short)(event | BEV_EVENT_READING), 0);
}

/* While the worker has the request nobody reads, so a hang-up goes unseen unless asked for. */
static bool hung_up(const vd_conn *conn) {
    struct pollfd poll_fd = {.fd = bufferevent_getfd(conn->bev), .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) == 1;
}

static vd_conn *idle_longest(vd_conn *conn) {
    vd_conn *found = NULL;
    for (; conn; conn = conn->next)
        if (conn->state == VD_CONN_IDLE && (!found || conn->deadline < found->deadline))
            found = conn;
    return found;
}

void vd_conn_sweep(vd_server *server) {
    double now = vd_seconds();
    for (vd_conn *conn = server->conns; conn; conn = conn->next)
        if (conn->deadline <= now)
            cut(conn, BEV_EVENT_TIMEOUT);
        else if (conn->state == VD_CONN_HANDLING && hung_up(conn))
            cut(conn, BEV_EVENT_EOF);
    if (server->conn_count >= server->options.connection_max) {
        vd_conn *conn = idle_longest(server->conns);
        if (conn)
            cut(conn, BEV_EVENT_TIMEOUT);
    } else {
        evconnlistener_enable(server->listener); /* costs nothing if it is */
    }
}
