/* The persistent records of a provider's daemon, in SQLite: clients, nonces, blobs, uploads, jobs.
 *
 * All functions are thread-safe. Hashes, keys and identifiers are texts of 64 lower-case
 * hexadecimal digits. Files are named here and lie beside the database; nothing here opens them. */
#ifndef VD_LEDGER_H
#define VD_LEDGER_H

#include "verde/base/base.h"

enum {
    VD_ID_SIZE = 65,      /* 64 digits and a NUL */
    VD_DISK_BLOCK = 4096, /* bytes by which a file's disk space grows */
};

/* Returns the disk space counted for a file: whole blocks, and one for its name, inode and rows. */
static inline int64_t vd_disk_bytes(int64_t size) {
    return size / VD_DISK_BLOCK * VD_DISK_BLOCK + (size % VD_DISK_BLOCK ? 2 : 1) * VD_DISK_BLOCK;
}

typedef struct vd_ledger vd_ledger;

/* Opens DIR/ledger.db. VD_ERR_VERSION: a later version wrote it. VD_ERR_LOCAL also if another
 * daemon has it open. */
VD_MUST_USE vd_status vd_ledger_open(const char *dir, vd_ledger **out, vd_err *err);
void vd_ledger_close(vd_ledger *ledger); /* accepts NULL */
/* Returns false if a write has failed and none has succeeded since. Takes no lock. */
bool vd_ledger_is_fine(const vd_ledger *ledger);
/* Writes something, to find out whether that is possible. */
VD_MUST_USE vd_status vd_ledger_probe(vd_ledger *ledger, vd_err *err);

/* Records a nonce of a client's request made at `time`, and forgets those from before `since`.
 * VD_ERR_PEER: the nonce was used before, or `time` is not after the client's latest forgotten one:
 * that alone refuses a repetition if a clock was set back. */
VD_MUST_USE vd_status vd_ledger_take_nonce(vd_ledger *ledger, const char *client, const char *nonce,
                                           int64_t time, int64_t since, vd_err *err);

/* ---- blobs: recorded for each client, though clients share a file ---- */

typedef struct {
    int64_t size;  /* -1: the client has neither uploaded nor begun it */
    bool complete; /* false: the client has begun an upload */
    bool on_disk;  /* some client has uploaded it */
} vd_blob;

VD_MUST_USE vd_status vd_ledger_find_blob(vd_ledger *ledger, const char *client, const char *hash,
                                          vd_blob *out, vd_err *err);
/* Begins an upload and reserves its bytes. One that has been begun continues, with this size. */
VD_MUST_USE vd_status vd_ledger_begin_blob(vd_ledger *ledger, const char *client, const char *hash,
                                           int64_t size, int64_t now, vd_err *err);
/* Completes an upload: its bytes have this hash, and the file is in its place. */
VD_MUST_USE vd_status vd_ledger_end_blob(vd_ledger *ledger, const char *client, const char *hash,
                                         int64_t now, vd_err *err);
/* Gives up an upload. */
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
    char program_hash[VD_ID_SIZE]; /* hash in assignments */
    char name[128];
    vd_job_state state;
    int64_t steps, keep, memory, disk;                  /* bytes, estimated */
    int64_t created, seconds;                           /* seconds of computing so far */
    char run_root[VD_ID_SIZE], final_state[VD_ID_SIZE]; /* empty until done */
    char error[512];                                    /* why it failed */
    bool cancel;                                        /* it has been asked to stop */
    int64_t written;                                    /* bytes on the disk, when last measured */
    bool again; /* a referee caused a second run, as large as the first */
} vd_job_record;

/* Accepts a job; it is on disk when this returns. `blob` and `referee` end with NULL. If the job
 * exists, it stays as it is, but is queued again if it failed or was cancelled. */
VD_MUST_USE vd_status vd_ledger_put_job(vd_ledger *ledger, const vd_job_record *job,
                                        const char *const *blob, const char *const *referee,
                                        vd_err *err);
/* Finds a client's job, or anybody's (NULL). *found becomes false if there is none. */
VD_MUST_USE vd_status vd_ledger_get_job(vd_ledger *ledger, const char *client, const char *id,
                                        vd_job_record *out, bool *found, vd_err *err);
