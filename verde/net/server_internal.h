/* Declarations shared by the server's files. Everything but the workers' queues belongs to the
 * thread that runs the event loop. */
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

/* Turns go by asker: the name from the screen, and the address (of IPv6, its first 64 bits). */
typedef struct {
    uint8_t b[16];
} vd_address;

typedef struct {
    uint8_t name[VD_ASKER_SIZE];
    vd_address address;
} vd_asker;

/* ---- turns.c: waiting jobs ---- */

/* The worker that a job is for. */
typedef enum { VD_LANE_HANDLER, VD_LANE_READ, VD_LANE_LASTING, VD_LANES } vd_lane;

struct vd_job {
    vd_job *next;
    vd_lane lane;
    struct evhttp_request *http;
    vd_conn *conn; /* NULL: the client has gone. Only used by the loop's thread */
    vd_asker asker;
    uint64_t turn; /* the job with the smallest is next */
    vd_request request;
    vd_headers headers;
    vd_response response;
};

typedef struct {
    vd_job *first;
    int count;
    uint64_t turn; /* the last number given */
} vd_job_queue;

void vd_jobs_append(vd_job_queue *queue, vd_job *job);
vd_job *vd_jobs_take(vd_job_queue *queue);                 /* the next job, or NULL */
void vd_jobs_done(vd_job_queue *queue, const vd_job *job); /* a job taken from this queue is done */
bool vd_jobs_remove(vd_job_queue *queue, vd_job *job);
/* Inserts a job if it finds a place. Returns the job that gets none: this one, or the last job of
 * an asker that has more of them; NULL: all have places. */
vd_job *vd_jobs_insert(vd_job_queue *queue, vd_job *job, int queue_max);

/* ---- worker.c: a thread with a queue for jobs and one for finished jobs ---- */

typedef struct {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    vd_job_queue waiting, done; /* protected by `lock` */
    bool running, quit;
    int queue_max;
    vd_handler handler;
    void *user;
    int wake_fd; /* gets a byte for each finished job */
} vd_worker;

VD_MUST_USE vd_status vd_worker_init(vd_worker *worker, vd_err *err);
VD_MUST_USE vd_status vd_worker_start(vd_worker *worker, vd_err *err);
void vd_worker_stop(vd_worker *worker); /* finishes the current job; idempotent */
void vd_worker_release(vd_worker *worker, void (*drop)(vd_job *job));
vd_job *vd_worker_put(vd_worker *worker, vd_job *job);  /* see vd_jobs_insert */
vd_job *vd_worker_take_done(vd_worker *worker);         /* NULL: none */
void vd_worker_abandon(vd_worker *worker, vd_job *job); /* a waiting job is done, unrun */

/* ---- connection.c: what evhttp does not limit: complete requests, memory, connections ---- */

typedef enum {
    VD_CONN_IDLE,      /* before a request's first byte */
    VD_CONN_RECEIVING, /* until its last byte, or until evhttp's refusal was sent */
    VD_CONN_PARKED,    /* the head has passed; the body waits for room */
    VD_CONN_HANDLING,  /* a worker has the request */
    VD_CONN_SENDING,
    VD_CONN_CUT,
} vd_conn_state;

struct vd_conn {
    vd_server *server;
    struct bufferevent *bev;
    vd_conn_state state;
    double since;    /* vd_seconds() when it entered this state */
    double deadline; /* vd_seconds() at which it is cut */
    size_t received; /* bytes received in this state */
    size_t held;     /* bytes of request and response in memory; part of server->held */
    size_t reads;    /* of these, bytes of a VD_LANE_READ response; part of server->reads */
    vd_address address;
    bool has_address; /* set later: evhttp assigns the socket after creating the connection */
    vd_job *job;      /* while VD_CONN_HANDLING */
    /* only with a head screen: */
    bool editing;     /* the input is being changed by us */
    bool judged;      /* the head of this request has passed or was refused */
    bool refused;     /* refused: `early` is the answer */
    uint64_t discard; /* bytes of the refused body still to come */
    vd_buf head;      /* withheld until complete; PARKED: with the bytes after it */
    size_t wants;     /* PARKED: size of its body */
    size_t promised;  /* size of an accepted body; part of server->promised */
    vd_response early;
    vd_conn *next, **link;
};

/* Called when bytes arrive, before evhttp sees them: judges the head of a request with a body, once
 * complete. False: out of memory, and the rest of the input is useless. */
bool vd_conn_judge_head(vd_conn *conn, struct evbuffer *input);

/* evhttp's callback for a new connection: sets up TLS and a deadline, and lists it. */
struct bufferevent *vd_conn_accept(struct event_base *base, void *server);
vd_conn *vd_conn_of(struct evhttp_request *http); /* NULL: not one of ours */
void vd_conn_hold(vd_conn *conn, size_t bytes);
void vd_conn_release(vd_conn *conn, size_t bytes);
bool vd_conn_make_memory(vd_server *server, size_t size); /* false: not enough memory */
void vd_conn_keep_input(vd_conn *conn); /* of `held`, keeps only the unread input */
/* Counts a response of VD_LANE_READ until it is sent or the connection closed. False: together with
 * the others it is too much. */
VD_MUST_USE bool vd_conn_hold_reads(vd_conn *conn, size_t bytes);
void vd_conn_enter(vd_conn *conn, vd_conn_state state);
const vd_address *vd_conn_address(vd_conn *conn);
void vd_conn_sweep(vd_server *server); /* closes late, dead and surplus ones */
VD_MUST_USE bool vd_conn_setup(void);  /* once per process */

/* Keeps the bytes that a parked connection has sent. */
void vd_conn_keep_parked(vd_conn *conn, struct evbuffer *input);
/* The body is not in memory any more: its promise ends. */
void vd_conn_fulfil(vd_conn *conn);
/* Lets in parked connections while there is room, the longest waiting first. */
void vd_conn_unpark(vd_server *server);

/* ---- request.c ---- */

void vd_request_arrived(struct evhttp_request *http, void *server); /* evhttp's callback */
void vd_request_answer(vd_job *job);                                /* owns the job */
void vd_request_drop(vd_job *job);                                  /* owns the job; no answer */

/* ---- server.c, listen.c ---- */

struct vd_server {
    vd_server_options options; /* with all defaults filled in */
    SSL_CTX *tls;
    struct event_base *base;
    struct evhttp *http;
    struct evconnlistener *listener; /* owned by http */
    struct event *wake, *sweep;
    int wake_pipe[2];
    atomic_bool stopping;
    int port;
    vd_conn *conns;
    int conn_count; /* including those cut but not freed yet */
    size_t held, reads, promised;
    void *user; /* passed to handlers and screens */
    vd_worker worker[VD_LANES];
};

VD_MUST_USE vd_status vd_tls_create(const char *cert_path, const char *key_path, SSL_CTX **out,
                                    vd_err *err);
/* Listens on "ADDR:PORT" or "[IPv6]:PORT". *port becomes the bound one. */
VD_MUST_USE vd_status vd_listen(struct event_base *base, const char *address,
                                struct evconnlistener **out, int *port, vd_err *err);

#endif
