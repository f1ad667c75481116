/* The loss on other data while a job runs. */
#ifndef VD_EVALUATION_H
#define VD_EVALUATION_H

#include "verde/load/load.h"

/* The job of `evaluate` beside a job that trains: its weights are each time another state's. */
typedef struct {
    vd_loaded held;
    const vd_loaded *trained;
    const char *dir; /* of the run */
} vd_evaluation;

/* Leaves it empty if the job has no `evaluate`. Borrows both. */
VD_MUST_USE vd_status vd_evaluation_open(const vd_loaded *trained, const char *dir,
                                         vd_evaluation *out, vd_err *err);
/* vd_run_options.evaluate */
VD_MUST_USE vd_status vd_evaluate(void *evaluation, int64_t step, const vd_hash *state,
                                  vd_score *score, bool *told, vd_err *err);
/* The score of the last state, whose model lies in a directory as `verde export` writes it. */
VD_MUST_USE vd_status vd_evaluate_model(vd_evaluation *evaluation, const char *dir, vd_score *score,
                                        vd_err *err);
void vd_evaluation_close(vd_evaluation *evaluation);

#endif
