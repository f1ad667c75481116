/* Downloads a finished run's state from several providers at once. None is trusted: each byte is
 * checked against the run root while it arrives. A provider that sends anything else is dropped, by
 * name, and others are asked; one that does not answer is asked again for a while. */
#ifndef VD_DOWNLOAD_H
#define VD_DOWNLOAD_H

#include "verde/delivery/blocks.h"
#include "verde/exec/state_proof.h"
#include "verde/net/net.h"

enum {
    VD_DOWNLOAD_PROVIDERS_MAX = 16,
    VD_DOWNLOAD_CONNECTIONS = 4, /* to each provider */
    VD_DOWNLOAD_CONNECTIONS_MAX = 8,
    VD_DOWNLOAD_THREADS_MAX = VD_DOWNLOAD_PROVIDERS_MAX * VD_DOWNLOAD_CONNECTIONS_MAX,
    VD_DOWNLOAD_PATIENCE_S = 30, /* a provider that answers nothing for so long is dropped */
};

typedef struct {
    uint64_t done, total; /* of all targets: bytes checked and on disk, and in all */
    uint64_t found;       /* bytes that were on disk before */
    double seconds;
} vd_download_progress;

typedef struct {
    const vd_endpoint *provider; /* borrowed */
    uint32_t provider_count;
    const uint32_t *number; /* numbers to show for them; NULL: 1, 2, ... */
    const char *ca;         /* as in vd_client_create; NULL: the system's */
    const vd_key *key;      /* signs requests to daemons (8.5); NULL: unsigned */
    const char *job;        /* the job in paths; with `verde serve` the run root */
    int connections;        /* 0: VD_DOWNLOAD_CONNECTIONS */
    int patience_s;         /* 0: VD_DOWNLOAD_PATIENCE_S */
    /* Both callbacks are called by one thread at a time, and may be NULL. */
    void (*tell)(void *user, const char *line);
    void (*progress)(void *user, const vd_download_progress *progress); /* a few times a second */
    void *user;
} vd_download_options;

typedef struct vd_download vd_download;

VD_MUST_USE vd_status vd_download_create(const vd_download_options *options, vd_download **out,
                                         vd_err *err);
void vd_download_destroy(vd_download *download); /* accepts NULL */

/* Gets the proof of the final state from the first provider whose proof leads to `run_root`. *text
 * receives it as sent. VD_ERR_PEER: no provider has one. VD_ERR_IO: none answers. */
VD_MUST_USE vd_status vd_download_proof(vd_download *download, const vd_hash *run_root,
                                        vd_buf *text, vd_state_proof *out, vd_err *err);

/* Where a tensor's bytes are written: little-endian, in row-major order. */
typedef struct {
    uint32_t leaf; /* number in the program's layout */
    int fd;        /* open for reading and writing; borrowed */
    const char *path;
    uint64_t at;  /* offset in the file */
    uint64_t had; /* bytes the file had before: they are checked first */
} vd_target;

/* Fills all targets. A block that is already on disk is not fetched if its hash is right.
 * VD_ERR_PEER: no provider is left, and one has sent wrong data. VD_ERR_IO: none answers any more.
 * VD_ERR_LOCAL: the disk is full, or out of memory. What is on disk by then stays. */
VD_MUST_USE vd_status vd_download_tensors(vd_download *download, const vd_state_proof *proof,
                                          const vd_target *target, uint32_t count, vd_err *err);

/* Gets losses.jsonl from the first provider that has it. It is unproven: no root leads to it.
 * False: no provider has it. */
bool vd_download_losses(vd_download *download, vd_buf *out, uint32_t *provider);

/* Returns why a provider was dropped, or NULL if it was not. */
const char *vd_download_dropped(const vd_download *download, uint32_t provider);
/* Returns the number of correct tensor bytes that came from a provider. */
uint64_t vd_download_received(const vd_download *download, uint32_t provider);

#endif
