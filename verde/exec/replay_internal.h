/* A run on disk that questions are answered about by executing it again. Private to replay*.c. */
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
    VD_REPLAY_ROOM = 16,    /* of these: for leaves of a device's state, and one node */
};

typedef struct {
    uint32_t value;
    void *data;
} vd_cached;

struct vd_replay {
    char dir[1024];
    vd_exec own;         /* as given, with the kernels of the run's backend */
    const vd_exec *exec; /* that */
    vd_run_log log;      /* as it was read, for good: other threads read it too */
    vd_hash log_seal;    /* of what it commits to */
    vd_hash run_root;
    const vd_replay_team *team; /* NULL: this process alone; else of exec->part */
    bool journaled;             /* the run keeps a journal, which leads to every state */
    bool stored_only;           /* nothing is executed: its data may not have been read */
    vd_emitting emits;
    vd_state at;  /* the last state reached; tensor NULL: none */
    vd_kept kept; /* states, traces and commitments that were asked for before */
    vd_cached cache[VD_REPLAY_CACHE]; /* outputs of nodes of step cache_step */
    uint32_t cached;
    int64_t cache_step;
    int64_t captured, captured_to; /* nodes of cache_step whose outputs and inputs are in it: from
                                      this one up to before that one; -1: none */
    vd_kept_trees trees;
    int32_t step_word;
    atomic_llong done, of; /* steps of the re-execution under way, and how many it has */
    atomic_bool stop;
    atomic_ullong executed;
};

/* Brings r->at to the given step. */
VD_MUST_USE vd_status vd_replay_reach(vd_replay *r, int64_t step, vd_err *err);

/* ---- replay_team.c: of r->at, by this process or with the team ---- */

VD_MUST_USE vd_status vd_replay_init(vd_replay *r, vd_err *err);
/* r->at was read from disk. */
VD_MUST_USE vd_status vd_replay_take(vd_replay *r, vd_err *err);
VD_MUST_USE vd_status vd_replay_step(vd_replay *r, vd_err *err);
VD_MUST_USE vd_status vd_replay_hash(vd_replay *r, vd_hash *tensor, vd_hash *out, vd_err *err);
VD_MUST_USE vd_status vd_replay_trace(vd_replay *r, int64_t step, vd_records *out, vd_err *err);
/* The observer sees one node at least, and its inputs that are no sources. */
VD_MUST_USE vd_status vd_replay_observe(vd_replay *r, int64_t step, uint32_t node,
                                        const vd_observer *observer, vd_err *err);
/* In host memory; *copy is the caller's. NULL on failure. */
const void *vd_replay_leaf(vd_replay *r, uint32_t index, void **copy, vd_err *err);

/* ---- replay_tensors.c ---- */

/* Frees the cached outputs of nodes. */
void vd_replay_clear(vd_replay *r);
/* vd_source.tensor, .tree and .fold; `user` is the replay. */
VD_MUST_USE vd_status vd_replay_tensor(void *user, int64_t step, uint32_t value, const void **data,
                                       vd_err *err);
VD_MUST_USE vd_status vd_replay_tree(void *user, int64_t step, uint32_t value, const void *data,
                                     const vd_tree **out, vd_err *err);
VD_MUST_USE vd_status vd_replay_fold(void *user, int64_t step, uint32_t node, int64_t element,
                                     vd_records *out, vd_err *err);

#endif
