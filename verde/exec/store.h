/* A run on disk: its program, checkpoints and commitments. After a crash, files are whole or
 * absent. */
#ifndef VD_STORE_H
#define VD_STORE_H

#include "verde/exec/exec.h"
#include "verde/exec/stated.h"

enum {
    VD_KEEP_MIN = 2,           /* the first state and the last one */
    VD_RUN_STATE_BYTES = 192,  /* bytes of run.json: most per checkpoint, in fixed order */
    VD_CHECKPOINT_BYTES = 288, /* bytes of DIR/checkpoints: most per line (checkpoints.c) */
};

/* The contents of run.json. */
typedef struct {
    vd_hash program;
    int64_t *step; /* of each checkpoint; owned */
    /* S of each checkpoint, without VD_FAULT_HISTORY, which readers apply; owned. */
    vd_hash *state;
    uint32_t count;
    float loss_first, loss_last;
    int64_t losses; /* number of steps with a loss */
    /* At most `keep` states are kept on disk (0: all): at every `kept_every`-th checkpoint, from
     * S_0 on, and the last one. */
    int32_t keep, kept_every;
    char fault[128];                  /* text of --fault; "": none */
    const struct vd_backend *backend; /* NULL: fixed order, and the next four are zeros */
    void *of_backend;     /* the backend's own members of run.json; owned, one allocation */
    bool backend_changed; /* of_backend changed since run.json was read or written */
    vd_hash name;         /* name of the run, chosen by itself */
    vd_hash *emitted;     /* of each: root of what was emitted since the checkpoint before; owned */
    vd_machine *machine;  /* machines that ran it, as stated; owned */
    uint32_t machine_count, saved_machines;
    struct vd_guard_finding *found; /* findings of --guard, in order; owned */
    uint32_t found_count, saved_found;
    vd_ran *stated; /* of each checkpoint: machine and time since the one before; owned */
    uint32_t saved; /* number of checkpoints in run.json; 0: it was not read or written */
} vd_run_log;

void vd_run_log_free(vd_run_log *log);
/* The last checkpoint up to `index` whose state is kept; the number of kept states. */
uint32_t vd_run_log_kept(const vd_run_log *log, uint32_t index);
uint32_t vd_run_log_kept_count(const vd_run_log *log);
/* How many of checkpoints 0..last are kept: every `every`-th one, and the last. */
uint32_t vd_kept_count(uint32_t last, uint32_t every);
/* Appends a checkpoint. `emitted`: root of its records, for a run with a backend; else NULL. */
VD_MUST_USE vd_status vd_run_log_put(vd_run_log *log, int64_t step, const vd_hash *state,
                                     const vd_hash *emitted, vd_err *err);

/* Sets the machine and time of the last checkpoint. */
VD_MUST_USE vd_status vd_run_log_state(vd_run_log *log, const vd_machine *machine,
                                       int64_t microseconds, vd_err *err);

/* Stores the program in DIR, which is created. VD_ERR_USAGE: DIR has files of something else. */
VD_MUST_USE vd_status vd_store_create(const char *dir, const vd_program *program, vd_err *err);
VD_MUST_USE vd_status vd_store_program(const char *dir, vd_program *out, vd_err *err);

/* Computes the root over the listed checkpoints. For a finished run without VD_FAULT_HISTORY it is
 * the run root. */
VD_MUST_USE vd_status vd_run_log_root(const vd_run_log *log, vd_hash *out, vd_err *err);
/* Checks that the number and steps of the checkpoints fit the program. VD_ERR_PEER says what does
 * not. */
VD_MUST_USE vd_status vd_run_log_fits(const vd_run_log *log, const vd_program *program,
                                      const char *dir, vd_err *err);

VD_MUST_USE vd_status vd_store_save_log(const char *dir, vd_run_log *log, vd_err *err);
/* Records the one checkpoint that the log has more than when this or vd_store_save_log was last
 * called. Writes run.json as a whole for the `last` checkpoint of the run, when the checkpoints
 * have doubled since it was written, and when more changed than one line can say. */
VD_MUST_USE vd_status vd_store_add_checkpoint(const char *dir, vd_run_log *log, bool last,
                                              vd_err *err);
/* Called after run.json was saved, and after it was loaded. */
VD_MUST_USE vd_status vd_store_drop_checkpoints(const char *dir, vd_err *err);
VD_MUST_USE vd_status vd_store_load_checkpoints(const char *dir, vd_run_log *log, vd_err *err);
/* VD_ERR_USAGE: there is no run.json yet. VD_ERR_PEER: it is malformed, or its root is wrong. */
VD_MUST_USE vd_status vd_store_load_log(const char *dir, vd_run_log *log, vd_err *err);

/* Deletes states until log->keep are left, evenly spaced. The log was saved with its last
 * checkpoint, and is saved again if the spacing grows. If it does not grow, only the state before
 * the last one can go, unless `all` asks to look at every checkpoint. */
VD_MUST_USE vd_status vd_store_thin(const char *dir, vd_run_log *log, bool all, vd_err *err);

/* The path of a state's file, which is named by its commitment, and writing it. */
void vd_store_state_path(char path[1024], const char *dir, const vd_hash *commitment);
VD_MUST_USE vd_status vd_store_save_state(const char *dir, const vd_program *program,
                                          const vd_state *state, const vd_hash *commitment,
                                          vd_err *err);
/* Like vd_store_save_state, with tensors that are requested one after another. */
typedef struct {
    /* Returns leaf `leaf` in host memory, valid until `drop`; NULL: see *err. */
    const void *(*leaf)(void *user, uint32_t leaf, vd_err *err);
    void (*drop)(void *user);
    void *user;
} vd_leaf_stream;
VD_MUST_USE vd_status vd_store_save_leaves(const char *dir, const vd_program *program,
                                           const vd_leaf_stream *leaves, const vd_hash *commitment,
                                           vd_err *err);
/* Loads a state from its file, or, if there is none, from the run's journal. VD_ERR_IO: there is
 * neither, or the bytes do not give `commitment`. *out is empty after an error. */
VD_MUST_USE vd_status vd_store_load_state(ro_ctx *ro, const char *dir, const vd_program *program,
                                          const vd_hash *program_hash, int64_t step,
                                          const vd_hash *commitment, vd_state *out, vd_err *err);
/* Like vd_store_load_state, from a file only. */
VD_MUST_USE vd_status vd_store_load_file(ro_ctx *ro, const char *dir, const vd_program *program,
                                         const vd_hash *program_hash, int64_t step,
                                         const vd_hash *commitment, vd_state *out, vd_err *err);

#endif
