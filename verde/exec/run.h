/* A whole run into a directory: execute, commit at checkpoints, resume after a crash. */
#ifndef VD_RUN_H
#define VD_RUN_H

#include "verde/exec/store.h"

/* A run on a backend beside the fixed order (backend.h). */
typedef struct {
    const struct vd_backend *table;
    const void *options; /* the backend's own, as its result is */
    void *result;        /* filled in when the run ends; may be NULL */
} vd_run_backend;

typedef struct {
    int64_t step; /* steps done */
    int64_t steps;
    int64_t saved;        /* of the last checkpoint, which is on disk */
    float loss;           /* of the last one */
    double seconds;       /* since the start or the resumption */
    int64_t resumed_at;   /* 0: from the beginning */
    int64_t void_choices; /* tokens made since then that do not follow from logits (choice.h) */
} vd_progress;

/* What a step learns from, for DIR/losses.jsonl. */
typedef struct {
    const char *name; /* "tokens", "images"; NULL: nothing is said */
    int64_t of_step;
} vd_run_samples;

/* What an evaluation arrives at. */
typedef struct {
    float loss, accuracy;
    bool has_accuracy; /* of a model that tells classes */
} vd_score;

/* A run that several processes share (verde/team), for the one that writes the directory; each has
 * a part of the state, by exec->part. */
typedef struct {
    /* Before the first step, with all of the state; frees what this process does not keep.
     * `resumed`: the state was read from the directory. */
    vd_status (*begin)(void *user, vd_state *state, bool resumed, vd_err *err);
    /* As vd_state_hash. */
    vd_status (*hash)(void *user, ro_ctx *ro, const vd_hash *program_hash, const vd_state *state,
                      vd_hash *out, vd_err *err);
    /* The tensors of the state, each for a moment alone: after `hash`, each once, in the layout's
     * order. */
    vd_leaf_stream (*leaves)(void *user, const vd_state *state);
    void *user;
} vd_run_team;

typedef struct {
    const vd_exec *exec;
    const char *dir;
    const char
        *fault; /* as given; NULL or empty: none. Kept in the log, so that serving repeats it */
    /* After each step; may be NULL. False stops the run: VD_ERR_TIMEOUT, to be resumed some time.
     */
    bool (*progress)(void *user, const vd_progress *progress);
    void *user;
    /* Once, when the directory has a run.json, if there is something left to execute; may be NULL.
     */
    vd_status (*begun)(void *begun_user, vd_err *err);
    void *begun_user;
    const vd_run_backend *backend; /* NULL: in fixed order */
    const vd_run_team *team;       /* NULL: one process; else without `backend` */
    vd_run_samples samples;
    int32_t keep; /* states that stay on disk, VD_KEEP_MIN or more; 0: all, or as the run began */
    /* Seconds that all answers of a provider in a dispute may take: a run that keeps too few states
     * for that is refused. 0: none is. */
    double dispute_s;
    /* At each checkpoint but the first, when its state is on disk; NULL: never. Sets *score, on
     * other data, and returns VD_OK; *told is false if the step has none. */
    vd_status (*evaluate)(void *evaluation, int64_t step, const vd_hash *state, vd_score *score,
                          bool *told, vd_err *err);
    void *evaluation;
} vd_run_options;

typedef struct {
    vd_hash run_root, final_state; /* as committed */
    int64_t steps, resumed_at;
    float loss_first, loss_last;
    double seconds;
} vd_run_result;

/* Goes on from the last whole checkpoint if `dir` holds an unfinished run of the same program and
 * fault. A finished one is only reported. Another program's directory is VD_ERR_USAGE: nothing is
 * overwritten. */
VD_MUST_USE vd_status vd_run(const vd_run_options *options, vd_run_result *result, vd_err *err);

/* Root over the committed states of a finished run. */
VD_MUST_USE vd_status vd_run_root(const vd_exec *exec, const vd_run_log *log, vd_hash *run_root,
                                  vd_hash *final_state, vd_err *err);

#endif
