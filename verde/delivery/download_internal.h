/* Declarations shared by the files of the download. */
#ifndef VD_DOWNLOAD_INTERNAL_H
#define VD_DOWNLOAD_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "verde/delivery/download.h"

enum {
    VD_DOWNLOAD_DEADLINE_MS = 30000, /* for one answer: a block, hashes, a proof */
    VD_DOWNLOAD_RETRY_MS = 300,      /* pause after trouble */
    VD_DOWNLOAD_STEAL_S = 3,         /* then another one is asked for the same piece, too */
    VD_DOWNLOAD_SILENT_S = 5,        /* a provider's silence is reported after this long, */
    VD_DOWNLOAD_TELL_S = 10,         /* and again after each of these */
};

typedef struct {
    char name[400];
    bool dropped; /* it is not asked any more */
    bool wrong;   /* dropped for a wrong answer, not for silence, another key or host */
    char why[512];
    bool late;      /* another one answered, although it was asked before */
    double trouble; /* vd_seconds() of the first failure since an answer; 0: none */
    /* Questions under way; vd_seconds() of the last answer or byte; of the last report, or 0. */
    int asking;
    double silent, told; /* see above */
    char last_why[512];  /* of the last trouble; empty: none since an answer */
    atomic_ullong moved; /* bytes sent and received */
    uint64_t moved_then;
    uint64_t received;
} vd_download_provider;

/* What one connection fetches: the list of hashes of a tensor's blocks, or one block. */
typedef struct {
    uint32_t target;
    bool list;
    uint64_t block;
    vd_hash expected; /* hash of the block, if the tensor has several */
} vd_piece;

typedef struct {
    const ro_shape *shape;
    const vd_hash *commitment;
    uint64_t blocks, first; /* number of blocks; index of the first in `there` */
    uint64_t next, left;    /* next block to ask for; number of blocks missing */
    vd_hash *list;          /* hashes of its blocks; NULL: not known, or one block */
    bool listing;
} vd_download_tensor;

typedef struct {
    struct vd_download *download;
    uint32_t provider;
    vd_client *client;
    pthread_t thread;
    bool busy;
    vd_piece piece; /* only while busy */
    double since;
} vd_connection;

struct vd_download {
    vd_download_options options;
    vd_download_provider provider[VD_DOWNLOAD_PROVIDERS_MAX];
    vd_connection connection[VD_DOWNLOAD_THREADS_MAX];
    uint32_t connection_count;
    pthread_mutex_t lock; /* protects the fields below, and the providers */
    pthread_cond_t changed;
    atomic_bool stop;
    const vd_state_proof *proof;
    const vd_target *target;
    vd_download_tensor *tensor; /* one for each target */
    uint32_t target_count, first_open;
    uint8_t *there;                         /* a bit for each block of all targets */
    vd_piece back[VD_DOWNLOAD_THREADS_MAX]; /* taken by connections that could not get them */
    uint32_t back_count;
    vd_download_progress progress;
    vd_err err; /* trouble of this machine */
};

/* ---- providers: called without the lock ---- */

typedef enum {
    VD_GOT,
    VD_TROUBLE, /* it may pass */
    VD_DROPPED, /* the provider is asked no more */
    VD_FAILED,  /* trouble of this machine (d->err), or the download was stopped */
} vd_got;

/* GETs "/v1/jobs/JOB" followed by `rest`, and decides what the answer means for its provider. */
vd_got vd_download_ask(vd_download *d, uint32_t provider, vd_client *client, const char *rest,
                       size_t answer_max, vd_answer *answer);
void vd_download_heard(vd_download *d, uint32_t provider);
/* Reports who has been silent for some seconds, and why. Called now and then; the lock is held. */
void vd_download_tell_silence(vd_download *d);
/* Stops asking a provider. `wrong`: it sent something that an honest provider would not. */
void vd_download_drop(vd_download *d, uint32_t provider, bool wrong, const char *why);
void vd_download_fail(vd_download *d, const vd_err *err);
/* Waits for `ms`, or until the download ends. */
void vd_download_pause(vd_download *d, int ms);
/* Returns the time in `ms` from now, for pthread_cond_timedwait on `changed`. */
struct timespec vd_download_in(int ms);
/* Fails, as no provider is left. */
vd_status vd_download_nobody(const vd_download *d, const char *what, vd_err *err);

/* ---- the first good answer ---- */

typedef struct {
    /* Called on a thread for each provider. VD_TROUBLE: ask again. */
    vd_got (*ask)(vd_download *d, uint32_t provider, vd_answer *answer, void *user);
    /* Examines an answer, on one thread at a time. Not called again after it returned VD_GOT. */
    vd_got (*take)(vd_download *d, uint32_t provider, vd_answer *answer, void *user);
    void *user;
} vd_first;

/* Asks the first provider, and each further one when those before it have given nothing, or have
 * been silent for VD_DOWNLOAD_STEAL_S each. VD_GOT: *provider gave the answer. VD_DROPPED: nobody
 * has it. VD_FAILED: see above. */
vd_got vd_download_first(vd_download *d, const vd_first *how, uint32_t *provider);

/* ---- pieces: the lock is held ---- */

VD_MUST_USE vd_status vd_pieces_plan(vd_download *d, vd_err *err);
void vd_pieces_free(vd_download *d);
bool vd_pieces_done(vd_download *d);
/* False: there is nothing to do for this connection at present. */
bool vd_pieces_take(vd_download *d, const vd_connection *c, vd_piece *out);
void vd_pieces_back(vd_download *d, const vd_piece *piece);
/* Takes ownership of a list that was checked, or frees it if the tensor has one already. */
void vd_pieces_listed(vd_download *d, const vd_piece *piece, vd_hash *list);
/* Records that a piece is on disk; `found`: it was before. False: another connection was faster. */
bool vd_pieces_there(vd_download *d, const vd_piece *piece, bool found);

#endif
