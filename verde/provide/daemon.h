/* A provider's daemon: takes jobs of enrolled clients over HTTPS, and runs each in a child process.
 * PROTOCOL.md sections 8.5 to 8.7. */
#ifndef VD_DAEMON_H
#define VD_DAEMON_H

#include "verde/commit/commit.h"
#include "verde/net/net.h"
#include "verde/provide/ledger.h"

enum {
    VD_SUBMISSION_MAX = 9 << 20,     /* bytes of a submission, which names 2^17 blobs at most */
    VD_REFEREES_MAX = 16,            /* named by a submission */
    VD_ANSWERERS_MAX = 4,            /* runs about which questions are answered at once */
    VD_COLLECT_S = 60,               /* between two looks at what nobody needs */
    VD_LAST_LINES = 400,             /* bytes of what a failed job said last */
    VD_DAEMON_HELD_MAX = 48 << 20,   /* bytes of requests and responses in memory */
    VD_DAEMON_BODIES_MAX = 16 << 20, /* of bodies of clients; others wait */
};
enum { VD_REFEREE_MEASURED = -1 };

/* What a client may have, and what its jobs may take. */
typedef struct {
    int64_t client_bytes, client_blobs, client_jobs;
    int64_t client_seconds; /* of all of its jobs; 0: as many as it likes */
    int64_t job_seconds;    /* 0: likewise */
    /* A day, of computing for one referee's questions about one job; 0: likewise;
     * VD_REFEREE_MEASURED: what disputes may take, as measured by whoever computes. */
    int64_t referee_seconds;
    int64_t memory; /* bytes of a job's tensors */
    int64_t keep_s; /* for how long data is kept that no job needs */
} vd_provide_limits;

typedef struct {
    const char *dir, *listen;
    const char *cert_path, *key_path;
    const vd_key *key;
    const vd_public_key *client; /* who may send jobs */
    uint32_t client_count;
    vd_provide_limits limits;
    int jobs; /* that run at once */
    /* A job's child is this program with these arguments, its folder, and its options. NULL at the
     * end. */
    char *const *run_argv;
    char *const *answer_argv; /* likewise, to answer a referee's questions about a finished job */
    char *const *judge_argv;  /* likewise, to judge a program */
    void (*say)(const char *format, ...) VD_PRINTF(1, 2);
} vd_daemon_options;

typedef struct vd_daemon vd_daemon;

/* Opens the ledger and listens. The options are borrowed. */
VD_MUST_USE vd_status vd_daemon_create(const vd_daemon_options *options, vd_daemon **out,
                                       vd_err *err);
int vd_daemon_port(const vd_daemon *daemon);
/* Serves until vd_daemon_stop. Jobs that run then are stopped, and go on at the next start. */
VD_MUST_USE vd_status vd_daemon_run(vd_daemon *daemon, vd_err *err);
void vd_daemon_stop(vd_daemon *daemon); /* from any thread or a signal handler */
void vd_daemon_destroy(vd_daemon *daemon);

/* ---- what a job's child and the daemon tell each other by files in the job's folder ---- */

/* program         the program's canonical bytes; or of a job with many:
 * pack            its programs, and what each has for itself (exec/item_pack.h)
 * data.json       where its data tensors lie, as in the folder of a run
 * blobs/HASH      the data, as links to what was uploaded
 * run/            the run, as `verde run` writes it; in run/again a second one, for a referee
 * told/progress   one line: steps done, loss, seconds, step where this start began, prompts done
 *                 and of how many (0: the job has none)
 * told/result     two lines: run root and final state; of a job with many, its root alone
 * told/offer      what of the final state can be downloaded (delivery/offer.h); or
 * told/items      the results of all programs (delivery/item_results.h)
 * told/idle       there if a fault on purpose changed nothing
 * log             what the child said
 * answers.log     what the child said that answers referees
 * The child can read all of this, nothing beside it, and write into run/ and told/ alone. */
#define VD_JOB_PROGRAM  "program"
#define VD_JOB_PACK     "pack"
#define VD_JOB_DATA     "data.json"
#define VD_JOB_BLOBS    "blobs"
#define VD_JOB_RUN      "run"
#define VD_JOB_AGAIN    "run/again/program"
#define VD_JOB_TOLD     "told"
#define VD_JOB_PROGRESS "told/progress"
#define VD_JOB_RESULT   "told/result"
#define VD_JOB_OFFER    "told/offer"
#define VD_JOB_ITEMS    "told/items"
#define VD_JOB_IDLE     "told/idle"
#define VD_JOB_LOG      "log"
#define VD_JOB_ANSWERS  "answers.log"

#endif
