/* Creates, runs, stops and destroys the server. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/net/internal.h"
#include "verde/net/server_internal.h"

static void on_accept_error(struct evconnlistener *listener, void *user) {
    (void)user; /* evhttp's */
    /* Out of descriptors: retrying at once would spin. The next sweep enables it again. */
    evconnlistener_disable(listener);
}

static void on_wake(evutil_socket_t fd, short what, void *user) {
    (void)what;
    vd_server *server = user;
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    if (atomic_load(&server->stopping)) {
        event_base_loopbreak(server->base);
        return;
    }
    vd_job *job;
    for (int lane = 0; lane < VD_LANES; lane++)
        while ((job = vd_worker_take_done(&server->worker[lane])))
            vd_request_answer(job);
}

static void on_sweep(evutil_socket_t fd, short what, void *server) {
    (void)fd, (void)what;
    vd_conn_sweep(server);
}

/* ---- create ---- */

static void or_default(int *value, int otherwise) {
    if (*value <= 0)
        *value = otherwise;
}

static void fill_defaults(vd_server_options *options) {
    if (!options->request_max)
        options->request_max = VD_NET_REQUEST_MAX;
    if (!options->held_max)
        options->held_max = VD_NET_HELD_MAX;
    if (!options->read_max)
        options->read_max = VD_NET_READ_MAX;
    or_default(&options->queue_max, VD_NET_QUEUE_MAX);
    or_default(&options->connection_max, VD_NET_CONNECTION_MAX);
    or_default(&options->handshake_ms, VD_NET_HANDSHAKE_MS);
    or_default(&options->request_ms, VD_NET_REQUEST_MS);
    or_default(&options->send_ms, VD_NET_SEND_MS);
    or_default(&options->idle_ms, VD_NET_IDLE_MS);
}

static bool make_http(vd_server *server) {
    server->http = evhttp_new(server->base);
    if (!server->http)
        return false;
    /* Others are refused in our own words. evhttp would answer a forbidden HEAD with a body. */
    evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                                 EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                                 EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
    evhttp_set_max_headers_size(server->http, VD_NET_HEADER_MAX);
    evhttp_set_max_body_size(server->http, (ev_ssize_t)server->options.request_max);
    evhttp_set_bevcb(server->http, vd_conn_accept, server);
    evhttp_set_gencb(server->http, vd_request_arrived, server);
    return true;
}

static bool make_events(vd_server *server) {
    const struct timeval period = {.tv_usec = VD_NET_SWEEP_MS * 1000L};
    server->wake =
        event_new(server->base, server->wake_pipe[0], EV_READ | EV_PERSIST, on_wake, server);
    server->sweep = event_new(server->base, -1, EV_PERSIST, on_sweep, server);
    return server->wake && server->sweep && event_add(server->wake, NULL) == 0 &&
           event_add(server->sweep, &period) == 0;
}

static vd_status attach_listener(vd_server *server, vd_err *err) {
    struct evconnlistener *listener = NULL;
    vd_status status =
        vd_listen(server->base, server->options.listen, &listener, &server->port, err);
    if (status != VD_OK)
        return status;
    if (!evhttp_bind_listener(server->http, listener)) {
        evconnlistener_free(listener);
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the server");
    }
    evconnlistener_set_error_cb(listener, on_accept_error);
    server->listener = listener;
    return VD_OK;
}

static vd_status setup(vd_server *server, vd_err *err) {
    vd_status status =
        vd_tls_create(server->options.cert_path, server->options.key_path, &server->tls, err);
    if (status != VD_OK)
        return status;
    server->base = event_base_new();
    if (!server->base || pipe2(server->wake_pipe, O_NONBLOCK | O_CLOEXEC) != 0)
        return vd_fail(err, VD_ERR_LOCAL, "could not create the event loop: %s", strerror(errno));
    for (int lane = 0; lane < VD_LANES; lane++)
        server->worker[lane].wake_fd = server->wake_pipe[1];
    if (!vd_conn_setup() || !make_http(server) || !make_events(server))
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the server");
    return attach_listener(server, err);
}

static vd_status make_workers(vd_server *server, vd_handler handler, vd_err *err) {
    const vd_handler of[VD_LANES] = {handler, server->options.read, server->options.lasting};
    for (int lane = 0; lane < VD_LANES; lane++) {
        vd_worker *worker = &server->worker[lane];
        worker->handler = of[lane];
        worker->user = server->user;
        worker->queue_max = server->options.queue_max;
        vd_status status = vd_worker_init(worker, err);
        if (status == VD_OK)
            continue;
        for (int made = 0; made < lane; made++)
            vd_worker_release(&server->worker[made], vd_request_drop);
        return status;
    }
    return VD_OK;
}

vd_status vd_server_create(const vd_server_options *options, vd_handler handler, void *user,
                           vd_server **out, vd_err *err) {
    *out = NULL;
    vd_server *server = calloc(1, sizeof *server);
    if (!server)
        return vd_fail(err, VD_ERR_LOCAL, "no memory for the server");
    server->options = *options;
    fill_defaults(&server->options);
    server->wake_pipe[0] = server->wake_pipe[1] = -1;
    server->user = user;
    vd_status status = make_workers(server, handler, err);
    if (status != VD_OK) {
        free(server);
        return status;
    }
    vd_ignore_sigpipe();
    status = setup(server, err);
    if (status == VD_OK)
        *out = server;
    else
        vd_server_destroy(server);
    return status;
}

int vd_server_port(const vd_server *server) {
    return server->port;
}

/* ---- run, stop, destroy ---- */

vd_status vd_server_run(vd_server *server, vd_err *err) {
    vd_status status = VD_OK;
    for (int lane = 0; status == VD_OK && lane < VD_LANES; lane++)
        if (server->worker[lane].handler)
            status = vd_worker_start(&server->worker[lane], err);
    if (status == VD_OK && event_base_dispatch(server->base) < 0)
        status = vd_fail(err, VD_ERR_LOCAL, "the event loop failed: %s", strerror(errno));
    evconnlistener_disable(server->listener);
    for (int lane = 0; lane < VD_LANES; lane++)
        vd_worker_stop(&server->worker[lane]);
    return status;
}

void vd_server_stop(vd_server *server) {
    int saved = errno;
    atomic_store(&server->stopping, true);
    ssize_t written = write(server->wake_pipe[1], "", 1);
    (void)written;
    errno = saved;
}

static void free_event(struct event *event) {
    if (event)
        event_free(event);
}

/* libevent defers the end of a connection to a later round of the loop, and event_base_free does
 * not catch up on it if another callback of that connection was deferred as well. */
static void free_loop(vd_server *server) {
    if (server->http)
        evhttp_free(server->http);
    free_event(server->wake);
    free_event(server->sweep);
    for (int round = 0; server->conns && round < 10; round++)
        event_base_loop(server->base, EVLOOP_NONBLOCK);
    if (server->base)
        event_base_free(server->base);
}

void vd_server_destroy(vd_server *server) {
    if (!server)
        return;
    for (int lane = 0; lane < VD_LANES; lane++)
        vd_worker_release(&server->worker[lane], vd_request_drop);
    free_loop(server);
    SSL_CTX_free(server->tls);
    for (int i = 0; i < 2; i++)
        if (server->wake_pipe[i] >= 0)
            close(server->wake_pipe[i]);
    free(server);
}
