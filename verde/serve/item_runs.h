/* The runs of a job with prompts, to answer a referee from. */
#ifndef VD_ITEM_RUNS_H
#define VD_ITEM_RUNS_H

#include <pthread.h>

#include "verde/protocol/provider.h"
#include "verde/serve/checking.h"

/* Stays where it is: sources point into it. */
typedef struct {
    const char *dir, *data; /* of the job's folder; where its data files are now, or NULL */
    const vd_common *common;
    vd_items items;
    vd_collection collection;
    vd_hash hash, job_root;
    bool dishonest;          /* a run has a fault on purpose; known once all are hashed */
    uint32_t longest;        /* the run that computes most; likewise */
    uint64_t most_terms;     /* that it computes in initialisation and a step */
    vd_checking *checking;   /* while they are hashed: is told how many are */
    struct vd_item_run *run; /* one for each item */
    ro_ctx *ro;
    /* One run at a time is open for execution. */
    pthread_mutex_t lock; /* of `open` */
    struct vd_item_run *open;
} vd_item_runs;

/* Opens the folder, in which all prompts are done; its runs are not hashed yet. What `dir`, `data`
 * and `common` point to is kept. */
VD_MUST_USE vd_status vd_item_runs_open(const char *dir, const char *data, const vd_common *common,
                                        vd_item_runs *out, vd_err *err);
/* Every byte of every run, and the results: before anything is signed. */
VD_MUST_USE vd_status vd_item_runs_check(vd_item_runs *runs, vd_checking *checking, vd_err *err);
void vd_item_runs_close(vd_item_runs *runs); /* accepts zeros */
/* As vd_measure, of the longest run, once all are hashed: no other one takes more time. */
void vd_item_runs_measure(vd_item_runs *runs, vd_pace *out, double *game_s);
/* Sets what a provider of a collection has. */
void vd_item_runs_serve(vd_item_runs *runs, vd_provider *provider);

#endif
