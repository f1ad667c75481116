/* Deadlines and limits that evhttp lacks, and the choice of connections that give way.
 *
 * evhttp's timeout counts only inactivity: a byte a second would keep a connection for ever, and a
 * client that waits for a long response would be cut. So it is off. Instead every connection has a
 * state with a deadline, checked every VD_NET_SWEEP_MS. When it is late, it gets the bufferevent's
 * own timeout event, on which evhttp closes it in the usual way. */
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "verde/net/server_internal.h"

static int conn_index = -1; /* index of the vd_conn in an SSL object, which lives as long */

static void on_ssl_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
                        void *argp) {
    (void)parent, (void)data, (void)index, (void)argl, (void)argp;
    vd_conn *conn = ptr;
    if (!conn)
        return;
    if (conn->job) {
        vd_worker_abandon(&conn->server->worker[conn->job->lane], conn->job);
        conn->job->conn = NULL;
    }
    vd_conn_release(conn, conn->held);
    conn->server->reads -= conn->reads;
    vd_conn_fulfil(conn);
    vd_buf_free(&conn->head);
    vd_buf_free(&conn->early.body);
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
    event_set_log_callback(no_log); /* libevent would warn on stderr of what any client may do */
}

bool vd_conn_setup(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, setup_once) == 0 && conn_index >= 0;
}

const vd_address *vd_conn_address(vd_conn *conn) {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } peer;
    socklen_t size = sizeof peer;
    evutil_socket_t fd = bufferevent_getfd(conn->bev);
    if (conn->has_address || fd < 0 || getpeername(fd, &peer.any, &size) != 0)
        return &conn->address;
    conn->has_address = true;
    if (peer.any.sa_family == AF_INET)
        memcpy(conn->address.b, &peer.in.sin_addr, sizeof peer.in.sin_addr);
    else if (IN6_IS_ADDR_V4MAPPED(&peer.in6.sin6_addr))
        memcpy(conn->address.b, peer.in6.sin6_addr.s6_addr + 12, 4);
    else
        memcpy(conn->address.b, &peer.in6.sin6_addr, 8); /* the network: one host owns all of it */
    return &conn->address;
}

void vd_conn_hold(vd_conn *conn, size_t bytes) {
    conn->held += bytes;
    conn->server->held += bytes;
}

void vd_conn_release(vd_conn *conn, size_t bytes) {
    conn->held -= bytes;
    conn->server->held -= bytes;
}

void vd_conn_keep_input(vd_conn *conn) {
    size_t input = evbuffer_get_length(bufferevent_get_input(conn->bev));
    vd_conn_release(conn, conn->held);
    vd_conn_hold(conn, input);
    conn->server->reads -= conn->reads;
    conn->reads = 0;
}

bool vd_conn_hold_reads(vd_conn *conn, size_t bytes) {
    const size_t others = conn->server->reads;
    if (others && others + bytes > conn->server->options.read_max)
        return false;
    conn->server->reads += bytes;
    conn->reads += bytes;
    return true;
}

static int time_allowed(const vd_server_options *options, vd_conn_state state) {
    switch (state) {
    case VD_CONN_IDLE: return options->idle_ms;
    case VD_CONN_RECEIVING: return options->request_ms;
    case VD_CONN_PARKED:
    case VD_CONN_SENDING: return options->send_ms;
    default: return 0;
    }
}

void vd_conn_enter(vd_conn *conn, vd_conn_state state) {
    int ms = time_allowed(&conn->server->options, state);
    conn->state = state;
    conn->since = vd_seconds();
    conn->deadline = ms ? conn->since + ms / 1e3 : INFINITY;
    conn->received = 0;
    if (state == VD_CONN_IDLE || state == VD_CONN_RECEIVING)
        conn->judged = false;
}

/* Dooms a connection: nothing more is read from it, and the next sweep closes it. */
static void doom(vd_conn *conn) {
    bufferevent_disable(conn->bev, EV_READ);
    vd_conn_release(conn, conn->held);
    conn->deadline = 0;
}

