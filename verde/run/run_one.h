/* The run of one program: a job's, a prompt's, or one that a client has sent. */
#ifndef VD_RUN_ONE_H
#define VD_RUN_ONE_H

#include "verde/load/load.h"

typedef struct {
    vd_run_options options; /* without `begun`, which vd_run_one sets */
    const vd_loaded *loaded;
    /* Writes the places of the run's data; NULL: vd_save_data does it. */
    vd_status (*save)(void *user, vd_err *err);
    void *user;
    /* Results: */
    vd_run_result result;
    bool idle; /* a fault on purpose changed nothing */
    bool saved;
} vd_one_run;

/* Starts or resumes the run. The places of its data are saved with its first state, so that its
 * steps can be executed again while it still runs. Reports a fault that changed nothing. */
VD_MUST_USE vd_status vd_run_one(vd_one_run *run, vd_err *err);

#endif
