/* A whole run in a directory: executes, commits at checkpoints, and resumes after a crash. */
#ifndef VD_RUN_H
#define VD_RUN_H

#include "verde/exec/store.h"

/* A run on a backend other than the fixed order (backend.h). */
typedef struct {
    const struct vd_backend *table;
    const void *options; /* of the backend's own type */
    void *result;        /* of the backend's own type, set when the run ends; may be NULL */
} vd_run_backend;

typedef struct {
    int64_t step; /* number of steps done */
    int64_t steps;
    int64_t saved;        /* step of the last checkpoint on disk */
    float loss;           /* of the last step */
    double seconds;       /* since the start or resumption */
    int64_t resumed_at;   /* step; 0: not resumed */
    int64_t void_choices; /* since then: tokens that do not follow from their logits (choice.h) */
} vd_progress;

/* What a step learns from, for DIR/losses.jsonl. */
typedef struct {
    const char *name; /* "tokens" or "images"; NULL: not reported */
    int64_t of_step;
} vd_run_samples;

/* The result of an evaluation. */
typedef struct {
    float loss, accuracy;
    bool has_accuracy; /* for models that predict classes */
} vd_score;

/* Functions for a run that a team shares (verde/team), called in the process that writes the
 * directory. exec->part is its part of the state. */
typedef struct {
    /* Called before the first step with the whole state; frees leaves that this process does not
     * keep. `resumed`: the state was read from the directory. */
    vd_status (*begin)(void *user, vd_state *state, bool resumed, vd_err *err);
    /* Like vd_state_hash. */
    vd_status (*hash)(void *user, ro_ctx *ro, const vd_hash *program_hash, const vd_state *state,
                      vd_hash *out, vd_err *err);
    /* Gives the state's tensors one at a time, once each, in the layout's order; after `hash`. */
    vd_leaf_stream (*leaves)(void *user, const vd_state *state);
    void *user;
} vd_run_team;

typedef struct {
    const vd_exec *exec;
    const char *dir;
    const char *fault; /* its text; NULL or "": none; in run.json, for serving */
    /* Called after each step; may be NULL. False stops the run with VD_ERR_TIMEOUT, to be
     * resumed. */
    bool (*progress)(void *user, const vd_progress *progress);
    void *user;
    /* Called once, when the directory has a run.json, if steps are left to execute; may be NULL. */
    vd_status (*begun)(void *begun_user, vd_err *err);
    void *begun_user;
    const vd_run_backend *backend; /* NULL: fixed order */
    const vd_run_team *team;       /* NULL: a single process; with a team `backend` is NULL */
    vd_run_samples samples;
    int32_t keep; /* states to keep on disk, VD_KEEP_MIN or more; 0: all, or as the run began */
    /* Seconds that a provider's answers in a dispute may take in all: a run that keeps too few
     * states for this is refused. 0: no limit. */
    double dispute_s;
    /* Called at each checkpoint but the first, when its state is on disk; may be NULL. Sets *score
     * on other data; *told is false if this step has no evaluation. */
    vd_status (*evaluate)(void *evaluation, int64_t step, const vd_hash *state, vd_score *score,
                          bool *told, vd_err *err);
    void *evaluation;
} vd_run_options;

typedef struct {
    vd_hash run_root, final_state; /* as committed to */
    int64_t steps, resumed_at;
    float loss_first, loss_last;
    double seconds;
} vd_run_result;

/* Starts a run, or resumes an unfinished one of this program and fault from its last undamaged
 * checkpoint; only reports a finished one. VD_ERR_USAGE: `dir` has another program's run, left as
 * it is. */
VD_MUST_USE vd_status vd_run(const vd_run_options *options, vd_run_result *result, vd_err *err);

/* Computes the root over the committed states of a finished run. */
VD_MUST_USE vd_status vd_run_root(const vd_exec *exec, const vd_run_log *log, vd_hash *run_root,
                                  vd_hash *final_state, vd_err *err);

#endif
