/* A provider's daemon as its client sees it: uploads blobs, starts a job, and asks for its progress
 * (PROTOCOL.md sections 8.5 and 8.7). Connection trouble is retried: a daemon may be starting.
 *
 * VD_ERR_PEER: it refuses, and says why. VD_ERR_IO: it does not answer. VD_ERR_TIMEOUT: `stop` was
 * set. VD_ERR_LOCAL: out of memory. The error's text names the provider. */
#ifndef VD_REMOTE_H
#define VD_REMOTE_H

#include "verde/net/net.h"

enum {
    VD_REMOTE_CHUNK_BYTES = 4 << 20, /* per request of an upload */
    VD_REMOTE_DEADLINE_MS = 60000,   /* per request */
    VD_REMOTE_RETRY_MS = 500,
};

typedef enum {
    VD_REMOTE_ASKS,     /* a question is sent, for the first time or again */
    VD_REMOTE_ANSWERED, /* it has an answer */
    VD_REMOTE_TROUBLE,  /* it has none, and will be asked again */
} vd_remote_news;

/* Used by one thread at a time. */
typedef struct {
    const vd_endpoint *at; /* includes its key */
    const vd_key *key;     /* the client's */
    vd_client *client;
    int patience_s;          /* how long trouble may last */
    const atomic_bool *stop; /* set by other threads; may be NULL */
    atomic_ullong *moved;    /* counts bytes sent and received; may be NULL */
    /* Reports the fate of questions, on the asking thread; `why` only of trouble. May be NULL. */
    void (*news)(void *user, vd_remote_news news, const char *why);
    void *user;
} vd_remote;

/* Bytes to upload and their SHA-256. They may be those of a mapped file of any size: pages are
 * released once sent. On a big-endian machine they must already be little-endian. */
typedef struct {
    vd_hash hash;
    const uint8_t *bytes;
    uint64_t size;
} vd_parcel;

/* Uploads what the provider does not have. `sent` is called with the number of bytes there, first
 * before any chunk, then after each; may be NULL. */
VD_MUST_USE vd_status vd_remote_upload(const vd_remote *remote, const vd_parcel *parcel,
                                       void (*sent)(void *user, uint64_t have), void *user,
                                       vd_err *err);

/* Submits a job; repeating it names the same job. `submission` is canonical JSON. */
enum { VD_REMOTE_ID_SIZE = 2 * VD_HASH_SIZE + 1 };
VD_MUST_USE vd_status vd_remote_submit(const vd_remote *remote, const vd_buf *submission,
                                       char id[VD_REMOTE_ID_SIZE], vd_err *err);

typedef enum {
    VD_REMOTE_QUEUED,
    VD_REMOTE_RUNNING,
    VD_REMOTE_DONE,
    VD_REMOTE_FAILED,
    VD_REMOTE_CANCELLED,
} vd_remote_state;
const char *vd_remote_state_name(vd_remote_state state); /* "queued", ... */

/* What the provider says of a job; none of it is proven. */
typedef struct {
    vd_remote_state state;
    int64_t step, steps;
    int64_t prompts, prompts_done;   /* of a job with prompts; else 0 */
    double loss, rate, seconds_left; /* `rate`: steps a second; NaN: not stated */
    vd_hash run_root;                /* if the job is done */
    char error[300];                 /* if the job failed; printable */
} vd_remote_job;

VD_MUST_USE vd_status vd_remote_ask_job(const vd_remote *remote, const char *id, vd_remote_job *out,
                                        vd_err *err);

/* A job in a list. All texts are printable. */
typedef struct {
    char id[VD_REMOTE_ID_SIZE], name[128];
    char client[VD_REMOTE_ID_SIZE]; /* its client, if the operator asks; else empty */
    int64_t created, seconds;       /* seconds since 1970; seconds of computing */
    vd_remote_job job;
} vd_remote_entry;

/* Lists the client's jobs, or everybody's if the key is the provider's own, oldest first. The
 * caller frees *out. */
VD_MUST_USE vd_status vd_remote_list_jobs(const vd_remote *remote, vd_remote_entry **out,
                                          uint32_t *count, vd_err *err);
/* Asks for a job to be stopped, which may take a moment. VD_ERR_PEER: it has already ended. */
VD_MUST_USE vd_status vd_remote_cancel_job(const vd_remote *remote, const char *id, vd_err *err);
/* Deletes a job with all its files. VD_ERR_PEER: it has not ended. */
VD_MUST_USE vd_status vd_remote_delete_job(const vd_remote *remote, const char *id, vd_err *err);

#endif
