/* Peers for tests of the transport: an honest server, and raw TLS on either side for
 * misbehaviour. */
#ifndef NET_PEERS_H
#define NET_PEERS_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "verde/net/net.h"

static inline void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- an identity: a key and its files ---- */

typedef struct {
    char dir[64], cert[96], key_file[96];
    char hex[2 * VD_KEY_SIZE + 1];
} identity;

static inline identity make_identity(void) {
    identity self = {.dir = "/tmp/verde-net-XXXXXX"};
    vd_key *key;
    vd_public_key public_key;
    cr_assert(mkdtemp(self.dir));
    cr_assert(vd_key_generate(&key, NULL) == VD_OK);
    cr_assert(vd_key_save(key, self.dir, NULL) == VD_OK);
    vd_key_public(key, &public_key);
    vd_key_destroy(key);
    vd_hex(public_key.b, VD_KEY_SIZE, self.hex);
    snprintf(self.cert, sizeof self.cert, "%s/tls.crt", self.dir);
    snprintf(self.key_file, sizeof self.key_file, "%s/key.pem", self.dir);
    return self;
}

static inline void remove_identity(const identity *self) {
    char path[96];
    snprintf(path, sizeof path, "%.64s/key.pub", self->dir);
    unlink(path);
    unlink(self->cert);
    unlink(self->key_file);
    cr_expect(rmdir(self->dir) == 0);
}

static inline vd_endpoint endpoint_at(int port, const char *hex) {
    char text[160];
    vd_endpoint at;
    snprintf(text, sizeof text, "https://127.0.0.1:%d%s%.64s", port, hex ? "#" : "",
             hex ? hex : "");
    cr_assert(vd_endpoint_parse(text, &at, NULL) == VD_OK);
    return at;
}

/* ---- our own client ---- */

/* An unrelated public key, from RFC 8032 section 7.1. */
#define KEY "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

static vd_client *client;

static inline void setup(void) {
    cr_assert(vd_client_create(NULL, &client, NULL) == VD_OK);
}

static inline void teardown(void) {
    vd_client_destroy(client);
}

static inline vd_answer ask(const vd_endpoint *to, const char *path, const char *body,
                            int deadline_ms) {
    vd_exchange exchange = {.to = to, .path = path, .deadline_ms = deadline_ms};
    exchange.body = body;
    exchange.body_size = body ? strlen(body) : 0;
    vd_answer answer;
    vd_client_ask(client, 1, &exchange, &answer);
    return answer;
}

/* Asks, frees the answer and returns the status. */
static inline vd_status outcome(const vd_endpoint *to, const char *path, const char *body,
                                int deadline_ms) {
    vd_answer answer = ask(to, path, body, deadline_ms);
    vd_status status = answer.err.status;
    if (status != VD_OK)
        cr_log_info("%s", answer.err.text);
    vd_answer_free(&answer);
    return status;
}

static inline bool is_text(const vd_buf *buf, const char *text) {
    return buf->size == strlen(text) && memcmp(buf->data, text, buf->size) == 0;
}

/* ---- our own server, in a thread ---- */

typedef struct {
    identity self;
    vd_server *server;
    pthread_t thread;
    vd_endpoint at;
    int port;
    atomic_int handled, screened;
    atomic_bool released;
    char order[64]; /* first bytes of handled bodies; used only by the worker until the stop */
} host;

/* /echo returns the body; /hold first waits for `released`; /nap first sleeps 10 ms times the
 * body's first digit; /big returns as many MiB as that digit says; /none sets status 404. */
static inline void host_handler(void *user, const vd_request *request, vd_response *response) {
    host *h = user;
    int digit = request->body_size ? request->body[0] - '0' : 0;
    if (strcmp(request->path, "/nap") == 0)
        sleep_ms(10 * digit);
    while (strcmp(request->path, "/hold") == 0 && !atomic_load(&h->released))
        sleep_ms(1);
    if (strcmp(request->path, "/none") == 0)
        response->status = 404;
    if (strcmp(request->path, "/big") == 0) {
        char *mib = calloc(1, 1 << 20);
        for (int i = 0; i < digit; i++)
            vd_put(&response->body, mib, 1 << 20);
        free(mib);
    } else {
        vd_put(&response->body, request->body, request->body_size);
    }
    int at = atomic_fetch_add(&h->handled, 1);
    if (at < (int)sizeof h->order - 1 && request->body_size > 1)
        h->order[at] = (char)request->body[1];
}

static inline void *host_main(void *user) {
    host *h = user;
    cr_assert(vd_server_run(h->server, NULL) == VD_OK);
    return NULL;
}

static inline void start_host(host *h, vd_server_options options) {
    *h = (host){.self = make_identity()};
    vd_err err = {0};
    options.listen = "127.0.0.1:0";
    options.cert_path = h->self.cert;
    options.key_path = h->self.key_file;
    cr_assert(vd_server_create(&options, host_handler, h, &h->server, &err) == VD_OK, "%s",
              err.text);
    h->port = vd_server_port(h->server);
    h->at = endpoint_at(h->port, h->self.hex);
    cr_assert(pthread_create(&h->thread, NULL, host_main, h) == 0);
}

