/* HTTP/1.1 over TLS 1.3, in bytes: a server with three workers, a client that asks many at once.
 *
 * Bodies are not interpreted here. Limits and deadlines: limits.h. Both sides ignore SIGPIPE if it
 * is at its default: a peer that hangs up must not kill the process. */
#ifndef VD_NET_H
#define VD_NET_H

#include <stdatomic.h>

#include "verde/base/base.h"
#include "verde/commit/commit.h"
#include "verde/net/limits.h"

/* ---- server ---- */

typedef struct vd_headers vd_headers;

typedef struct {
    const char *method, *path; /* "GET", ...; the target as sent, from its first "/" */
    const uint8_t *body;       /* NULL if empty or not read yet */
    size_t body_size;          /* includes what is not read yet */
    const vd_headers *headers;
} vd_request;

/* Returns a header's value, found in any case. NULL: there is none, or more than one. */
const char *vd_request_header(const vd_request *request, const char *name);

typedef struct {
    int status;               /* 200 by default */
    const char *content_type; /* borrowed until the server is destroyed; NULL: octet-stream */
    vd_buf body;              /* filled by the handler, freed by the server; out of memory: 500 */
} vd_response;

/* Runs on a worker thread, for one request at a time, without a time limit. The request is
 * borrowed. Askers take turns: a request waits for at most one request of each other asker, and
 * askers with several requests come after those with one. */
typedef void (*vd_handler)(void *user, const vd_request *request, vd_response *response);

enum { VD_ASKER_SIZE = 32 };
typedef enum {
    VD_ANSWERED, /* `response` is the answer */
    VD_WAITS,    /* for the handler; turns go by `asker` and the peer's address */
    VD_READS,    /* the same, for the second handler */
    VD_LASTS,    /* for the handler of long requests; turns go by `asker` alone */
} vd_screened;
/* Judges a complete request before it waits for a handler. Called on the thread that serves all
 * connections, so it must be quick, while handlers run. `asker` is zeroed before the call. */
typedef vd_screened (*vd_screen)(void *user, const vd_request *request,
                                 uint8_t asker[VD_ASKER_SIZE], vd_response *response);

typedef enum {
    VD_HEAD_REFUSED, /* `response` is the answer; the body is discarded */
    VD_HEAD_PASSES,  /* the body is read if there is memory for it */
    VD_HEAD_WAITS,   /* it waits for room (bodies_max): for known clients */
} vd_head_screened;
/* Judges a head before its body is read, on the same thread as a screen. A request that passes is
 * judged again when complete: this check alone is not safe, because it parses headers more
 * simply. */
typedef vd_head_screened (*vd_head_screen)(void *user, const vd_request *request,
                                           vd_response *response);

typedef struct {
    const char *listen;               /* "127.0.0.1:8443", "[::1]:8443"; port 0: any free port */
    const char *cert_path, *key_path; /* PEM, as written by vd_key_save: tls.crt and key.pem */
    vd_screen screen;                 /* NULL: every request waits for the handler */
    vd_head_screen head_screen;       /* NULL: every body is read */
    bool writes;                      /* allows PUT and DELETE */
    /* Most bytes of unanswered bodies that were VD_HEAD_WAITS: beyond that further ones are not
     * read yet. 0: no limit. */
    size_t bodies_max;
    /* A second handler, for requests that only read files. It has its own worker and queue, so
     * these never wait for the first handler, nor use its turns or memory. */
    vd_handler read;
    vd_handler lasting;           /* a third one, for requests that may take a minute */
    size_t request_max, held_max; /* from here on 0 means the value in limits.h */
    size_t read_max;
    int queue_max, connection_max;
    int handshake_ms, request_ms, send_ms, idle_ms;
} vd_server_options;

typedef struct vd_server vd_server;

/* Binds and listens: from now on connections wait in the kernel until vd_server_run. VD_ERR_USAGE:
 * bad options, files or address. VD_ERR_IO: the address is in use. */
