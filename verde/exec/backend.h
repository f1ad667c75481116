/* Backends other than the fixed order. A backend runs nodes by its own kernels, and emits more than
 * states: what its states are committed with, what it signs, what a referee may ask for. Its table
 * is all that this and higher layers know of it. */
#ifndef VD_BACKEND_H
#define VD_BACKEND_H

#include "verde/exec/check.h"
#include "verde/exec/divergence.h"
#include "verde/exec/run.h"

struct json_t; /* from jansson */

/* A backend's private state of a run in progress, or of one that is executed again. */
typedef struct vd_emitter vd_emitter;

/* A run on disk that is executed again. */
typedef struct {
    const char *dir; /* borrowed, as all pointers are */
    const vd_program *program;
    const vd_run_log *log;
    /* Gets the run's name and the roots of what it emitted up to each checkpoint, as committed. */
    vd_status (*committed)(void *user, vd_hash *name, vd_hash *emitted, vd_err *err);
    void *user;
} vd_emitted_run;

typedef struct vd_backend {
    const char *name;    /* value of --backend: "log" */
    const char *kernels; /* for messages: "free kernels" */
    const char *emits;   /* for messages: "rounding logs" */

    /* ---- computation ---- */

    /* Returns whether the program can be run on this backend only. */
    bool (*wants)(const vd_program *program);
    /* Returns whether the backend's kernels may give `word` for an element of the node with
     * reference `y`. */
    bool (*possible)(const vd_program *program, const vd_graph *graph, uint32_t node, ro_bounded y,
                     uint32_t word);

    /* ---- members of run.json ---- */

    const char *const *members; /* names, ended by NULL */
    /* Reads the members, if any, into log->backend, ->of_backend, ->name. VD_ERR_PEER: they are
     * wrong. */
    vd_status (*read)(const struct json_t *root, vd_run_log *log, vd_err *err);
    void (*write)(const vd_run_log *log, struct json_t *root);

    /* The instruction set (ro_ctx_backend) needed to execute the run again; NULL: any will do. */
    const char *(*ran_on)(const vd_run_log *log);

    /* ---- a run in progress (run.c) ---- */

    /* Checks that program, fault and options fit, for this backend and for runs without it. */
    vd_status (*allows)(const vd_run_options *options, vd_err *err);
    /* Describes a new run in `log`. */
    vd_status (*choose)(const vd_run_options *options, const vd_hash *program, vd_run_log *log,
                        vd_err *err);
    /* Checks that the run in `log` may be resumed with these options. */
    vd_status (*goes_on)(const vd_run_options *options, const vd_run_log *log, vd_err *err);
    /* Sets exec->kernels, which are valid as long as the emitter. */
    vd_status (*open)(const vd_run_options *options, const vd_run_log *log, vd_exec *exec,
                      vd_emitter **out, vd_err *err);
    /* Called before and after initialisation (-1) and each step. */
    vd_status (*begin)(vd_emitter *emitter, int64_t step, vd_err *err);
    vd_status (*end)(vd_emitter *emitter, vd_err *err);
    /* Makes everything emitted since the last checkpoint durable, and signs it. *out: the root over
     * it, which the checkpoint commits to. */
    vd_status (*checkpoint)(vd_emitter *emitter, int64_t step, vd_run_log *log, vd_hash *out,
                            vd_err *err);
    /* At the end, checks that the run agrees with one that it follows, if any. */
    vd_status (*agree)(vd_emitter *emitter, vd_run_log *log, vd_err *err);
    /* Sets the options' result. Returns `status`, or an error of closing. */
    vd_status (*close)(vd_emitter *emitter, vd_status status, vd_err *err);

    /* ---- checks and comparisons ---- */

    /* Hashes and compares all that was emitted up to checkpoints first .. first + count - 1. */
    vd_status (*check)(const vd_check *check, uint32_t first, uint32_t count, vd_err *err);
    /* Compares what both sides emitted between a checkpoint and the one before; *found: they
     * differ. */
    vd_status (*compare)(const vd_diverge_side side[2], uint32_t checkpoint, vd_divergence *out,
                         bool *found, vd_err *err);

    /* ---- a run that is executed again (replay.c) ---- */

    /* Opens a run and sets exec->kernels; *out is NULL if the run is not of this backend.
     * VD_ERR_USAGE: the run cannot be asked about. `begin` is called before each step, `close` at
     * the end. */
    vd_status (*open_again)(const vd_emitted_run *run, vd_exec *exec, vd_emitter **out,
                            vd_err *err);
    const struct vd_emitted_source *(*served)(const vd_emitter *emitter); /* for vd_source.served */
} vd_backend;

/* All backends, ended by NULL. The layer that contains them defines this list. */
extern const vd_backend *const vd_backends[];
/* The backend that a program needs; NULL: it runs in fixed order. */
const vd_backend *vd_backend_of(const vd_program *program);

/* ---- calls of a table; they do nothing if `e` is {0}: a run in fixed order ---- */

typedef struct {
    const vd_backend *table;
    vd_emitter *emitter;
} vd_emitting;

VD_MUST_USE vd_status vd_emit_allows(const vd_run_options *options, vd_err *err);
VD_MUST_USE vd_status vd_emit_open(vd_emitting *e, vd_exec *exec, const vd_run_options *options,
                                   const vd_run_log *log, vd_err *err);
VD_MUST_USE vd_status vd_emit_open_again(vd_emitting *e, vd_exec *exec, const vd_emitted_run *run,
                                         vd_err *err);
VD_MUST_USE vd_status vd_emit_begin(const vd_emitting *e, int64_t step, vd_err *err);
VD_MUST_USE vd_status vd_emit_end(const vd_emitting *e, vd_err *err);
VD_MUST_USE vd_status vd_emit_checkpoint(const vd_emitting *e, int64_t step, vd_run_log *log,
                                         vd_hash *out, vd_err *err);
VD_MUST_USE vd_status vd_emit_agree(const vd_emitting *e, vd_run_log *log, vd_err *err);
VD_MUST_USE vd_status vd_emit_close(vd_emitting *e, vd_status status, vd_err *err);
void vd_emit_drop(vd_emitting *e); /* as vd_emit_close, after an error that was reported */

#endif
