/* A provider's daemon: takes jobs of enrolled clients over HTTPS and runs each in a child process.
 * PROTOCOL.md sections 8.5 to 8.7. */
#ifndef VD_DAEMON_H
#define VD_DAEMON_H

#include "verde/commit/commit.h"
#include "verde/net/net.h"
#include "verde/provide/ledger.h"

enum {
    VD_SUBMISSION_MAX = 9 << 20,     /* bytes of a submission, which names up to 2^17 blobs */
    VD_REFEREES_MAX = 16,            /* keys in a submission */
    VD_ANSWERERS_MAX = 4,            /* jobs about which questions are answered at once */
    VD_COLLECT_S = 60,               /* between two collections of unneeded data */
    VD_LAST_LINES = 400,             /* bytes of a failed job's last output */
    VD_DAEMON_HELD_MAX = 48 << 20,   /* bytes of requests and responses in memory */
    VD_DAEMON_BODIES_MAX = 16 << 20, /* bytes of client bodies at once; others wait */
};
enum { VD_REFEREE_MEASURED = -1 };

/* Limits of a client, and of its jobs. */
typedef struct {
    int64_t client_bytes, client_blobs, client_jobs;
    int64_t client_seconds; /* of all its jobs; 0: unlimited */
    int64_t job_seconds;    /* 0: unlimited */
    /* Per day: computing for one referee's questions about one job. 0: unlimited;
     * VD_REFEREE_MEASURED: from what disputes are measured to take. */
    int64_t referee_seconds;
    int64_t memory; /* bytes of a job's tensors */
    int64_t keep_s; /* how long unneeded data is kept */
} vd_provide_limits;

typedef struct {
    const char *dir, *listen;
    const char *cert_path, *key_path;
    const vd_key *key;
    const vd_public_key *client; /* clients that may send jobs */
    uint32_t client_count;
    vd_provide_limits limits;
    int jobs; /* number that run at once */
    /* A job's child is started with these arguments, then the job's folder and options. Ends with
     * NULL. */
    char *const *run_argv;
    char *const *answer_argv; /* the same for a child that answers questions about a finished job */
    char *const *judge_argv;  /* the same for a child that judges a program */
    void (*say)(const char *format, ...) VD_PRINTF(1, 2);
} vd_daemon_options;

typedef struct vd_daemon vd_daemon;

/* Opens the ledger and listens. The options are borrowed. */
VD_MUST_USE vd_status vd_daemon_create(const vd_daemon_options *options, vd_daemon **out,
                                       vd_err *err);
int vd_daemon_port(const vd_daemon *daemon);
/* Serves until vd_daemon_stop. Running jobs are then stopped, and continue at the next start. */
VD_MUST_USE vd_status vd_daemon_run(vd_daemon *daemon, vd_err *err);
void vd_daemon_stop(vd_daemon *daemon); /* from any thread or a signal handler */
void vd_daemon_destroy(vd_daemon *daemon);

/* ---- files in a job's folder, by which its child and the daemon exchange data ---- */

/* program         the program's canonical bytes; of a job with many programs instead:
 * pack            its programs, and the data of each (exec/item_pack.h)
 * data.json       where its data tensors are, as in a run's folder
 * blobs/HASH      the data, as hard links to uploads
 * run/            the run, as `verde run` writes it; run/again: a second one, for a referee
 * told/progress   one line: steps done, loss, seconds, step where this start began, prompts done
 *                 and number of prompts (0: the job has none)
 * told/result     two lines: run root and final state; of a job with many programs, only its root
 * told/offer      what can be downloaded of the final state (delivery/offer.h), or
 * told/items      the results of all programs (delivery/item_results.h)
 * told/idle       exists if a deliberate fault had no effect
 * log             output of the child
 * answers.log     output of the child that answers referees
 * The child can read only these files, and write only below run/ and told/. */
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
