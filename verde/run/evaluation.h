/* The loss on other data during a run. */
#ifndef VD_EVALUATION_H
#define VD_EVALUATION_H

#include "verde/load/load.h"

/* A job for `evaluate` beside the training job; its weights are those of one state after
 * another. */
typedef struct {
    vd_loaded held;
    const vd_loaded *trained;
    const char *dir; /* the run's directory */
} vd_evaluation;

/* Opens the evaluation, which stays empty if the job has no `evaluate`. Borrows `trained`,
 * `dir`. */
VD_MUST_USE vd_status vd_evaluation_open(const vd_loaded *trained, const char *dir,
                                         vd_evaluation *out, vd_err *err);
/* For vd_run_options.evaluate. */
VD_MUST_USE vd_status vd_evaluate(void *evaluation, int64_t step, const vd_hash *state,
                                  vd_score *score, bool *told, vd_err *err);
/* Scores the last state, given as a model in a directory that `verde export` wrote. */
VD_MUST_USE vd_status vd_evaluate_model(vd_evaluation *evaluation, const char *dir, vd_score *score,
                                        vd_err *err);
void vd_evaluation_close(vd_evaluation *evaluation);

#endif
