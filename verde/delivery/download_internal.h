/* Shared by the files of the download. */
#ifndef VD_DOWNLOAD_INTERNAL_H
#define VD_DOWNLOAD_INTERNAL_H

#include <pthread.h>
#include <time.h>

#include "verde/delivery/download.h"

enum {
    VD_DOWNLOAD_DEADLINE_MS = 30000, /* of one answer: a block, hashes, a proof */
    VD_DOWNLOAD_RETRY_MS = 300,      /* after trouble */
    VD_DOWNLOAD_STEAL_S = 3,         /* what takes so long is asked of another one too */
    VD_DOWNLOAD_SILENT_S = 5,        /* a provider that is silent for so long is told of, */
    VD_DOWNLOAD_TELL_S = 10,         /* and again after so long */
};

typedef struct {
    char name[400];
    bool dropped; /* it is asked no more */
    bool wrong;   /* dropped for its answer: not for silence, nor for another key or host */
    char why[512];
    bool late;      /* another one answered, though it was asked before */
    double trouble; /* since when it has not given what it was asked for; 0: it has */
    /* Questions on their way; since when none has been answered, and no byte has come or gone. */
    int asking;
    double silent, told; /* vd_seconds(); when that was told last, 0: not yet */
    char last_why[512];  /* of the last trouble; empty: there was none since */
    atomic_ullong moved; /* bytes that have gone and come */
    uint64_t moved_then;
    uint64_t received;
} vd_download_provider;

/* What one connection does: asks for the hashes of a tensor's blocks, or for one block. */
typedef struct {
    uint32_t target;
    bool list;
    uint64_t block;
    vd_hash expected; /* the block's, if the tensor has several */
} vd_piece;

typedef struct {
    const ro_shape *shape;
    const vd_hash *commitment;
    uint64_t blocks, first; /* its bits in `there` */
    uint64_t next, left;    /* the next block to ask for; blocks that are not there */
    vd_hash *list;          /* of its blocks; NULL: not known yet, or there is only one */
    bool listing;
} vd_download_tensor;

typedef struct {
    struct vd_download *download;
    uint32_t provider;
    vd_client *client;
    pthread_t thread;
    bool busy;
    vd_piece piece; /* while busy */
    double since;
} vd_connection;

struct vd_download {
    vd_download_options options;
    vd_download_provider provider[VD_DOWNLOAD_PROVIDERS_MAX];
    vd_connection connection[VD_DOWNLOAD_THREADS_MAX];
    uint32_t connection_count;
    pthread_mutex_t lock; /* over all below, and the providers */
    pthread_cond_t changed;
    atomic_bool stop;
    const vd_state_proof *proof;
    const vd_target *target;
    vd_download_tensor *tensor; /* of each target */
    uint32_t target_count, first_open;
    uint8_t *there;                         /* a bit for each block of all targets */
    vd_piece back[VD_DOWNLOAD_THREADS_MAX]; /* taken by somebody who could not get them */
    uint32_t back_count;
    vd_download_progress progress;
    vd_err err; /* trouble of this machine */
};

/* ---- providers: their results are judged under no lock ---- */

typedef enum {
    VD_GOT,
    VD_TROUBLE, /* it may come back */
    VD_DROPPED, /* for good */
    VD_FAILED,  /* this machine: d->err, or the download was stopped */
} vd_got;

/* GETs "/v1/jobs/JOB" and `rest`, and decides what follows from the answer for its provider. */
vd_got vd_download_ask(vd_download *d, uint32_t provider, vd_client *client, const char *rest,
                       size_t answer_max, vd_answer *answer);
void vd_download_heard(vd_download *d, uint32_t provider);
/* Says who has been silent for some seconds, and why. To be called now and then, under the lock. */
void vd_download_tell_silence(vd_download *d);
/* `wrong`: it has sent, or says, what it must not. */
void vd_download_drop(vd_download *d, uint32_t provider, bool wrong, const char *why);
void vd_download_fail(vd_download *d, const vd_err *err);
/* Waits a little, or until the download ends. */
void vd_download_pause(vd_download *d, int ms);
/* The time in so many milliseconds, for pthread_cond_timedwait on `changed`. */
struct timespec vd_download_in(int ms);
/* No provider is left. */
vd_status vd_download_nobody(const vd_download *d, const char *what, vd_err *err);

/* ---- the first good answer ---- */

typedef struct {
    /* On a thread of the provider's own. VD_TROUBLE: it is asked again. */
    vd_got (*ask)(vd_download *d, uint32_t provider, vd_answer *answer, void *user);
    /* Looks at what came: on one thread at a time, and never after one that was VD_GOT. */
    vd_got (*take)(vd_download *d, uint32_t provider, vd_answer *answer, void *user);
    void *user;
} vd_first;

/* Asks the first provider, and each other one when those before it have given nothing, or have been
 * silent for VD_DOWNLOAD_STEAL_S each. VD_GOT: from *provider; VD_DROPPED: nobody has it;
 * VD_FAILED: as vd_download_ask. */
vd_got vd_download_first(vd_download *d, const vd_first *how, uint32_t *provider);

/* ---- pieces: under the lock ---- */

VD_MUST_USE vd_status vd_pieces_plan(vd_download *d, vd_err *err);
void vd_pieces_free(vd_download *d);
bool vd_pieces_done(vd_download *d);
/* false: there is nothing to do for this connection at the moment. */
bool vd_pieces_take(vd_download *d, const vd_connection *c, vd_piece *out);
void vd_pieces_back(vd_download *d, const vd_piece *piece);
/* Takes the list, which was checked, or frees it if it is there already. */
void vd_pieces_listed(vd_download *d, const vd_piece *piece, vd_hash *list);
/* It is on disk. `found`: it was before. false: another connection was faster. */
bool vd_pieces_there(vd_download *d, const vd_piece *piece, bool found);

#endif
