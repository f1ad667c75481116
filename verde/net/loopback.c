/* This file accepts connections from this machine, and answers each with one page. */
#include "verde/net/loopback.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/base/thread.h"
#include "verde/net/internal.h"
#include "verde/net/loopback_internal.h"

/* A connection, which takes a single request. */
typedef struct local_conn {
    vd_loopback *server;
    struct bufferevent *bev;
    struct local_conn *older, *newer;
} local_conn;

struct vd_loopback {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *end;
    int end_pipe[2];
    int port;
    local_conn *newest, *oldest;
    int count;
    vd_loopback_handler handler;
    void *user;
    pthread_t thread;
    bool started;
};

/* ---- connections ---- */

static void close_conn(local_conn *c) {
    vd_loopback *s = c->server;
    *(c->older ? &c->older->newer : &s->oldest) = c->newer;
    *(c->newer ? &c->newer->older : &s->newest) = c->older;
    s->count--;
    bufferevent_free(c->bev);
    free(c);
}

/* Closing with unread bytes would reset the connection and lose the answer: so the other side
 * closes it, or the timeout does. */
static void on_sent(struct bufferevent *bev, void *user) {
    (void)user;
    shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_rest(struct bufferevent *bev, void *user) {
    (void)user;
    struct evbuffer *input = bufferevent_get_input(bev);
    evbuffer_drain(input, evbuffer_get_length(input));
}

static void on_end(struct bufferevent *bev, short what, void *user) {
    (void)bev, (void)what;
    close_conn(user);
}

static void send_answer(local_conn *c, const vd_buf *answer) {
    on_rest(c->bev, c);
    bufferevent_setcb(c->bev, on_rest, on_sent, on_end, c);
    if (!vd_buf_ok(answer) || bufferevent_write(c->bev, answer->data, answer->size) != 0)
        close_conn(c);
}

static void on_bytes(struct bufferevent *bev, void *user) {
    local_conn *c = user;
    struct evbuffer *input = bufferevent_get_input(bev);
    const size_t size = evbuffer_get_length(input);
    char text[VD_LOOPBACK_HEAD_MAX + 1];
    vd_buf answer = {0};
    const size_t got = size < VD_LOOPBACK_HEAD_MAX ? size : VD_LOOPBACK_HEAD_MAX;
    if (evbuffer_copyout(input, text, got) != (ev_ssize_t)got)
        return;
    text[got] = 0;
    char *end = strstr(text, "\r\n\r\n");
    if (!end && got < VD_LOOPBACK_HEAD_MAX && strlen(text) == got)
        return; /* incomplete: wait for more */
    if (end) {
        end[2] = 0;
        vd_loopback_answer(text, c->server->handler, c->server->user, &answer);
    } else {
        vd_loopback_refuse(strlen(text) == got ? 431 : 400, "this is no head of a request",
                           &answer);
    }
    send_answer(c, &answer);
    vd_buf_free(&answer);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
                      int size, void *user) {
    (void)listener, (void)from, (void)size;
    static const struct timeval patience = {.tv_sec = VD_LOOPBACK_TIMEOUT_S};
    vd_loopback *s = user;
    if (s->count == VD_LOOPBACK_CONNECTIONS)
        close_conn(s->oldest);
    local_conn *c = calloc(1, sizeof *c);
    struct bufferevent *bev = c ? bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!bev) {
        free(c);
        close(fd);
        return;
    }
    *c = (local_conn){.server = s, .bev = bev, .older = s->newest};
    *(s->newest ? &s->newest->newer : &s->oldest) = c;
    s->newest = c;
    s->count++;
    bufferevent_setwatermark(bev, EV_READ, 0, VD_LOOPBACK_HEAD_MAX);
    bufferevent_setcb(bev, on_bytes, NULL, on_end, c);
    bufferevent_set_timeouts(bev, &patience, &patience);
    bufferevent_enable(bev, EV_READ);
}

/* ---- start and stop ---- */

static void on_stop(evutil_socket_t fd, short what, void *user) {
    (void)fd, (void)what;
    event_base_loopbreak(user);
}

static vd_status loopback_listen(vd_loopback *s, int port, vd_err *err) {
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE;
    s->listener = evconnlistener_new_bind(s->base, on_accept, s, flags, VD_LOOPBACK_BACKLOG,
                                          (struct sockaddr *)&at, sizeof at);
    if (!s->listener)
        return vd_fail(err, VD_ERR_IO, "cannot listen on 127.0.0.1:%d: %s", port, strerror(errno));
    if (getsockname(evconnlistener_get_fd(s->listener), (struct sockaddr *)&at, &size) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "127.0.0.1:%d: %s", port, strerror(errno));
    s->port = ntohs(at.sin_port);
    return VD_OK;
}

static vd_status loopback_open(vd_loopback *s, int port, vd_err *err) {
    if (!(s->base = event_base_new()) || pipe2(s->end_pipe, O_CLOEXEC) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for a server");
    s->end = event_new(s->base, s->end_pipe[0], EV_READ, on_stop, s->base);
    if (!s->end || event_add(s->end, NULL) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for a server");
    return loopback_listen(s, port, err);
}

static void *loopback_main(void *user) {
    vd_loopback *s = user;
    event_base_dispatch(s->base);
    return NULL;
}

vd_status vd_loopback_start(int port, vd_loopback_handler handler, void *user, vd_loopback **out,
                            vd_err *err) {
    vd_loopback *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for a server");
    *s = (vd_loopback){.handler = handler, .user = user, .end_pipe = {-1, -1}};
    vd_ignore_sigpipe();
    vd_status status = loopback_open(s, port, err);
    if (status == VD_OK && vd_thread_start(&s->thread, loopback_main, s) != 0)
        status = vd_fail(err, VD_ERR_LOCAL, "could not start a thread");
    s->started = status == VD_OK;
    if (status == VD_OK)
        *out = s;
    else
        vd_loopback_stop(s);
    return status;
}

int vd_loopback_port(const vd_loopback *s) {
    return s->port;
}

void vd_loopback_stop(vd_loopback *s) {
    if (!s)
        return;
    if (s->end_pipe[1] >= 0)
        close(s->end_pipe[1]);
    if (s->started)
        pthread_join(s->thread, NULL);
    while (s->oldest)
        close_conn(s->oldest);
    if (s->listener)
        evconnlistener_free(s->listener);
    if (s->end)
        event_free(s->end);
    if (s->end_pipe[0] >= 0)
        close(s->end_pipe[0]);
    if (s->base)
        event_base_free(s->base);
    free(s);
}
