/* What a run will take, before it starts. */
#ifndef VD_DRY_RUN_H
#define VD_DRY_RUN_H

#include "verde/exec/estimate.h"
#include "verde/load/load.h"
#include "verde/run/fits.h"

typedef struct {
    const char *job;
    const char *dir;   /* where the run would go, or a place beside it; NULL: not told */
    long keep;         /* 0: all */
    uint64_t together; /* prompts that run at the same time */
    uint64_t upload;   /* bytes that each provider gets; 0: none does */
    bool json;
} vd_dry_run_options;

/* Tells steps, memory, disk, and the time by steps that it runs in memory, for a few seconds; of a
 * job with prompts by those of the largest one. Writes no file. The backend is loaded.
 * VD_ERR_LOCAL: there is no room for the run. */
VD_MUST_USE vd_status vd_dry_run(const vd_dry_run_options *options, vd_loaded *loaded, vd_err *err);

#endif