static vd_conn *largest_received(vd_conn *conn) {
    vd_conn *found = NULL;
    for (; conn; conn = conn->next)
        if (conn->state == VD_CONN_RECEIVING && conn->held && (!found || conn->held > found->held))
            found = conn;
    return found;
}

/* Makes room for a body by closing connections that are still sending. One whose request is
 * complete is never closed for lack of memory. */
bool vd_conn_make_memory(vd_server *server, size_t size) {
    const size_t most = server->options.held_max;
    vd_conn *conn;
    while (server->held + size > most && (conn = largest_received(server->conns)))
        doom(conn);
    return server->held + size <= most;
}

/* Returns the most input that may be buffered: evhttp would buffer a chunk header without end.
 * Valid requests stay far below. */
static size_t input_max(const vd_server *server) {
    return server->options.request_max + 2 * VD_NET_HEADER_MAX + (64 << 10);
}

/* Discards the bytes of a refused body that have come. Returns their number. */
static size_t discard(vd_conn *conn, struct evbuffer *input) {
    const size_t there = evbuffer_get_length(input);
    const size_t size = conn->discard < there ? (size_t)conn->discard : there;
    if (!size)
        return 0;
    conn->editing = true;
    evbuffer_drain(input, size);
    conn->editing = false;
    conn->discard -= size;
    return size;
}

/* Called for all bytes that TLS delivers, before evhttp. What evhttp takes from the input of an
 * incomplete request stays in memory as pieces of the body, and counts until it is complete. */
static void on_input(struct evbuffer *input, const struct evbuffer_cb_info *info, void *user) {
    vd_conn *conn = user;
    if (!info->n_added || conn->editing)
        return;
    if (conn->state == VD_CONN_PARKED) {
        vd_conn_keep_parked(conn, input);
        return;
    }
    size_t added = info->n_added - discard(conn, input);
    if (added && conn->state == VD_CONN_IDLE)
        vd_conn_enter(conn, VD_CONN_RECEIVING);
    if (conn->deadline == 0 || conn->state != VD_CONN_RECEIVING || !added)
        return;
    vd_conn_hold(conn, added);
    conn->received += added;
    if (conn->received > 2 * input_max(conn->server) ||
        (conn->server->options.head_screen && !vd_conn_judge_head(conn, input)))
        doom(conn);
    vd_conn_make_memory(conn->server, 0);
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
    conn->since = vd_seconds();
    conn->deadline = conn->since + server->options.handshake_ms / 1e3;
    return conn;
}

