/* Shared by the daemon's files. */
#ifndef VD_PROVIDE_INTERNAL_H
#define VD_PROVIDE_INTERNAL_H

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "verde/protocol/signed_request.h"
#include "verde/provide/answers.h"
#include "verde/provide/confine.h"
#include "verde/provide/daemon.h"
#include "verde/provide/meter.h"
#include "verde/provide/states.h"
#include "verde/provide/trouble.h"
#include "verde/provide/uploads.h"

/* ---- queue.c: jobs in children ---- */

typedef struct {
    pid_t pid; /* 0: none */
    vd_job_record job;
    double start;     /* vd_seconds() */
    int64_t before;   /* seconds that it had taken then */
    double counted;   /* vd_seconds() when its client's seconds were looked at */
    bool ended;       /* the process is no more; the ledger is to learn so */
    bool killed;      /* it was told to stop, at `killed_at` */
    double killed_at; /* vd_seconds() */
    const char *why;  /* NULL: it was not for taking too much */
    double measured;  /* vd_seconds() when its bytes on the disk were, and */
    double pause;     /* seconds until they are again */
} vd_running;

enum { VD_RUNNING_MAX = 64 };

typedef struct {
    vd_daemon *daemon;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wake;
    bool started, stop;
    vd_running running[VD_RUNNING_MAX];
    double collected, probed; /* vd_seconds() */
} vd_queue;

VD_MUST_USE vd_status vd_queue_start(vd_queue *queue, vd_daemon *daemon, vd_err *err);
void vd_queue_wake(vd_queue *queue); /* something has changed in the ledger */
/* Stops the children, which go on at the next start. */
void vd_queue_stop(vd_queue *queue);

/* ---- job_end.c ---- */

/* Fills in state, result and error of a job whose process has ended with `status` (wait(2)). */
void vd_job_end(const vd_daemon *daemon, vd_running *running, int status, bool cancelled);

/* ---- api: authority.c, route.c, blob_requests.c, job_requests.c, submission.c, status.c ---- */

struct vd_daemon {
    vd_daemon_options options;
    vd_public_key key;
    char key_hex[VD_ID_SIZE];
    vd_ledger *ledger;
    vd_uploads uploads;
    vd_queue queue;
    vd_answers answers;
    vd_states states;
    vd_server *server;
    vd_trouble trouble;
    bool opened; /* uploads and states */
    vd_meter meter;
    atomic_llong bytes_in; /* of uploads */
};

/* What a request is about. */
typedef enum {
    VD_ROUTE_NONE, /* there is no such path */
    VD_ROUTE_HEALTH,
    VD_ROUTE_METRICS,
    VD_ROUTE_PROVIDER,
    VD_ROUTE_ASK,
    VD_ROUTE_BLOB,   /* GET, PUT */
    VD_ROUTE_JOBS,   /* GET, POST */
    VD_ROUTE_JOB,    /* GET, DELETE */
    VD_ROUTE_CANCEL, /* POST */
    VD_ROUTE_STATE,  /* GET: anything below /v1/jobs/ID/state and /v1/jobs/ID/items, and losses */
} vd_route_kind;

typedef struct {
    vd_route_kind kind;
    char id[VD_ID_SIZE]; /* of the blob or the job */
    const char *rest;    /* of the path: "/state", "/state/0/hashes", "/items/7", "/losses" */
    uint64_t size, from; /* of a chunk */
    bool is_get;         /* else PUT, POST or DELETE, as fits the path */
} vd_route;

/* False: `response` says 404 or 405. */
bool vd_route_read(const vd_request *request, vd_route *out, vd_response *response);

/* Whoever has the daemon's own key: its requests that vd_is_of_operator is true of are about
 * everybody's jobs. */
bool vd_is_operator(const vd_daemon *daemon, const vd_public_key *key);
bool vd_is_of_operator(const vd_route *route);
/* Is the request signed by an enrolled client, or the operator? False: `response` says why not. Its
 * nonce and its body are not looked at. */
bool vd_authority_judge(const vd_daemon *daemon, const vd_request *request, const vd_route *route,
                        vd_request_claim *claim, vd_response *response);
/* The rest of it. */
bool vd_authority_judge_body(vd_daemon *daemon, const vd_request *request,
                             const vd_request_claim *claim, vd_response *response);

/* Responses. */
void vd_reply(vd_response *response, int status, json_t *object); /* takes the object */
void vd_reply_error(vd_response *response, int status, const char *format, ...) VD_PRINTF(3, 4);
/* Trouble of this machine is told to whoever runs the daemon; others learn that there is some. */
void vd_reply_trouble(vd_daemon *daemon, vd_response *response, const vd_err *err);

/* Each fills `response`. `client` is a key's 64 digits; NULL, where vd_is_of_operator is true of
 * the route: the operator. */
void vd_serve_blob(vd_daemon *daemon, const char *client, const vd_route *route,
                   const vd_request *request, vd_response *response);
void vd_serve_submission(vd_daemon *daemon, const char *client, const vd_request *request,
                         vd_response *response);
void vd_serve_jobs(vd_daemon *daemon, const char *client, vd_response *response);
void vd_serve_job(vd_daemon *daemon, const char *client, const vd_route *route,
                  const vd_request *request, vd_response *response);
void vd_serve_state(vd_daemon *daemon, const char *client, const vd_route *route,
                    vd_response *response);
void vd_serve_provider(vd_daemon *daemon, vd_response *response);
void vd_serve_metrics(vd_daemon *daemon, vd_response *response);

/* What a job's child wrote last; zeros if nothing. */
typedef struct {
    long long step, resumed_at;     /* steps done; where its last start began */
    double loss, seconds;           /* since that start */
    unsigned prompts_done, prompts; /* of a job with many programs; else 0 */
} vd_job_progress;
vd_job_progress vd_read_progress(const vd_daemon *daemon, const char *id);

/* ---- written.c ---- */

/* Bytes of the disk, in whole blocks, of all files that the job's processes write. */
int64_t vd_job_written(const vd_daemon *daemon, const char *id);
/* What a job may write whose estimate is `disk`: some more, as an estimate may be wrong. */
int64_t vd_job_disk_most(int64_t disk);

/* DIR/jobs/ID, and a file in it. */
void vd_job_path(const vd_daemon *daemon, const char *id, const char *name, char path[1200]);
void vd_remove_job(const vd_daemon *daemon,
                   const char *id); /* its folder, with all that is in it */

int64_t vd_unix_time(void);

#endif
