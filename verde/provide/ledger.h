/* What a provider's daemon must not forget: clients, nonces, blobs, uploads and jobs, in SQLite.
 *
 * Every function may be called from any thread. Hashes, keys and identifiers are text of 64 lower-
 * case hexadecimal digits. Files are named here and lie beside the database; nothing here opens
 * them. */
#ifndef VD_LEDGER_H
#define VD_LEDGER_H

#include "verde/base/base.h"

enum {
    VD_ID_SIZE = 65,      /* 64 digits and a NUL */
    VD_DISK_BLOCK = 4096, /* bytes of a disk that a file takes at a time */
};

/* What a file counts for: whole blocks, and one for its name, its inode and its rows here. */
static inline int64_t vd_disk_bytes(int64_t size) {
    return size / VD_DISK_BLOCK * VD_DISK_BLOCK + (size % VD_DISK_BLOCK ? 2 : 1) * VD_DISK_BLOCK;
}

typedef struct vd_ledger vd_ledger;

/* DIR/ledger.db. VD_ERR_VERSION: it was written by a later version. Another daemon that has it open
 * is VD_ERR_LOCAL. */
VD_MUST_USE vd_status vd_ledger_open(const char *dir, vd_ledger **out, vd_err *err);
void vd_ledger_close(vd_ledger *ledger); /* accepts NULL */
/* False: something failed, and nothing could be written since. Takes no lock. */
bool vd_ledger_is_fine(const vd_ledger *ledger);
/* Writes something, to find out whether it can. */
VD_MUST_USE vd_status vd_ledger_probe(vd_ledger *ledger, vd_err *err);

/* Remembers a nonce that a client has used in a request of `time`; those of requests from before
 * `since` are forgotten. VD_ERR_PEER: it was used before, or `time` is no later than that of a
 * forgotten one of this client, which `since` alone would refuse if no clock were ever set back. */
VD_MUST_USE vd_status vd_ledger_take_nonce(vd_ledger *ledger, const char *client, const char *nonce,
                                           int64_t time, int64_t since, vd_err *err);

/* ---- blobs: each client's own, though the file is shared ---- */

typedef struct {
    int64_t size;  /* -1: this client has neither brought nor begun it */
    bool complete; /* else it has begun an upload of so many bytes */
    bool on_disk;  /* some client has brought it */
} vd_blob;

VD_MUST_USE vd_status vd_ledger_find_blob(vd_ledger *ledger, const char *client, const char *hash,
                                          vd_blob *out, vd_err *err);
/* Begins an upload, and reserves its bytes; one that had been begun goes on, and has this size. */
VD_MUST_USE vd_status vd_ledger_begin_blob(vd_ledger *ledger, const char *client, const char *hash,
                                           int64_t size, int64_t now, vd_err *err);
/* All bytes have come, and hash to `hash`. The file lies where it belongs. */
VD_MUST_USE vd_status vd_ledger_end_blob(vd_ledger *ledger, const char *client, const char *hash,
                                         int64_t now, vd_err *err);
/* The upload is given up. */
VD_MUST_USE vd_status vd_ledger_drop_upload(vd_ledger *ledger, const char *client, const char *hash,
                                            vd_err *err);

/* ---- jobs ---- */

typedef enum {
    VD_JOB_QUEUED,
    VD_JOB_RUNNING,
    VD_JOB_DONE,
    VD_JOB_FAILED,
    VD_JOB_CANCELLED
} vd_job_state;
const char *vd_job_state_name(vd_job_state state);

typedef struct {
    char id[VD_ID_SIZE], client[VD_ID_SIZE];
    char program[VD_ID_SIZE];      /* blob */
    char program_hash[VD_ID_SIZE]; /* as in assignments */
    char name[128];
    vd_job_state state;
    int64_t steps, keep, memory, disk;                  /* bytes: estimated */
    int64_t created, seconds;                           /* of computing so far */
    char run_root[VD_ID_SIZE], final_state[VD_ID_SIZE]; /* empty until it is done */
    char error[512];                                    /* why it failed */
    bool cancel;                                        /* it shall stop */
    int64_t written; /* bytes that it has on the disk, as measured last */
    bool again;      /* a referee had it run a second time, which takes as much again */
} vd_job_record;

/* Accepted for good when this returns: on disk. `blob` and `referee` are lists that end in NULL.
 * One that is there already stays as it is, but if it failed or was cancelled is queued again. */
VD_MUST_USE vd_status vd_ledger_put_job(vd_ledger *ledger, const vd_job_record *job,
                                        const char *const *blob, const char *const *referee,
                                        vd_err *err);
