/* --keep N: may a run leave out states? Private to verde/exec. */
#ifndef VD_RUN_KEEP_H
#define VD_RUN_KEEP_H

#include "verde/exec/run.h"

/* How long the first steps of this process took. */
typedef struct {
    int32_t count;
    double fastest_s;
} vd_step_times;

/* Takes --keep of the options, if there is one, into the log of a new run or of one that goes on.
 * VD_ERR_USAGE: the run is finished, and has fewer states. */
VD_MUST_USE vd_status vd_keep_take(const vd_run_options *options, vd_run_log *log, vd_err *err);

/* After a step, before its state is kept. VD_ERR_USAGE: a dispute about a run of which so few
 * states are kept would take longer than options->dispute_s. It is judged once, by the fastest of
 * the first three steps of the process, or of fewer if the next state comes before. */
VD_MUST_USE vd_status vd_keep_judge(const vd_run_options *options, const vd_run_log *log,
                                    vd_step_times *times, double seconds, bool state_comes,
                                    vd_err *err);

#endif