static inline void stop_host(host *h) {
    vd_server_stop(h->server);
    pthread_join(h->thread, NULL);
    vd_server_destroy(h->server);
    remove_identity(&h->self);
}

/* ---- a client of raw TLS ---- */

typedef struct {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
} raw_client;

static inline int dial_from(const char *source,
                            int port) { /* Connects to a port from this address; -1: refused. */
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(inet_pton(AF_INET, source, &from.sin_addr) == 1);
    cr_assert(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 5}, sizeof(struct timeval));
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline int dial(int port) {
    return dial_from("127.0.0.1", port);
}

static inline bool raw_try_from(const char *source, raw_client *raw, int port) {
    raw->fd = dial_from(source, port);
    raw->context = SSL_CTX_new(TLS_client_method());
    raw->ssl = SSL_new(raw->context);
    SSL_set_fd(raw->ssl, raw->fd);
    return raw->fd >= 0 && SSL_connect(raw->ssl) == 1;
}

static inline bool raw_try(raw_client *raw, int port) {
    return raw_try_from("127.0.0.1", raw, port);
}

static inline raw_client raw_dial(int port) {
    raw_client raw;
    cr_assert(raw_try(&raw, port));
    return raw;
}

static inline bool raw_send(raw_client *raw, const char *text) {
    return SSL_write(raw->ssl, text, (int)strlen(text)) > 0;
}

/* Reads until the other side closes, or `size` is reached; appends a NUL. */
static inline size_t raw_read(raw_client *raw, char *text, size_t size) {
    size_t got = 0;
    int n;
    while (got < size - 1 && (n = SSL_read(raw->ssl, text + got, (int)(size - 1 - got))) > 0)
        got += (size_t)n;
    text[got] = 0;
    return got;
}

static inline void raw_close(raw_client *raw) {
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
    if (raw->fd >= 0)
        close(raw->fd);
}

/* Closes with a reset instead of an orderly shutdown. */
static inline void raw_reset(raw_client *raw) {
    setsockopt(raw->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    raw_close(raw);
}

/* ---- a server that misbehaves: answers a request by playing its script ---- */

typedef struct {
    const char *head;   /* sent once; NULL: not even a TLS handshake */
    const char *repeat; /* sent until the client hangs up; NULL: closes at once */
    int pause_ms;       /* before each repetition; 0: many repetitions at a time */
    bool keep;          /* plays again for the connection's next request */
} script;

typedef struct {
    identity self;
    script script;
    pthread_t thread;
    vd_endpoint at;
    int fd;
    atomic_bool stopping;
    atomic_int connections;
} rogue;

static inline int fill_flood(char *flood, size_t size, const script *play) {
    size_t length = strlen(play->repeat);
    size_t count = play->pause_ms || !length ? 1 : size / length;
    for (size_t i = 0; i < count; i++)
        memcpy(flood + i * length, play->repeat, length);
    return (int)(count * length);
}

static inline void rogue_play(rogue *r, SSL *ssl) {
    char request[4096], flood[16384];
    if (SSL_read(ssl, request, sizeof request) <= 0)
        return;
    if (*r->script.head && SSL_write(ssl, r->script.head, (int)strlen(r->script.head)) <= 0)
        return;
    int size = r->script.repeat ? fill_flood(flood, sizeof flood, &r->script) : 0;
    while (r->script.repeat && !atomic_load(&r->stopping)) {
        sleep_ms(r->script.pause_ms);
        if (size && SSL_write(ssl, flood, size) <= 0)
            return;
    }
    if (r->script.keep)
        rogue_play(r, ssl);
    else
        SSL_shutdown(ssl);
}

static inline void *rogue_main(void *user) {
    rogue *r = user;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    cr_assert(SSL_CTX_use_certificate_file(context, r->self.cert, SSL_FILETYPE_PEM) == 1);
    cr_assert(SSL_CTX_use_PrivateKey_file(context, r->self.key_file, SSL_FILETYPE_PEM) == 1);
    for (int fd; (fd = accept(r->fd, NULL, NULL)) >= 0; close(fd)) {
        atomic_fetch_add(&r->connections, 1);
        SSL *ssl = SSL_new(context);
        SSL_set_fd(ssl, fd);
        if (r->script.head && SSL_accept(ssl) == 1)
            rogue_play(r, ssl);
        while (!r->script.head && !atomic_load(&r->stopping))
            sleep_ms(10);
        SSL_free(ssl);
    }
    SSL_CTX_free(context);
    return NULL;
}

static inline void start_rogue(rogue *r, script play) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    *r = (rogue){.self = make_identity(), .script = play};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    r->fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(bind(r->fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(r->fd, 8) == 0);
    cr_assert(getsockname(r->fd, (struct sockaddr *)&at, &size) == 0);
    r->at = endpoint_at(ntohs(at.sin_port), r->self.hex);
    cr_assert(pthread_create(&r->thread, NULL, rogue_main, r) == 0);
}

static inline void stop_rogue(rogue *r) {
    atomic_store(&r->stopping, true);
    shutdown(r->fd, SHUT_RDWR); /* makes accept return */
    pthread_join(r->thread, NULL);
    close(r->fd);
    remove_identity(&r->self);
}

#endif
