/* A run on disk: its program, checkpoints and what was committed. Crash-safe: a file is whole or
 * absent. */
#ifndef VD_STORE_H
#define VD_STORE_H

#include "verde/exec/exec.h"
#include "verde/exec/stated.h"

enum {
    VD_KEEP_MIN = 2,           /* the first state and the last one */
    VD_RUN_STATE_BYTES = 192,  /* of run.json, at most for each checkpoint in fixed order; */
    VD_CHECKPOINT_BYTES = 288, /* of a line of DIR/checkpoints (checkpoints.c) */
};

/* run.json: everything but the tensors. */
typedef struct {
    vd_hash program;
    int64_t *step; /* of each checkpoint so far; owned */
    /* S of each checkpoint, without faults in the commitment, which reading applies; owned. */
    vd_hash *state;
    uint32_t count;
    float loss_first, loss_last;
    int64_t losses; /* steps whose loss was seen */
    /* At most `keep` states stay on disk, 0: all. They are those of every `kept_every`-th
     * checkpoint, from S_0 on, and of the last one. */
    int32_t keep, kept_every;
    char fault[128];                  /* as given to --fault; empty: none */
    const struct vd_backend *backend; /* that it ran on (backend.h); NULL: in fixed order, and then
                                         the next four are zeros */
    void *of_backend;     /* what the backend keeps of itself in run.json; owned, of one piece */
    bool backend_changed; /* that, since run.json was read or written */
    vd_hash name;         /* that the run has chosen for itself */
    vd_hash *emitted;     /* of each checkpoint: root over what was emitted since the one before;
                             owned */
    vd_machine *machine;  /* that ran it, as they say of themselves; owned */
    uint32_t machine_count, saved_machines;
    struct vd_guard_finding *found; /* by --guard, in this order; owned */
    uint32_t found_count, saved_found;
    vd_ran *stated; /* of each checkpoint: what led to it from the one before; owned */
    uint32_t saved; /* checkpoints that run.json has; 0: it was not read or written */
} vd_run_log;

void vd_run_log_free(vd_run_log *log);
/* The last checkpoint up to `index` whose state is kept, and how many are. */
uint32_t vd_run_log_kept(const vd_run_log *log, uint32_t index);
uint32_t vd_run_log_kept_count(const vd_run_log *log);
/* How many of the checkpoints 0 to `last` are kept: every `every`-th, and the last. */
uint32_t vd_kept_count(uint32_t last, uint32_t every);
/* `emitted`: the root over that, of a run with a backend; else NULL. */
VD_MUST_USE vd_status vd_run_log_put(vd_run_log *log, int64_t step, const vd_hash *state,
                                     const vd_hash *emitted, vd_err *err);

/* Says of the last checkpoint who led to it. */
VD_MUST_USE vd_status vd_run_log_state(vd_run_log *log, const vd_machine *machine,
                                       int64_t microseconds, vd_err *err);

/* Creates DIR if needed and stores the program's canonical bytes. VD_ERR_USAGE: files that are no
 * run's lie there. */
VD_MUST_USE vd_status vd_store_create(const char *dir, const vd_program *program, vd_err *err);
VD_MUST_USE vd_status vd_store_program(const char *dir, vd_program *out, vd_err *err);

/* Root over the checkpoints as they are listed. For a finished run without VD_FAULT_HISTORY it is
 * the run root. */
VD_MUST_USE vd_status vd_run_log_root(const vd_run_log *log, vd_hash *out, vd_err *err);
/* Do the program, the number of checkpoints and their steps fit? VD_ERR_PEER: no, and what does
 * not. */
VD_MUST_USE vd_status vd_run_log_fits(const vd_run_log *log, const vd_program *program,
                                      const char *dir, vd_err *err);

VD_MUST_USE vd_status vd_store_save_log(const char *dir, vd_run_log *log, vd_err *err);
/* The log has one checkpoint more than when it was saved or this was called last: writes what is
 * needed to read it again, and run.json whole if it is the run's last one. */
VD_MUST_USE vd_status vd_store_add_checkpoint(const char *dir, vd_run_log *log, bool last,
                                              vd_err *err);
/* vd_store_save_log and vd_store_load_log call these once run.json is there. */
VD_MUST_USE vd_status vd_store_drop_checkpoints(const char *dir, vd_err *err);
VD_MUST_USE vd_status vd_store_load_checkpoints(const char *dir, vd_run_log *log, vd_err *err);
/* VD_ERR_USAGE if there is none yet, VD_ERR_PEER if it is broken, or its states do not give the
 * root that it names. */
VD_MUST_USE vd_status vd_store_load_log(const char *dir, vd_run_log *log, vd_err *err);

/* Deletes states until log->keep are left, evenly apart. The log was saved with the last one, and
 * is saved again if the distance has grown. If it has not, `all` looks at those of all checkpoints,
 * not only at the one before the last, which is all that one more makes to go. */
VD_MUST_USE vd_status vd_store_thin(const char *dir, vd_run_log *log, bool all, vd_err *err);

/* The state's tensors, in a file named by its commitment. */
void vd_store_state_path(char path[1024], const char *dir, const vd_hash *commitment);
VD_MUST_USE vd_status vd_store_save_state(const char *dir, const vd_program *program,
                                          const vd_state *state, const vd_hash *commitment,
                                          vd_err *err);
/* The same, of tensors that are asked for one after the other. */
typedef struct {
    /* Leaf `leaf` in host memory, until `drop` is called; NULL: *err says why. */
    const void *(*leaf)(void *user, uint32_t leaf, vd_err *err);
    void (*drop)(void *user);
    void *user;
} vd_leaf_stream;
VD_MUST_USE vd_status vd_store_save_leaves(const char *dir, const vd_program *program,
                                           const vd_leaf_stream *leaves, const vd_hash *commitment,
                                           vd_err *err);
/* From a file, or where there is none from the run's journal. Refuses bytes that do not give
 * `commitment`; VD_ERR_IO then, and if neither is there. *out is empty after an error. */
VD_MUST_USE vd_status vd_store_load_state(ro_ctx *ro, const char *dir, const vd_program *program,
                                          const vd_hash *program_hash, int64_t step,
                                          const vd_hash *commitment, vd_state *out, vd_err *err);
/* The same from a file alone. */
VD_MUST_USE vd_status vd_store_load_file(ro_ctx *ro, const char *dir, const vd_program *program,
                                         const vd_hash *program_hash, int64_t step,
                                         const vd_hash *commitment, vd_state *out, vd_err *err);

#endif
