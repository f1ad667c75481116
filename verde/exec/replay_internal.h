/* A replay: a run on disk, executed again to answer questions. Private to replay*.c. */
#ifndef VD_REPLAY_INTERNAL_H
#define VD_REPLAY_INTERNAL_H

#include <stdatomic.h>

#include "verde/exec/backend.h"
#include "verde/exec/kept_trees.h"
#include "verde/exec/replay_kept.h"
#include "verde/exec/replay_team.h"
#include "verde/exec/run.h"

enum {
    VD_REPLAY_CACHE = 1024, /* tensors of one step */
    VD_REPLAY_ROOM = 16,    /* of these, reserved for leaves of a device's state and one node */
};

typedef struct {
    uint32_t value;
    void *data;
} vd_cached;

struct vd_replay {
    char dir[1024];
    vd_exec own;         /* as given, plus the kernels of the run's backend */
    const vd_exec *exec; /* points to `own` */
    vd_run_log log;      /* never changes after reading, as other threads read it too */
    vd_hash log_seal;    /* seal of what it commits to */
    vd_hash run_root;
    const vd_replay_team *team; /* NULL: this process works alone; else exec->part is its part */
    bool journaled;             /* the run's journal leads to all states */
    bool stored_only;           /* executes nothing, perhaps without data */
    vd_emitting emits;
    vd_state at;                      /* last state reached; its tensor is NULL if there is none */
    vd_kept kept;                     /* results of earlier questions */
    vd_cached cache[VD_REPLAY_CACHE]; /* outputs and inputs of nodes of step cache_step */
    uint32_t cached;
    int64_t cache_step;
    int64_t captured, captured_to; /* cached nodes of cache_step, the last excluded; -1: none */
    vd_kept_trees trees;
    int32_t step_word;
    atomic_llong done, of; /* progress of the current re-execution: steps done, and steps in all */
    atomic_bool stop;
    atomic_ullong executed;
};

/* Advances r->at to a step. */
VD_MUST_USE vd_status vd_replay_reach(vd_replay *r, int64_t step, vd_err *err);

/* ---- replay_team.c: these work on r->at, with the team if there is one ---- */

VD_MUST_USE vd_status vd_replay_init(vd_replay *r, vd_err *err);
/* Distributes r->at after it was read from disk. */
VD_MUST_USE vd_status vd_replay_take(vd_replay *r, vd_err *err);
VD_MUST_USE vd_status vd_replay_step(vd_replay *r, vd_err *err);
VD_MUST_USE vd_status vd_replay_hash(vd_replay *r, vd_hash *tensor, vd_hash *out, vd_err *err);
VD_MUST_USE vd_status vd_replay_trace(vd_replay *r, int64_t step, vd_records *out, vd_err *err);
/* Runs a step; the observer sees at least `node`, with its inputs that are nodes' outputs. */
VD_MUST_USE vd_status vd_replay_observe(vd_replay *r, int64_t step, uint32_t node,
                                        const vd_observer *observer, vd_err *err);
/* Returns a leaf in host memory. The caller frees *copy. NULL on failure. */
const void *vd_replay_leaf(vd_replay *r, uint32_t index, void **copy, vd_err *err);

/* ---- replay_tensors.c ---- */

/* Frees the cached outputs of nodes. */
void vd_replay_clear(vd_replay *r);
/* Implement vd_source.tensor, .tree and .fold; `user` is the replay. */
VD_MUST_USE vd_status vd_replay_tensor(void *user, int64_t step, uint32_t value, const void **data,
                                       vd_err *err);
VD_MUST_USE vd_status vd_replay_tree(void *user, int64_t step, uint32_t value, const void *data,
                                     const vd_tree **out, vd_err *err);
VD_MUST_USE vd_status vd_replay_fold(void *user, int64_t step, uint32_t node, int64_t element,
                                     vd_records *out, vd_err *err);

#endif
