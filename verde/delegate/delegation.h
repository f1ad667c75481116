/* A job that is handed to several providers' daemons: each gets it, runs it, and says which run
 * root it came to. Then disputes settle which one is accepted. */
#ifndef VD_DELEGATION_H
#define VD_DELEGATION_H

#include <pthread.h>

#include "verde/client/arbitrate.h"
#include "verde/client/fetching.h"
#include "verde/delivery/download.h"
#include "verde/delivery/remote.h"
#include "verde/protocol/verdict.h"
#include "verde/run/evaluation.h"

#define VD_REFUSED_RESULTS "refused.jsonl" /* in OUT: what an audit of answers does not accept */

typedef struct {
    const char *job, *out, *key_dir;
    const char *audit; /* of one provider: what is drawn, as "intervals=2,crumbs=1000"; or NULL */
    const char *url[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t urls;
    long patience_s, step_s_max, question_s;
    long deadline_s; /* for uploads and runs; 0: by what others take (delegation_wait.c) */
    bool no_challenge, force, dry;
    vd_common common;
} vd_delegate_options;

typedef enum {
    VD_ORDER_UPLOADS,
    VD_ORDER_RUNS,
    VD_ORDER_DONE,
    VD_ORDER_FAILED,
    VD_ORDER_LATE, /* it is not waited for any more */
} vd_order_state;

/* How long a provider has been silent. One that takes bytes is not. */
typedef struct {
    double asked;    /* vd_seconds(), of the first question without an answer; 0: there is none */
    char why[300];   /* it failed, and was asked again; empty: the first one is on its way */
    uint64_t moved;  /* bytes that had gone and come by then, */
    double moved_at; /* since when no more have */
} vd_silence;

/* What one provider was asked for, and has said. */
typedef struct {
    struct vd_delegation *delegation;
    uint32_t index;
    vd_client *client;
    pthread_t thread;
    bool started;
    atomic_ullong moved; /* bytes that have gone and come */
    /* Under the lock. */
    vd_order_state state;
    double took; /* seconds until it was done */
    vd_silence silence;
    double new_at;        /* vd_seconds(), when it last said something new of the job */
    uint64_t sent, found; /* bytes of all parcels; those of them that were there at `since` */
    double since;         /* vd_seconds(), of the first chunk; 0: none has been sent */
    vd_remote_job job;
    char why[600]; /* it has failed, or is late */
} vd_order;

typedef struct vd_delegation {
    const vd_delegate_options *o;
    vd_loaded loaded;
    vd_key *key;
    vd_public_key client; /* its public half */
    vd_endpoint endpoint[VD_DOWNLOAD_PROVIDERS_MAX];
    bool prompts;      /* the job has many programs, which go out in a pack */
    vd_hash program;   /* of those, the collection hash */
    vd_buf bytes;      /* of the program, or the pack */
    vd_parcel *parcel; /* this, then each data tensor, or those that all programs share */
    void **copy;       /* of those that had to be turned round */
    uint32_t copies;
    uint32_t parcel_count;
    uint64_t parcel_bytes;
    vd_buf submission;
    char id[VD_REMOTE_ID_SIZE];
    vd_order order[VD_DOWNLOAD_PROVIDERS_MAX];
    pthread_mutex_t lock;
    atomic_bool stop;         /* the orders, for trouble of this machine */
    double start;             /* vd_seconds(), of the orders */
    double slow_s;            /* what the runs take on a slow machine */
    vd_hash run_root;         /* accepted */
    vd_exit code;             /* as `verde arbitrate` */
    bool has_verdict;         /* it is written */
    bool no_verdict;          /* it has said why */
    bool answers;             /* the audit is of the run's answers, not of the run */
    long answers_count;       /* how many answers are audited; 0: all */
    json_t *audited;          /* the report of an audit, for --json; or NULL */
    vd_evaluation evaluation; /* of a job with `evaluate` */
    vd_score score;           /* if has_score */
    bool has_score;
    vd_err *err;
} vd_delegation;

/* Tells what the job would take, of this machine and of providers, whom it does not ask. */
VD_MUST_USE vd_status vd_delegation_dry_run(vd_delegation *d);
/* Loads the job and the key, and names all that is to be sent. */
VD_MUST_USE vd_status vd_delegation_prepare(vd_delegation *d);
/* Uploads, submits and waits, until each provider is done, has failed or is late, or fewer than two
 * are left; tells how far they are. */
VD_MUST_USE vd_status vd_delegation_order(vd_delegation *d);
uint32_t vd_delegation_left(const vd_delegation *d); /* who have neither failed nor are late */
/* delegation_wait.c: seconds that a run takes on a slow machine. */
double vd_delegation_slow_s(const vd_program *program);
/* Under the lock: whoever is not done by now is late, if it is time for that. */
void vd_delegation_end_wait(vd_delegation *d);
/* delegation_tell.c: how far each provider is. On a terminal a line for each in place; else a line
 * that says something new. */
typedef struct {
    vd_order_state told[VD_DOWNLOAD_PROVIDERS_MAX];
    char line[VD_DOWNLOAD_PROVIDERS_MAX][700];
    uint64_t progress[VD_DOWNLOAD_PROVIDERS_MAX]; /* what was done by then */
    int drawn;                                    /* lines on the terminal */
    double last_line;                             /* vd_seconds() */
    double silence_told[VD_DOWNLOAD_PROVIDERS_MAX];
} vd_delegation_lines;
void vd_delegation_tell(vd_delegation *d, vd_delegation_lines *lines);
void vd_delegation_text(const vd_delegation *d); /* at the end: who was not waited for; scores */
/* Has those that are done commit to their roots, and settles which one is accepted. `accepted` is
 * false if none is. The verdict is written to OUT; one that is there already counts. */
VD_MUST_USE vd_status vd_delegation_settle(vd_delegation *d, bool *accepted);
void vd_delegation_verdict(const vd_delegation *d, char path[1100]); /* OUT/verdict.json */
/* delegation_audit.c: reads d->o->audit, of one provider. VD_ERR_USAGE: it is no such list. */
VD_MUST_USE vd_status vd_delegation_audit_check(vd_delegation *d);
/* VD_ERR_USAGE: the job that was prepared has no such answers. */
VD_MUST_USE vd_status vd_delegation_audit_fits(const vd_delegation *d);
/* Audits the provider, in place of settling. Its root is accepted if it passes. */
void vd_delegation_audit(vd_delegation *d, bool *accepted);
/* Checks the answers that were delivered to OUT, and disputes one that is wrong: sets d->code.
 * Those that are refused get other names. */
void vd_delegation_answers(vd_delegation *d);
uint32_t vd_delegation_least(const vd_delegation *d); /* providers that a result needs */
/* delegation_prompts.c: packs the programs of a job with prompts into d->bytes, and names their
 * collection. The program of the last one stays loaded. */
VD_MUST_USE vd_status vd_delegation_pack(vd_delegation *d);
/* The score of the model that was delivered, if the job asks for one. A model without it is one,
 * too: what goes wrong is told in a line. */
VD_MUST_USE vd_status vd_delegation_score_open(vd_delegation *d);
void vd_delegation_score(vd_delegation *d);
json_t *vd_delegation_score_json(const vd_delegation *d); /* null: there is none */
void vd_delegation_free(vd_delegation *d);

/* delegate.c: all of it, or only what the job would take. */
vd_exit vd_delegate(vd_delegation *d);

#endif
