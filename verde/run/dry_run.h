/* Estimates what a run will take, before it starts. */
#ifndef VD_DRY_RUN_H
#define VD_DRY_RUN_H

#include "verde/exec/estimate.h"
#include "verde/load/load.h"
#include "verde/run/fits.h"

typedef struct {
    const char *job;
    const char *dir;   /* the run's directory, or one beside it; NULL: looks at the current one */
    long keep;         /* checkpoints to keep; 0: all */
    uint64_t together; /* number of prompts that run together */
    uint64_t upload;   /* bytes to upload to each provider; 0: nothing is uploaded */
    bool json;
} vd_dry_run_options;

/* Prints steps, memory, disk and time; time is measured by running a few steps in memory, for a few
 * seconds. For prompts, the largest one is measured. Writes no file. The backend must be loaded.
 * VD_ERR_LOCAL: this machine has no room for the run. */
VD_MUST_USE vd_status vd_dry_run(const vd_dry_run_options *options, vd_loaded *loaded, vd_err *err);

#endif
