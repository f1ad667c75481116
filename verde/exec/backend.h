/* Backends beside the fixed order. Such a backend runs nodes by kernels of its own, and emits more
 * than states: what the states are committed with, what it signs, what a referee may ask for. It
 * says so in one table. Here and above nothing else is known of it. */
#ifndef VD_BACKEND_H
#define VD_BACKEND_H

#include "verde/exec/check.h"
#include "verde/exec/divergence.h"
#include "verde/exec/run.h"

struct json_t; /* jansson's */

/* A backend's memory of a run that is under way or executed again. Nobody else looks into it. */
typedef struct vd_emitter vd_emitter;

/* A run on disk that is executed again. */
typedef struct {
    const char *dir; /* borrowed, as all that is pointed to */
    const vd_program *program;
    const vd_run_log *log;
    /* The run's name and what it emitted up to each checkpoint, as the run committed to them. */
    vd_status (*committed)(void *user, vd_hash *name, vd_hash *emitted, vd_err *err);
    void *user;
} vd_emitted_run;

typedef struct vd_backend {
    const char *name;    /* of --backend: "log" */
    const char *kernels; /* "free kernels" */
    const char *emits;   /* "rounding logs" */

    /* ---- what it computes ---- */

    /* Is the program run on it, and on it alone? */
    bool (*wants)(const vd_program *program);
    /* Is the word a value that its kernels may give a node's element whose reference is `y`? */
    bool (*possible)(const vd_program *program, const vd_graph *graph, uint32_t node, ro_bounded y,
                     uint32_t word);

    /* ---- what it keeps in run.json ---- */

    const char *const *members; /* names, of which the last is NULL */
    /* Sets log->backend, ->of_backend and ->name if the members are there. VD_ERR_PEER: they are
     * wrong.
     */
    vd_status (*read)(const struct json_t *root, vd_run_log *log, vd_err *err);
    void (*write)(const vd_run_log *log, struct json_t *root);

    /* The instruction set (ro_ctx_backend) on which alone the run is executed again; NULL: any. */
    const char *(*ran_on)(const vd_run_log *log);

    /* ---- what it emits: a run (run.c) ---- */

    /* Do the program, the fault and the options fit, with this backend or without it? */
    vd_status (*allows)(const vd_run_options *options, vd_err *err);
    /* Describes a new run in `log`. */
    vd_status (*choose)(const vd_run_options *options, const vd_hash *program, vd_run_log *log,
                        vd_err *err);
    /* May the run in `log` go on with these options? */
    vd_status (*goes_on)(const vd_run_options *options, const vd_run_log *log, vd_err *err);
    /* Sets exec->kernels, which stand as long as the emitter. */
    vd_status (*open)(const vd_run_options *options, const vd_run_log *log, vd_exec *exec,
                      vd_emitter **out, vd_err *err);
    /* Around initialisation (-1) and each step. */
    vd_status (*begin)(vd_emitter *emitter, int64_t step, vd_err *err);
    vd_status (*end)(vd_emitter *emitter, vd_err *err);
    /* At a checkpoint: what was emitted since the last one is on disk, and signed. *out: the root
     * over it, to which the checkpoint commits. */
    vd_status (*checkpoint)(vd_emitter *emitter, int64_t step, vd_run_log *log, vd_hash *out,
                            vd_err *err);
    /* At the end: is the run what it was to repeat? */
    vd_status (*agree)(vd_emitter *emitter, vd_run_log *log, vd_err *err);
    /* Fills in the result of the options. Returns `status`, or what went wrong in closing. */
    vd_status (*close)(vd_emitter *emitter, vd_status status, vd_err *err);

    /* ---- how that is checked and compared ---- */

    /* Hashes all that was emitted up to the checkpoints first .. first + count - 1. */
    vd_status (*check)(const vd_check *check, uint32_t first, uint32_t count, vd_err *err);
    /* Do both sides emit the same up to a checkpoint, since the one before? *found: no, and *out
     * says where. */
    vd_status (*compare)(const vd_diverge_side side[2], uint32_t checkpoint, vd_divergence *out,
                         bool *found, vd_err *err);

    /* ---- how it is served: a run that is executed again (replay.c) ---- */

    /* *out is NULL if the run is none of this backend's. Sets exec->kernels. VD_ERR_USAGE: the run
     * cannot be asked about, and why. `begin` comes before each step; `close` comes last. */
    vd_status (*open_again)(const vd_emitted_run *run, vd_exec *exec, vd_emitter **out,
                            vd_err *err);
    const struct vd_emitted_source *(*served)(const vd_emitter *emitter); /* for vd_source.served */
} vd_backend;

/* All that there are; the last one is NULL. The layer that has them defines it. */
extern const vd_backend *const vd_backends[];
/* The one that a program is run on alone; NULL: in fixed order. */
const vd_backend *vd_backend_of(const vd_program *program);

/* ---- calls of a table; {0}: the run is in fixed order, and they do nothing ---- */

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
void vd_emit_drop(vd_emitting *e); /* the same, where nothing more is said */

#endif
