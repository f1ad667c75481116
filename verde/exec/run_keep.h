/* --keep N: which states a run may drop. Private to verde/exec. */
#ifndef VD_RUN_KEEP_H
#define VD_RUN_KEEP_H

#include "verde/exec/run.h"

/* Times of the first steps of this process. */
typedef struct {
    int32_t count;
    double fastest_s;
} vd_step_times;

/* Puts --keep of the options, if given, into the log of a new or resumed run. VD_ERR_USAGE: the run
 * is finished, and has fewer states. */
VD_MUST_USE vd_status vd_keep_take(const vd_run_options *options, vd_run_log *log, vd_err *err);

/* Judges --keep after a step, before its state is kept. VD_ERR_USAGE: a dispute about a run with so
 * few states would take longer than options->dispute_s. This is decided once, by the fastest of the
 * process's first three steps, or of fewer if the next state comes earlier. */
VD_MUST_USE vd_status vd_keep_judge(const vd_run_options *options, const vd_run_log *log,
                                    vd_step_times *times, double seconds, bool state_comes,
                                    vd_err *err);

#endif
