/* The finished run of a job, or of each of its prompts, from which referees are answered. */
#ifndef VD_SERVED_H
#define VD_SERVED_H

#include <pthread.h>

#include "verde/exec/replay_team.h"
#include "verde/load/load.h"
#include "verde/protocol/provider.h"

struct vd_checking;

typedef struct vd_served_run {
    struct vd_served *all;
    uint64_t item;
    char dir[1024];
    bool dishonest;
    /* only while it is open: */
    vd_loaded loaded;
    vd_run_log log;
    vd_replay *replay;
    vd_source source;
} vd_served_run;

/* Must not be moved: sources point into it. */
typedef struct vd_served {
    const char *dir, *data; /* the job's folder; where data files are now, or NULL */
    const vd_common *common;
    vd_served_run *run; /* one for each program */
    uint32_t longest;   /* index of the run that computes most; known once all are hashed */
    /* a job of one program, whose run is always open: */
    vd_loaded second; /* context of a second run, which executes while questions are answered */
    vd_again *again;
    /* a job with prompts, even a single one: */
    bool many;
    vd_items items;
    vd_collection collection;
    vd_hash hash, job_root;
    bool dishonest;               /* a run has a deliberate fault; known once all are hashed */
    uint64_t most_terms;          /* terms of the longest: initialisation and a step */
    struct vd_checking *checking; /* while hashing: gets the number of runs hashed */
    ro_ctx *ro;
    pthread_mutex_t lock; /* protects `open` */
    vd_served_run *open;  /* the only run that is open for execution */
} vd_served;

/* Opens the folder of a run, or of a job whose prompts are all done, without hashing files. `dir`,
 * `data` and `common` are borrowed. */
VD_MUST_USE vd_status vd_served_open(const char *dir, const char *data, const vd_common *common,
                                     vd_served *out, vd_err *err);
/* A single run: prepares it for being executed again, by `team` if its exec has one. */
VD_MUST_USE vd_status vd_served_replay(vd_served *served, const vd_replay_team *team, vd_err *err);
/* A single run without rounding logs (PROTOCOL.md section 12.6): prepares a second run, by this
 * process alone even if others share the first run's steps. */
VD_MUST_USE vd_status vd_served_prepare_again(vd_served *served, vd_err *err);
/* Checks every byte of every run and of the results, before anything is signed. */
VD_MUST_USE vd_status vd_served_check(vd_served *served, struct vd_checking *checking, vd_err *err);
/* Like vd_measure, for the longest run, once all are hashed: no other takes more time. */
void vd_served_measure(vd_served *served, vd_pace *out, double *game_s);
/* Fills in the parts of *provider that describe the job. */
void vd_served_provide(vd_served *served, vd_provider *provider);
void vd_served_close(vd_served *served); /* accepts all zeros */

#endif