VD_MUST_USE vd_status vd_server_create(const vd_server_options *options, vd_handler handler,
                                       void *user, vd_server **out, vd_err *err);
int vd_server_port(const vd_server *server);
/* Serves until vd_server_stop. A request that is being handled then is finished, but neither it nor
 * any that wait are answered. May be called once. */
VD_MUST_USE vd_status vd_server_run(vd_server *server, vd_err *err);
/* Async-signal-safe and thread-safe; may be called before, during or after the run. */
void vd_server_stop(vd_server *server);
void vd_server_destroy(vd_server *server); /* not during the run; accepts NULL */

/* ---- client ---- */

typedef struct {
    char url[320]; /* such as "https://host:port" */
    bool pinned;   /* by key: the certificate's names, dates and issuer are ignored */
    vd_public_key key;
    char pin[64]; /* "sha256//..." of the key, for curl */
} vd_endpoint;

/* Parses "https://host[:port][/][#key]". host: a name, IPv4 or [IPv6] address; port: 1..65535, else
 * 443; key: 64 lower-case hex digits of an Ed25519 key. VD_ERR_USAGE: malformed. */
VD_MUST_USE vd_status vd_endpoint_parse(const char *text, vd_endpoint *out, vd_err *err);

typedef struct {
    const vd_endpoint *to;
    const char *path; /* begins with "/"; no spaces or control characters */
    const void *body; /* NULL: GET; otherwise POST */
    size_t body_size;
    const char *content_type; /* of the body; NULL: application/json */
    int deadline_ms;          /* from the call to the last byte of the answer; > 0 */
    size_t answer_max;        /* 0: VD_NET_RESPONSE_MAX */
    const char *method;       /* instead of GET or POST, such as "PUT"; or NULL */
    const char *header;       /* an additional one, "Name: value"; or NULL */
    /* Set by another thread: all exchanges of the call end soon with VD_ERR_LOCAL. May be NULL. */
    const atomic_bool *stop;
    /* Counts bytes sent and received; other threads may read it. May be NULL. */
    atomic_ullong *moved;
} vd_exchange;

/* err.status: VD_OK             the whole answer came, with status 200
 *             VD_ERR_TIMEOUT    it did not before the deadline
 *             VD_ERR_PEER       HTTP status 400, or the answer is too large
 *             VD_ERR_IO         DNS, connection, reset; certificate or pin, so that somebody else
 *                               answers; another HTTP status; not HTTP
 *             VD_ERR_LOCAL, VD_ERR_USAGE   this side: memory; a malformed exchange */
typedef struct {
    vd_err err;
    int http_status; /* 0: none was received */
    bool other_key;  /* the key is not the pinned one: somebody else answers */
    bool unknown_host;
    bool untrusted;               /* no pin, and no trusted authority vouches for the certificate */
    vd_buf body;                  /* as far as received, for all statuses; the caller frees it */
    uint64_t bytes_in, bytes_out; /* of HTTP, including headers */
    double seconds;
} vd_answer;

void vd_answer_free(vd_answer *answer);
/* Returns the error's text without the address at its beginning, for lines that name the peer
 * themselves. */
const char *vd_answer_reason(const vd_exchange *exchange, const vd_answer *answer);

typedef struct vd_client vd_client; /* used by one thread at a time */

/* `ca_path`: certificates trusted at endpoints without a key; NULL: the system's. */
VD_MUST_USE vd_status vd_client_create(const char *ca_path, vd_client **out, vd_err *err);
void vd_client_destroy(vd_client *client);

/* Asks `count` endpoints in parallel, at most VD_NET_ASK_MAX, and returns when each has an answer
 * or an error, in answer[0..count). Connections are kept for the next call. Redirects, proxies and
 * content encodings are not used. A request on a kept connection that the server has just closed is
 * sent again, so requests should be idempotent. */
void vd_client_ask(vd_client *client, size_t count, const vd_exchange *exchange, vd_answer *answer);

#endif
