/* The rounding logs of a run. Private to verde/exec/run.c. */
#ifndef VD_RUN_LOGS_H
#define VD_RUN_LOGS_H

#include "verde/exec/run.h"

typedef struct {
    vd_rounded *rounded; /* NULL: the run is in fixed order, and all of this does nothing */
    const vd_run_options *options;
    vd_log_run run;
    int64_t step;          /* that was begun */
    vd_hash *root;         /* of the logs since the last checkpoint; owned */
    uint32_t roots, ended; /* roots that are known, steps that ended, since then */
    uint64_t bytes;
} vd_run_logs;

/* Is the program run so? */
VD_MUST_USE vd_status vd_run_logs_check(const vd_run_options *options, vd_err *err);
/* The log that a new run writes, or the one that it follows, and who does. */
VD_MUST_USE vd_status vd_run_logs_choose(const vd_run_options *options, const vd_hash *program,
                                         vd_run_log *out, vd_err *err);
/* Is `log`, of a run that goes on, rounded as the options say? An auditor takes its trainer's. */
VD_MUST_USE vd_status vd_run_logs_same(const vd_run_options *options, const vd_run_log *log,
                                       vd_err *err);
/* Sets exec->free if options->rounding is given. */
VD_MUST_USE vd_status vd_run_logs_open(vd_run_logs *logs, vd_exec *exec,
                                       const vd_run_options *options, const vd_run_log *log,
                                       vd_err *err);
VD_MUST_USE vd_status vd_run_logs_begin(vd_run_logs *logs, int64_t step, vd_err *err);
VD_MUST_USE vd_status vd_run_logs_end(vd_run_logs *logs, vd_err *err);
/* Is called at a checkpoint. *out is the root over the logs since the last one, which a trainer
 * signs; an auditor keeps the trainer's. `log` gets the difference that an auditor found. */
VD_MUST_USE vd_status vd_run_logs_checkpoint(vd_run_logs *logs, int64_t step, vd_run_log *log,
                                             vd_hash *out, vd_err *err);
/* An auditor's checkpoints against the trainer's: VD_ERR_PEER names the first that differs, unless
 * the auditor contests; then it is in `log`, and on disk. */
VD_MUST_USE vd_status vd_run_logs_agree(vd_run_logs *logs, vd_run_log *log, vd_err *err);
/* Returns `status`, or what went wrong in closing. Fills in the result's counts. */
VD_MUST_USE vd_status vd_run_logs_close(vd_run_logs *logs, vd_status status, vd_run_result *result,
                                        vd_err *err);

#endif