/* *found is false if this client has no such job; `client` may be NULL: whoever's. */
VD_MUST_USE vd_status vd_ledger_get_job(vd_ledger *ledger, const char *client, const char *id,
                                        vd_job_record *out, bool *found, vd_err *err);
typedef bool (*vd_job_visitor)(void *user, const vd_job_record *job); /* false: no more */
/* A client's jobs, or everybody's (NULL), the oldest first. */
VD_MUST_USE vd_status vd_ledger_list_jobs(vd_ledger *ledger, const char *client,
                                          vd_job_visitor visit, void *user, vd_err *err);
/* State, seconds, run_root, final_state, error and written. */
VD_MUST_USE vd_status vd_ledger_set_job(vd_ledger *ledger, const vd_job_record *job, vd_err *err);
/* From queued to running. *started is false if it is not queued any more: it was cancelled, or is
 * deleted. */
VD_MUST_USE vd_status vd_ledger_start_job(vd_ledger *ledger, const char *id, bool *started,
                                          vd_err *err);
VD_MUST_USE vd_status vd_ledger_run_again(vd_ledger *ledger, const char *id, vd_err *err);
/* Bytes that all jobs that wait or run, but `except`, have still to write by their estimates. */
VD_MUST_USE vd_status vd_ledger_unwritten(vd_ledger *ledger, const char *except, int64_t *out,
                                          vd_err *err);
VD_MUST_USE vd_status vd_ledger_cancel_job(vd_ledger *ledger, const char *id, vd_err *err);
VD_MUST_USE vd_status vd_ledger_delete_job(vd_ledger *ledger, const char *id, int64_t now,
                                           vd_err *err);
/* A finished job of this program (its hash in assignments) whose submission names this referee. */
VD_MUST_USE vd_status vd_ledger_find_run(vd_ledger *ledger, const char *program_hash,
                                         const char *referee, vd_job_record *out, bool *found,
                                         vd_err *err);
/* A question of this referee about the job has this count. VD_ERR_PEER: it is not greater than
 * `*have`, that of an earlier one. */
VD_MUST_USE vd_status vd_ledger_take_count(vd_ledger *ledger, const char *id, const char *referee,
                                           int64_t count, int64_t *have, vd_err *err);
/* Microseconds of computing on a day for questions about the job, and how many there may be. If the
 * job's submission does not name this referee, nothing is kept. */
typedef struct {
    int64_t day; /* since 1970 */
    int64_t us, us_max;
} vd_charge;
VD_MUST_USE vd_status vd_ledger_charge(vd_ledger *ledger, const char *id, const char *referee,
                                       const vd_charge *charge, vd_err *err);
/* All that was charged on `out->day`, and how many there may be by what was said last; zeros:
 * nothing was. */
VD_MUST_USE vd_status vd_ledger_charged(vd_ledger *ledger, const char *id, const char *referee,
                                        vd_charge *out, vd_err *err);
/* Of the jobs that were running when the daemon ended: they are queued again. */
VD_MUST_USE vd_status vd_ledger_requeue(vd_ledger *ledger, vd_err *err);

/* ---- what a client has taken ---- */

typedef struct {
    int64_t bytes; /* of the disk: blobs, uploads as announced, jobs by their estimates, or by what
                    * they have written if that is more */
    int64_t blobs; /* and uploads */
    int64_t jobs;  /* queued or running */
    int64_t seconds; /* of computing, of deleted jobs and of judging programs too */
} vd_usage;
VD_MUST_USE vd_status vd_ledger_usage(vd_ledger *ledger, const char *client, vd_usage *out,
                                      vd_err *err);
/* Microseconds of a processor that judging one of its programs took, whatever came of it. */
VD_MUST_USE vd_status vd_ledger_charge_judging(vd_ledger *ledger, const char *client, int64_t us,
                                               vd_err *err);

/* ---- what nobody needs ---- */

/* Forgets blobs that no job needs, and uploads, both untouched since `before`. Once that is on the
 * disk, calls `drop` for each file that can go: `client` is NULL for a blob. */
typedef void (*vd_dropper)(void *user, const char *client, const char *hash);
VD_MUST_USE vd_status vd_ledger_collect(vd_ledger *ledger, int64_t before, vd_dropper drop,
                                        void *user, vd_err *err);

typedef struct {
    int64_t jobs[VD_JOB_CANCELLED + 1], blobs, blob_bytes, uploads;
} vd_ledger_totals;
VD_MUST_USE vd_status vd_ledger_count(vd_ledger *ledger, vd_ledger_totals *out, vd_err *err);

#endif
