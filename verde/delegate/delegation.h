/* A job that is handed to the daemons of several providers: each runs it and states its run root. A
 * dispute then settles which root is accepted. */
#ifndef VD_DELEGATION_H
#define VD_DELEGATION_H

#include <pthread.h>

#include "verde/client/arbitrate.h"
#include "verde/client/fetching.h"
#include "verde/delivery/download.h"
#include "verde/delivery/remote.h"
#include "verde/protocol/verdict.h"
#include "verde/run/evaluation.h"

#define VD_REFUSED_RESULTS "refused.jsonl" /* in OUT: answers that an audit refused */

typedef struct {
    const char *job, *out, *key_dir;
    const char *audit; /* one provider: what to draw, "intervals=2,crumbs=1000"; or NULL */
    const char *url[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t urls;
    long patience_s, step_s_max, question_s;
    long deadline_s; /* for uploads and runs; 0: see delegation_wait.c */
    bool no_challenge, force, dry;
    vd_common common;
} vd_delegate_options;

typedef enum {
    VD_ORDER_UPLOADS,
    VD_ORDER_RUNS,
    VD_ORDER_DONE,
    VD_ORDER_FAILED,
    VD_ORDER_LATE, /* it is not waited for any longer */
} vd_order_state;

/* How long a provider has been silent. One to or from which bytes still move is not silent. */
typedef struct {
    double asked;    /* vd_seconds() of the first question without an answer; 0: none */
    char why[300];   /* the last trouble; empty: the first try is under way */
    uint64_t moved;  /* bytes sent and received at the last look, */
    double moved_at; /* and vd_seconds() when that number last grew */
} vd_silence;

/* What one provider was asked, and what it has answered. */
typedef struct {
    struct vd_delegation *delegation;
    uint32_t index;
    vd_client *client;
    pthread_t thread;
    bool started;
    atomic_ullong moved; /* bytes sent and received */
    /* The lock protects the following. */
    vd_order_state state;
    double took; /* seconds until it had finished */
    vd_silence silence;
    double new_at;        /* vd_seconds() when it last said something new about the job */
    uint64_t sent, found; /* bytes of all parcels that it has; that it had at `since` */
    double since;         /* vd_seconds() of the first chunk; 0: none was sent */
    vd_remote_job job;
    char why[600]; /* why it has failed or is late */
} vd_order;

typedef struct vd_delegation {
    const vd_delegate_options *o;
    vd_loaded loaded;
    vd_key *key;
    vd_public_key client; /* public half of `key` */
    vd_endpoint endpoint[VD_DOWNLOAD_PROVIDERS_MAX];
    bool prompts;      /* the job has many programs, which are sent as a pack */
    vd_hash program;   /* its hash, or the collection hash */
    vd_buf bytes;      /* the program, or the pack */
    vd_parcel *parcel; /* `bytes`, then each data tensor (of a pack, the shared ones) */
    void **copy;       /* of data tensors whose bytes had to be swapped */
    uint32_t copies;
    uint32_t parcel_count;
    uint64_t parcel_bytes;
    vd_buf submission;
    char id[VD_REMOTE_ID_SIZE];
    vd_order order[VD_DOWNLOAD_PROVIDERS_MAX];
    pthread_mutex_t lock;
    atomic_bool stop;         /* stops all orders after trouble of this machine */
    double start;             /* vd_seconds() when the orders began */
    double slow_s;            /* estimated seconds of the run on a slow machine */
    vd_hash run_root;         /* the accepted one */
    vd_exit code;             /* as of `verde arbitrate` */
    bool has_verdict;         /* the verdict is written */
    bool no_verdict;          /* there is no verdict, and the reason was printed */
    bool answers;             /* the audit is of the answers, not of the run */
    long answers_count;       /* number of answers to audit; 0: all */
    json_t *audited;          /* the report of an audit, for --json; or NULL */
    vd_evaluation evaluation; /* of a job with `evaluate` */
    vd_score score;           /* set if has_score */
    bool has_score;
    vd_err *err;
} vd_delegation;

/* Prints what the job would take here and at providers, without asking any. */
VD_MUST_USE vd_status vd_delegation_dry_run(vd_delegation *d);
/* Loads job and key, and computes the hashes of everything to be sent. */
VD_MUST_USE vd_status vd_delegation_prepare(vd_delegation *d);
/* Uploads, submits and waits until each provider is done, has failed or is late, or until fewer
 * than two are left. Prints the progress. */
VD_MUST_USE vd_status vd_delegation_order(vd_delegation *d);
uint32_t vd_delegation_left(const vd_delegation *d); /* how many are neither failed nor late */
/* delegation_wait.c: returns the seconds that a run takes on a slow machine. */
double vd_delegation_slow_s(const vd_program *program);
/* Makes providers late that are not done in time. The lock is held. */
void vd_delegation_end_wait(vd_delegation *d);
/* delegation_tell.c: prints each provider's progress. On a terminal each has a line in place;
 * otherwise a line is printed when it has something new. */
typedef struct {
    vd_order_state told[VD_DOWNLOAD_PROVIDERS_MAX];
    char line[VD_DOWNLOAD_PROVIDERS_MAX][700];
    uint64_t progress[VD_DOWNLOAD_PROVIDERS_MAX]; /* bytes and steps when last printed */
    int drawn;                                    /* number of lines on the terminal */
    double last_line;                             /* vd_seconds() */
    double silence_told[VD_DOWNLOAD_PROVIDERS_MAX];
} vd_delegation_lines;
void vd_delegation_tell(vd_delegation *d, vd_delegation_lines *lines);
void vd_delegation_text(const vd_delegation *d); /* at the end: who was late, and scores */
/* Lets the finished providers commit to their roots, and settles which is accepted. *accepted
 * becomes false if none is. Writes the verdict to OUT, or takes one that is already there. */
VD_MUST_USE vd_status vd_delegation_settle(vd_delegation *d, bool *accepted);
void vd_delegation_verdict(const vd_delegation *d, char path[1100]); /* path of OUT/verdict.json */
/* delegation_audit.c: parses d->o->audit, of a single provider. VD_ERR_USAGE: it is malformed. */
VD_MUST_USE vd_status vd_delegation_audit_check(vd_delegation *d);
/* Checks that the loaded job can be audited in this way, or VD_ERR_USAGE. */
VD_MUST_USE vd_status vd_delegation_audit_fits(const vd_delegation *d);
/* Audits the only provider instead of settling. Its root is accepted if it passes. */
void vd_delegation_audit(vd_delegation *d, bool *accepted);
/* Audits the answers downloaded to OUT, and disputes one that is wrong; sets d->code. Refused
 * answers are renamed. */
void vd_delegation_answers(vd_delegation *d);
uint32_t vd_delegation_least(const vd_delegation *d); /* providers that a result needs */
/* delegation_prompts.c: packs the programs of a job with prompts into d->bytes, and computes the
 * collection hash. The last program stays loaded. */
VD_MUST_USE vd_status vd_delegation_pack(vd_delegation *d);
/* Scores the delivered model if the job asks for it. Without a score the model is still valid:
 * trouble only prints a line. */
VD_MUST_USE vd_status vd_delegation_score_open(vd_delegation *d);
void vd_delegation_score(vd_delegation *d);
json_t *vd_delegation_score_json(const vd_delegation *d); /* null: no score */
void vd_delegation_free(vd_delegation *d);

/* delegate.c: runs the whole course, or with `dry` only estimates. */
vd_exit vd_delegate(vd_delegation *d);

#endif
