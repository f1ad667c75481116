/* HTTP/1.1 over TLS 1.3, in bytes: a server with three workers, a client that asks many at once.
 *
 * Nothing here knows what the bytes mean. Limits and deadlines: limits.h. Both sides switch SIGPIPE
 * from its default to ignored, once, because a peer that hangs up must not kill the process. */
#ifndef VD_NET_H
#define VD_NET_H

#include <stdatomic.h>

#include "verde/base/base.h"
#include "verde/commit/commit.h"
#include "verde/net/limits.h"

/* ---- server ---- */

typedef struct vd_headers vd_headers;

typedef struct {
    const char *method, *path; /* "GET" or "POST"; the target as sent, from its first "/" on */
    const uint8_t *body;       /* NULL if empty, or if it has not come yet */
    size_t body_size;          /* of what is still to come too */
    const vd_headers *headers;
} vd_request;

/* The value of a header, its name in either case. NULL: it is not there, or more than once. */
const char *vd_request_header(const vd_request *request, const char *name);

typedef struct {
    int status;               /* 200 unless the handler sets another */
    const char *content_type; /* borrowed until the server is destroyed; NULL: octet-stream */
    vd_buf body;              /* filled by the handler, freed by the server; out of memory: 500 */
} vd_response;

/* Runs on a worker thread of its own, one request after the other, for as long as it needs. The
 * request is borrowed for the call. Those who ask take turns: whoever comes waits for one request
 * of everybody else at most, and who has more than one waiting comes after those who have one. */
typedef void (*vd_handler)(void *user, const vd_request *request, vd_response *response);

enum { VD_ASKER_SIZE = 32 };
typedef enum {
    VD_ANSWERED, /* `response` is the answer, now */
    VD_WAITS,    /* for the handler, in a turn that `asker` and the peer's address have together */
    VD_READS,    /* likewise, for the handler of reads */
    VD_LASTS,    /* for the handler of what may last long, in a turn that `asker` has by itself */
} vd_screened;
/* Judges a whole request before it may wait for a handler. It runs on the thread that serves all
 * connections, at the same time as the handlers, and must be quick. `asker` is zeros before the
 * call. */
typedef vd_screened (*vd_screen)(void *user, const vd_request *request,
                                 uint8_t asker[VD_ASKER_SIZE], vd_response *response);

typedef enum {
    VD_HEAD_REFUSED, /* `response` is the answer; the body is thrown away as it comes */
    VD_HEAD_PASSES,  /* the body may come, if there is memory for it */
    VD_HEAD_WAITS,   /* it may come when there is room (bodies_max): for who is known alone */
} vd_head_screened;
/* Judges what comes before a body, so that none is read in vain. Runs where a screen runs. What it
 * lets through is judged again, whole: it alone keeps nobody out, because it reads headers by a
 * simpler rule. */
typedef vd_head_screened (*vd_head_screen)(void *user, const vd_request *request,
                                           vd_response *response);

typedef struct {
    const char *listen;               /* "127.0.0.1:8443", "[::1]:8443"; port 0: any that is free */
    const char *cert_path, *key_path; /* PEM, as vd_key_save writes tls.crt and key.pem */
    vd_screen screen;                 /* NULL: every request waits for the handler */
    vd_head_screen head_screen;       /* NULL: every body is read */
    bool writes;                      /* PUT and DELETE too */
    /* Bytes of bodies that were VD_HEAD_WAITS and are not answered yet. Who comes with more waits,
     * and sends nothing meanwhile. 0: nobody waits. */
    size_t bodies_max;
    /* A second handler, of requests that only read files: it has a worker and a queue of its own,
     * so that they never wait for the first one, nor take its turns or its memory. */
    vd_handler read;
    vd_handler lasting; /* a third one likewise, of requests that may take a minute each */
    size_t request_max, held_max; /* these and the rest: 0 means the value of limits.h */
    size_t read_max;
    int queue_max, connection_max;
    int handshake_ms, request_ms, send_ms, idle_ms;
} vd_server_options;

typedef struct vd_server vd_server;

