/* Shared by the server's files. Everything but the worker's queue belongs to the thread that runs
 * the event loop. */
#ifndef VD_NET_SERVER_INTERNAL_H
#define VD_NET_SERVER_INTERNAL_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "verde/net/headers.h"
#include "verde/net/net.h"

typedef struct vd_conn vd_conn;
typedef struct vd_job vd_job;

/* Whose turn it is: what the screen said, and the address (of IPv6, the network of 64 bits). */
typedef struct {
    uint8_t b[16];
} vd_address;

typedef struct {
    uint8_t name[VD_ASKER_SIZE];
    vd_address address;
} vd_asker;

/* ---- turns.c: jobs that wait ---- */

/* Which worker a job is for. */
typedef enum { VD_LANE_HANDLER, VD_LANE_READ, VD_LANE_LASTING, VD_LANES } vd_lane;

struct vd_job {
    vd_job *next;
    vd_lane lane;
    struct evhttp_request *http;
    vd_conn *conn; /* NULL: the client has gone; loop thread only */
    vd_asker asker;
    uint64_t turn; /* the smallest comes first */
    vd_request request;
    vd_headers headers;
    vd_response response;
};

typedef struct {
    vd_job *first;
    int count;
    uint64_t turn; /* the last one given */
} vd_job_queue;

void vd_jobs_append(vd_job_queue *queue, vd_job *job);
vd_job *vd_jobs_take(vd_job_queue *queue);                 /* whose turn it is; NULL: none waits */
void vd_jobs_done(vd_job_queue *queue, const vd_job *job); /* one that was taken from this queue */
bool vd_jobs_remove(vd_job_queue *queue, vd_job *job);
/* Returns who finds no place: this job, or the last one of an asker who has more of them. NULL: all
 * do. */
vd_job *vd_jobs_insert(vd_job_queue *queue, vd_job *job, int queue_max);

/* ---- worker.c: one thread, a queue in, a queue out ---- */

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    vd_job_queue waiting, done; /* under the lock */
    bool running, quit;
    int queue_max;
    vd_handler handler;
    void *user;
    int wake_fd; /* receives a byte when a job is done */
} vd_worker;

VD_MUST_USE vd_status vd_worker_init(vd_worker *worker, vd_err *err);
VD_MUST_USE vd_status vd_worker_start(vd_worker *worker, vd_err *err);
void vd_worker_stop(vd_worker *worker); /* after the job at hand; idempotent */
void vd_worker_release(vd_worker *worker, void (*drop)(vd_job *job));
vd_job *vd_worker_put(vd_worker *worker, vd_job *job);  /* who finds no place; NULL: all do */
vd_job *vd_worker_take_done(vd_worker *worker);         /* NULL: none */
void vd_worker_abandon(vd_worker *worker, vd_job *job); /* don't start it; it comes back as done */

/* ---- connection.c: what evhttp does not watch: whole requests, memory, number ---- */

typedef enum {
    VD_CONN_IDLE,      /* before the first byte of a request */
    VD_CONN_RECEIVING, /* until its last byte, or evhttp's own refusal was sent */
    VD_CONN_PARKED,    /* its head has passed, and its body waits for room */
    VD_CONN_HANDLING,  /* with the worker */
    VD_CONN_SENDING,
    VD_CONN_CUT,
} vd_conn_state;

struct vd_conn {
    vd_server *server;
    struct bufferevent *bev;
    vd_conn_state state;
    double since;    /* vd_seconds() when it came into this state */
    double deadline; /* vd_seconds() when it is cut */
    size_t received; /* bytes, in this state */
    size_t held;     /* bytes of request and response in memory, counted in the server's */
    size_t reads;    /* those of them that a response of VD_LANE_READ has */
    vd_address address;
    bool has_address; /* evhttp gives the socket to a connection after it was made */
    vd_job *job;      /* while HANDLING */
    /* With a screen of heads: */
    bool editing;     /* the input is changed by us */
    bool judged;      /* the head of this request has passed, or was refused */
    bool refused;     /* `early` is the answer */
    uint64_t discard; /* bytes of a refused body that are still to come */
    vd_buf head;      /* kept from evhttp until it is whole; PARKED: and what followed it */
    size_t wants;     /* PARKED: bytes of its body */
    size_t promised;  /* bytes of a body that has passed, counted in the server's */
    vd_response early;
    vd_conn *next, **link;
};

/* To be called as bytes come, before evhttp sees them: judges the head of a request that has a
 * body, once it is whole. False: there was no memory for it, and what comes now makes no sense. */
bool vd_conn_judge_head(vd_conn *conn, struct evbuffer *input);

/* evhttp's callback for a new connection: TLS, a deadline, a place in the server's list. */
struct bufferevent *vd_conn_accept(struct event_base *base, void *server);
vd_conn *vd_conn_of(struct evhttp_request *http); /* NULL: not a connection of ours */
void vd_conn_hold(vd_conn *conn, size_t bytes);
void vd_conn_release(vd_conn *conn, size_t bytes);
bool vd_conn_make_memory(vd_server *server, size_t size); /* false: there is not so much */
void vd_conn_keep_input(vd_conn *conn); /* of what is held only the input not yet taken */
/* Counts what a read sends, until the response is sent or the connection gone. false: too much,
 * with what other reads send. */
VD_MUST_USE bool vd_conn_hold_reads(vd_conn *conn, size_t bytes);
void vd_conn_enter(vd_conn *conn, vd_conn_state state);
const vd_address *vd_conn_address(vd_conn *conn);
void vd_conn_sweep(vd_server *server); /* cuts what is late, gone or too much */
VD_MUST_USE bool vd_conn_setup(void);  /* once a process */

/* Bytes that a parked connection had sent before it stopped. */
void vd_conn_keep_parked(vd_conn *conn, struct evbuffer *input);
/* The body is no longer in memory. */
void vd_conn_fulfil(vd_conn *conn);
/* Lets in who waits for room, who came first before others. */
void vd_conn_unpark(vd_server *server);

/* ---- request.c ---- */

void vd_request_arrived(struct evhttp_request *http, void *server); /* evhttp's callback */
void vd_request_answer(vd_job *job);                                /* takes the job */
void vd_request_drop(vd_job *job);                                  /* takes the job, no answer */

/* ---- server.c, listen.c ---- */

struct vd_server {
    vd_server_options options; /* with every default filled in */
    SSL_CTX *tls;
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener; /* owned by http */
    struct event *wake, *sweep;
    int wake_pipe[2];
    atomic_bool stopping;
    int port;
    vd_conn *conns;
    int conn_count; /* those cut, but not yet gone, included */
    size_t held, reads, promised;
    void *user; /* of the handlers and the screen */
    vd_worker worker[VD_LANES];
};

VD_MUST_USE vd_status vd_tls_create(const char *cert_path, const char *key_path, SSL_CTX **out,
                                    vd_err *err);
/* "ADDR:PORT" or "[IPv6]:PORT"; port receives the one that is bound. */
VD_MUST_USE vd_status vd_listen(struct event_base *base, const char *address,
                                struct evconnlistener **out, int *port, vd_err *err);

#endif
