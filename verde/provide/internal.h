/* Declarations shared by the daemon's files. */
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
    pid_t pid; /* 0: no process */
    vd_job_record job;
    double start;     /* vd_seconds() at the start of the process */
    int64_t before;   /* seconds that the job had taken by then */
    double counted;   /* vd_seconds() when its client's seconds were last counted */
    bool ended;       /* the process has ended, and the ledger must record it */
    bool killed;      /* was told to stop, at `killed_at` */
    double killed_at; /* vd_seconds() */
    const char *why;  /* the limit that it exceeded, or NULL */
    double measured;  /* vd_seconds() when its files were last measured, */
    double pause;     /* and seconds until the next time */
} vd_running;

enum { VD_RUNNING_MAX = 64 };

typedef struct {
    vd_daemon *daemon;
    pthread_t thread;
    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t wake;
    bool started, stop;
    vd_running running[VD_RUNNING_MAX];
    double collected, probed; /* vd_seconds() */
} vd_queue;

VD_MUST_USE vd_status vd_queue_start(vd_queue *queue, vd_daemon *daemon, vd_err *err);
void vd_queue_wake(vd_queue *queue); /* tells it that the ledger has changed */
/* Stops the children. Their jobs continue at the next start. */
void vd_queue_stop(vd_queue *queue);

/* ---- job_end.c ---- */

/* Fills in state, result and error of a job whose process ended with `status` (see wait(2)). */
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
    bool opened; /* `uploads` and `states` are open */
    vd_meter meter;
    atomic_llong bytes_in; /* received in uploads */
};

/* What a request is about. */
typedef enum {
    VD_ROUTE_NONE, /* the path does not exist */
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
    char id[VD_ID_SIZE]; /* a blob or a job */
    const char *rest;    /* end of the path: "/state", "/state/0/hashes", "/items/7", "/losses" */
    uint64_t size, from; /* of a blob, and where the chunk begins */
    bool is_get;         /* else it is PUT, POST or DELETE, whichever the path allows */
} vd_route;

/* Parses a request's line. False: `response` says 404 or 405. */
bool vd_route_read(const vd_request *request, vd_route *out, vd_response *response);

/* Returns true for the daemon's own key. Its requests for which vd_is_of_operator is true are about
 * everybody's jobs. */
bool vd_is_operator(const vd_daemon *daemon, const vd_public_key *key);
bool vd_is_of_operator(const vd_route *route);
/* Checks that an enrolled client, or the operator, signed the request. False: `response` says why
 * not. Nonce and body are not checked here. */
bool vd_authority_judge(const vd_daemon *daemon, const vd_request *request, const vd_route *route,
                        vd_request_claim *claim, vd_response *response);
/* Checks the nonce and the body. */
bool vd_authority_judge_body(vd_daemon *daemon, const vd_request *request,
                             const vd_request_claim *claim, vd_response *response);

/* ---- responses ---- */
void vd_reply(vd_response *response, int status, json_t *object); /* takes ownership of `object` */
void vd_reply_error(vd_response *response, int status, const char *format, ...) VD_PRINTF(3, 4);
/* Reports trouble of this machine to the operator; `response` only says that there is some. */
void vd_reply_trouble(vd_daemon *daemon, vd_response *response, const vd_err *err);

/* Each fills in `response`. `client`: 64 digits of a key; NULL, only where vd_is_of_operator is
 * true of the route: the operator. */
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

/* The last progress that a job's child wrote; zeros if none. */
typedef struct {
    long long step, resumed_at;     /* steps done; step at which its last start began */
    bool has_loss;                  /* the program reports one */
    double loss, seconds;           /* the last step's; since that start */
    unsigned prompts_done, prompts; /* of a job with many programs; else 0 */
} vd_job_progress;
vd_job_progress vd_read_progress(const vd_daemon *daemon, const char *id);

/* ---- written.c ---- */

/* Returns the bytes, in whole disk blocks, of all files that the job's processes wrote. */
int64_t vd_job_written(const vd_daemon *daemon, const char *id);
/* Returns how much a job with the estimate `disk` may write: some more, as estimates may be low. */
int64_t vd_job_disk_most(int64_t disk);

/* Writes the path of a file in DIR/jobs/ID. */
void vd_job_path(const vd_daemon *daemon, const char *id, const char *name, char path[1200]);
void vd_remove_job(const vd_daemon *daemon, const char *id); /* with everything in its folder */

int64_t vd_unix_time(void);

#endif