struct bufferevent *vd_conn_accept(struct event_base *base, void *user) {
    vd_server *server = user;
    SSL *ssl = SSL_new(server->tls);
    vd_conn *conn = ssl ? conn_create(server, ssl) : NULL;
    if (!conn) {
        SSL_free(ssl);
        return NULL; /* evhttp continues in plain text, and vd_conn_of then fails */
    }
    conn->bev = bufferevent_openssl_socket_new(base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                               BEV_OPT_CLOSE_ON_FREE);
    if (!conn->bev)
        return NULL; /* ssl and conn were freed */
    bufferevent_setwatermark(conn->bev, EV_READ, 0, input_max(server));
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

/* Makes evhttp close a connection. Its memory, and conn, are freed in a later round of the loop. A
 * bufferevent without callbacks has already been closed in this round. */
static void cut(vd_conn *conn, short event) {
    bufferevent_event_cb callback;
    bufferevent_getcb(conn->bev, NULL, NULL, &callback, NULL);
    conn->state = VD_CONN_CUT;
    conn->deadline = INFINITY;
    if (callback)
        bufferevent_trigger_event(conn->bev, (short)(event | BEV_EVENT_READING), 0);
}

/* Checks for a hang-up: while a worker has the request, nothing is read and none is noticed. */
static bool hung_up(const vd_conn *conn) {
    struct pollfd poll_fd = {.fd = bufferevent_getfd(conn->bev), .events = POLLRDHUP};
    return poll(&poll_fd, 1, 0) == 1;
}

/* ---- connections that give way ---- */

static int held_by_address(vd_conn *of) {
    int count = 0;
    for (vd_conn *conn = of->server->conns; conn; conn = conn->next)
        count += conn->state != VD_CONN_CUT &&
                 memcmp(vd_conn_address(conn), vd_conn_address(of), sizeof conn->address) == 0;
    return count;
}

/* A connection that may give way. The first rank that differs decides; the greater goes first. */
typedef struct {
    vd_conn *conn;
    double rank[4];
} candidate;

/* Ranks a connection. A complete request, waiting or handled, never gives way: rank -1. */
static candidate weigh(vd_conn *conn, double now) {
    double age = now - conn->since, slowness = -(double)conn->received / (age + 1e-9);
    bool waits = conn->state == VD_CONN_IDLE || conn->state == VD_CONN_RECEIVING;
    if (!waits && conn->state != VD_CONN_SENDING)
        return (candidate){NULL, {-1}};
    bool had_time = waits && age > VD_NET_GRACE_MS / 1e3;
    int readiness = had_time ? 2 : waits ? 1 : 0;
    return (candidate){conn, {held_by_address(conn), readiness, had_time ? slowness : 0, age}};
}

static bool goes_before(const candidate *a, const candidate *b) {
    for (int i = 0; i < 4; i++)
        if (a->rank[i] != b->rank[i])
            return a->rank[i] > b->rank[i];
    return false;
}

/* Returns the connection that must go: of the address with most connections the one that had its
 * grace and sent most slowly; else the oldest, so that newcomers have as much time as possible. */
static candidate first_to_go(vd_server *server) {
    double now = vd_seconds();
    candidate first = {NULL, {-1}};
    for (vd_conn *conn = server->conns; conn; conn = conn->next) {
        candidate next = weigh(conn, now);
        if (goes_before(&next, &first))
            first = next;
    }
    return first;
}

static bool somebody_knocks(const vd_server *server) {
    struct pollfd poll_fd = {.fd = evconnlistener_get_fd(server->listener), .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

/* Makes room for newcomers, a few at a time: if all were let in at once, they would push each other
 * out before any has sent a request. */
static void make_room(vd_server *server) {
    const int most = server->options.connection_max;
    const int share = (most + VD_NET_ADDRESS_SHARE - 1) / VD_NET_ADDRESS_SHARE;
    const bool full = server->conn_count >= most && somebody_knocks(server);
    for (int i = 0; i <= most / VD_NET_ROOM && server->conn_count > share; i++) {
        candidate first = first_to_go(server);
        if (!first.conn || (!full && first.rank[0] <= share))
            return;
        cut(first.conn, BEV_EVENT_TIMEOUT);
    }
}

/* Returns true if a request is slower than the least rate, after its grace. */
static bool too_slow(const vd_conn *conn, double now) {
    double late = now - conn->since - VD_NET_GRACE_MS / 1e3;
    return conn->state == VD_CONN_RECEIVING && (double)conn->received < late * VD_NET_RATE_MIN;
}

void vd_conn_sweep(vd_server *server) {
    double now = vd_seconds();
    for (vd_conn *conn = server->conns; conn; conn = conn->next)
        if (conn->deadline <= now || too_slow(conn, now))
            cut(conn, BEV_EVENT_TIMEOUT);
        else if ((conn->state == VD_CONN_HANDLING || conn->state == VD_CONN_PARKED) &&
                 hung_up(conn))
            cut(conn, BEV_EVENT_EOF);
    make_room(server);
    vd_conn_unpark(server);
    if (server->conn_count < server->options.connection_max)
        evconnlistener_enable(server->listener); /* harmless if it is enabled */
}
