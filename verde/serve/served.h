/* What a referee is answered from: the finished run of a job, or one for each of its prompts. */
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
    /* While it is open: */
    vd_loaded loaded;
    vd_run_log log;
    vd_replay *replay;
    vd_source source;
} vd_served_run;

/* Stays where it is: sources point into it. */
typedef struct vd_served {
    const char *dir, *data; /* of the job's folder; where its data files are now, or NULL */
    const vd_common *common;
    vd_served_run *run; /* one for each program */
    uint32_t longest;   /* the run that computes most; known once all are hashed */
    /* Of a job of one program, whose run is open all the time: */
    vd_loaded second; /* for a second run, which executes while questions are answered */
    vd_again *again;
    /* Of a job with prompts, even of one: */
    bool many;
    vd_items items;
    vd_collection collection;
    vd_hash hash, job_root;
    bool dishonest;               /* a run has a fault on purpose; known as `longest` is */
    uint64_t most_terms;          /* that the longest computes in initialisation and a step */
    struct vd_checking *checking; /* while they are hashed: is told how many are */
    ro_ctx *ro;
    pthread_mutex_t lock; /* of `open` */
    vd_served_run *open;  /* one run at a time is open for execution */
} vd_served;

/* Opens the folder of a run, or of a job all of whose prompts are done; no file is hashed yet. What
 * `dir`, `data` and `common` point to is kept. */
VD_MUST_USE vd_status vd_served_open(const char *dir, const char *data, const vd_common *common,
                                     vd_served *out, vd_err *err);
/* Of one run: makes it ready to be executed again, as the team of its exec does that, if any. */
VD_MUST_USE vd_status vd_served_replay(vd_served *served, const vd_replay_team *team, vd_err *err);
/* Of one run without rounding logs (PROTOCOL.md section 12.6): by this process alone, also where
 * others share the first run's steps. */
VD_MUST_USE vd_status vd_served_prepare_again(vd_served *served, vd_err *err);
/* Every byte of every run, and the results: before anything is signed. */
VD_MUST_USE vd_status vd_served_check(vd_served *served, struct vd_checking *checking, vd_err *err);
/* As vd_measure, of the longest run, once all are hashed: no other one takes more time. */
void vd_served_measure(vd_served *served, vd_pace *out, double *game_s);
/* Sets what a provider knows of its job. */
void vd_served_provide(vd_served *served, vd_provider *provider);
void vd_served_close(vd_served *served); /* accepts zeros */

#endif