typedef bool (*vd_job_visitor)(void *user, const vd_job_record *job); /* false: stop */
/* Visits the jobs of a client, or of all (NULL), oldest first. */
VD_MUST_USE vd_status vd_ledger_list_jobs(vd_ledger *ledger, const char *client,
                                          vd_job_visitor visit, void *user, vd_err *err);
/* Stores state, seconds, run_root, final_state, error and written. */
VD_MUST_USE vd_status vd_ledger_set_job(vd_ledger *ledger, const vd_job_record *job, vd_err *err);
/* Sets a queued job running. *started becomes false if it is not queued any more, but was cancelled
 * or deleted. */
VD_MUST_USE vd_status vd_ledger_start_job(vd_ledger *ledger, const char *id, bool *started,
                                          vd_err *err);
VD_MUST_USE vd_status vd_ledger_run_again(vd_ledger *ledger, const char *id, vd_err *err);
/* Returns the bytes that all waiting and running jobs but `except` are estimated to write yet. */
VD_MUST_USE vd_status vd_ledger_unwritten(vd_ledger *ledger, const char *except, int64_t *out,
                                          vd_err *err);
VD_MUST_USE vd_status vd_ledger_cancel_job(vd_ledger *ledger, const char *id, vd_err *err);
VD_MUST_USE vd_status vd_ledger_delete_job(vd_ledger *ledger, const char *id, int64_t now,
                                           vd_err *err);
/* Finds a finished job of this program (its hash in assignments) that names this referee. */
VD_MUST_USE vd_status vd_ledger_find_run(vd_ledger *ledger, const char *program_hash,
                                         const char *referee, vd_job_record *out, bool *found,
                                         vd_err *err);
/* Stores the count of a referee's question about the job. VD_ERR_PEER: it is not greater than the
 * last one, *have. */
VD_MUST_USE vd_status vd_ledger_take_count(vd_ledger *ledger, const char *id, const char *referee,
                                           int64_t count, int64_t *have, vd_err *err);
/* Microseconds of computing on a day for a referee's questions about a job, and the limit. Nothing
 * is stored for a referee that the job does not name. */
typedef struct {
    int64_t day; /* days since 1970 */
    int64_t us, us_max;
} vd_charge;
VD_MUST_USE vd_status vd_ledger_charge(vd_ledger *ledger, const char *id, const char *referee,
                                       const vd_charge *charge, vd_err *err);
/* Returns what was charged on out->day and the last limit stated; zeros: nothing was charged. */
VD_MUST_USE vd_status vd_ledger_charged(vd_ledger *ledger, const char *id, const char *referee,
                                        vd_charge *out, vd_err *err);
/* Queues the jobs again that were running when the daemon ended. */
VD_MUST_USE vd_status vd_ledger_requeue(vd_ledger *ledger, vd_err *err);

/* ---- usage of a client ---- */

typedef struct {
    int64_t bytes;   /* disk: blobs, whole uploads, jobs (as estimated or written) */
    int64_t blobs;   /* including uploads */
    int64_t jobs;    /* queued or running */
    int64_t seconds; /* computing, including deleted jobs and judging */
} vd_usage;
VD_MUST_USE vd_status vd_ledger_usage(vd_ledger *ledger, const char *client, vd_usage *out,
                                      vd_err *err);
/* Charges the processor time, in microseconds, of judging one of the client's programs. */
VD_MUST_USE vd_status vd_ledger_charge_judging(vd_ledger *ledger, const char *client, int64_t us,
                                               vd_err *err);

/* ---- collecting unneeded data ---- */

/* Forgets uploads, and blobs that no job needs, that were not touched since `before`. Once that is
 * on disk, calls `drop` for each file to delete; `client` is NULL for a blob. */
typedef void (*vd_dropper)(void *user, const char *client, const char *hash);
VD_MUST_USE vd_status vd_ledger_collect(vd_ledger *ledger, int64_t before, vd_dropper drop,
                                        void *user, vd_err *err);

typedef struct {
    int64_t jobs[VD_JOB_CANCELLED + 1], blobs, blob_bytes, uploads;
} vd_ledger_totals;
VD_MUST_USE vd_status vd_ledger_count(vd_ledger *ledger, vd_ledger_totals *out, vd_err *err);

#endif