/* Binds and listens: from here on connections wait in the kernel's queue until vd_server_run. Bad
 * options, files or addresses are VD_ERR_USAGE; an address in use is VD_ERR_IO. */
VD_MUST_USE vd_status vd_server_create(const vd_server_options *options, vd_handler handler,
                                       void *user, vd_server **out, vd_err *err);
int vd_server_port(const vd_server *server);
/* Serves until vd_server_stop. Then a request being handled is handled to its end, but neither it
 * nor those behind it are answered. To be called once. */
VD_MUST_USE vd_status vd_server_run(vd_server *server, vd_err *err);
/* From any thread or a signal handler (async-signal-safe), before, during or after the run. */
void vd_server_stop(vd_server *server);
void vd_server_destroy(vd_server *server); /* not during the run; NULL is fine */

/* ---- client ---- */

typedef struct {
    char url[320]; /* "https://host:port" */
    bool pinned;   /* by key: the certificate's names, dates and issuer don't count then */
    vd_public_key key;
    char pin[64]; /* "sha256//..." of the key */
} vd_endpoint;

/* "https://host[:port][/][#key]": host a name, IPv4 or [IPv6] address, port 1..65535 or 443, key 64
 * lower-case hex digits of an Ed25519 public key. Anything else is VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_endpoint_parse(const char *text, vd_endpoint *out, vd_err *err);

typedef struct {
    const vd_endpoint *to;
    const char *path; /* from "/" on, without spaces or controls */
    const void *body; /* NULL: GET; else POST */
    size_t body_size;
    const char *content_type; /* of the body; NULL: application/json */
    int deadline_ms;          /* from the call to the last byte of the answer; > 0 */
    size_t answer_max;        /* 0: VD_NET_RESPONSE_MAX */
    const char *method;       /* another one, as "PUT"; NULL: as said */
    const char *header;       /* one more, as "Name: value"; NULL: none */
    /* Set by another thread: all exchanges of the call end soon, as VD_ERR_LOCAL. May be NULL. */
    const atomic_bool *stop;
    /* Another thread may read how many bytes have gone and come so far; counted on. May be NULL. */
    atomic_ullong *moved;
} vd_exchange;

/* err.status: VD_OK             the whole answer came with status 200
 *             VD_ERR_TIMEOUT    it did not, until the deadline
 *             VD_ERR_PEER       HTTP status 400, or larger than it may be
 *             VD_ERR_IO         DNS, connection, reset, certificate or pin (then it is another who
 *                               answers), another HTTP status, not HTTP
 *             VD_ERR_LOCAL, VD_ERR_USAGE   this side: memory; a malformed exchange */
typedef struct {
    vd_err err;
    int http_status; /* 0: none came */
    bool other_key;  /* not the pinned one's: it is another who answers */
    bool unknown_host;
    bool untrusted; /* without a pin: no authority that is trusted vouches for the certificate */
    vd_buf body;    /* also of other HTTP statuses, as far as it came; owned by the caller */
    uint64_t bytes_in, bytes_out; /* of HTTP, headers included */
    double seconds;
} vd_answer;

void vd_answer_free(vd_answer *answer);
/* The sentence of a failed exchange without the address that it begins with: for a line that names
 * whom it is about. */
const char *vd_answer_reason(const vd_exchange *exchange, const vd_answer *answer);

typedef struct vd_client vd_client; /* one thread at a time */

/* ca_path: certificates to trust at endpoints without a key; NULL: the system's. */
VD_MUST_USE vd_status vd_client_create(const char *ca_path, vd_client **out, vd_err *err);
void vd_client_destroy(vd_client *client);

/* Asks `count` endpoints in parallel, VD_NET_ASK_MAX at most, and returns when each has an answer
 * or an error. Fills answer[0..count). Connections are kept for the next call. No redirects, no
 * proxies, no content decoding. A request on a kept connection that the server has just closed is
 * sent again, so requests should be idempotent. */
void vd_client_ask(vd_client *client, size_t count, const vd_exchange *exchange, vd_answer *answer);

#endif
