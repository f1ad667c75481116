/* What all ranks do of a replay's steps. Private to verde/team. */
#ifndef VD_TEAM_REPLAYS_INTERNAL_H
#define VD_TEAM_REPLAYS_INTERNAL_H

#include "verde/team/leaves.h"
#include "verde/team/replays.h"

typedef enum {
    VD_REPLAY_PROGRAM, /* the first: is it the same one? */
    VD_REPLAY_INIT,
    VD_REPLAY_SPREAD,
    VD_REPLAY_STEP,
    VD_REPLAY_HASH,
    VD_REPLAY_TRACE,
    VD_REPLAY_OBSERVE, /* argument: the node */
    VD_REPLAY_LEAF,    /* argument: the leaf */
    VD_REPLAY_END,
} vd_replay_kind;

typedef struct {
    uint32_t kind, argument;
    int64_t step; /* of the state that it is about */
    vd_hash program;
} vd_replay_command;

/* ---- replays_shared.c: each is called by all ranks ---- */

VD_MUST_USE vd_status vd_shared_init(vd_member *member, const vd_exec *exec, vd_state *out,
                                     vd_err *err);
/* Rank 0 gets the records; the others' `out` is NULL. */
VD_MUST_USE vd_status vd_shared_trace(vd_member *member, const vd_exec *exec,
                                      const vd_hash *program_hash, const vd_state *before,
                                      vd_records *out, vd_err *err);
/* The observer is rank 0's; the others' is NULL. */
VD_MUST_USE vd_status vd_shared_observe(vd_member *member, const vd_exec *exec,
                                        const vd_state *before, uint32_t node,
                                        const vd_observer *observer, vd_err *err);

#endif
