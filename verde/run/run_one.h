/* The run of one program: of a job, of one of its prompts, or of what a client has sent. */
#ifndef VD_RUN_ONE_H
#define VD_RUN_ONE_H

#include "verde/load/load.h"

typedef struct {
    vd_run_options options; /* but for `begun` */
    const vd_loaded *loaded;
    /* Writes where the run's data is; NULL: vd_save_data does. */
    vd_status (*save)(void *user, vd_err *err);
    void *user;
    /* Filled in. */
    vd_run_result result;
    bool idle; /* the fault on purpose changed nothing */
    bool saved;
} vd_one_run;

/* Executes it, or goes on with it. Where its data is stands beside its first state, so that its
 * steps can be executed again while it goes on. Says so if a fault changed nothing. */
VD_MUST_USE vd_status vd_run_one(vd_one_run *run, vd_err *err);

#endif
