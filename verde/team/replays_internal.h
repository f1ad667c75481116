/* Parts of a replay that every rank runs. Private to verde/team. */
#ifndef VD_TEAM_REPLAYS_INTERNAL_H
#define VD_TEAM_REPLAYS_INTERNAL_H

#include "verde/team/leaves.h"
#include "verde/team/replays.h"

typedef enum {
    VD_REPLAY_PROGRAM, /* first command: checks that all have the same program */
    VD_REPLAY_INIT,
    VD_REPLAY_SPREAD,
    VD_REPLAY_STEP,
    VD_REPLAY_HASH,
    VD_REPLAY_TRACE,
    VD_REPLAY_OBSERVE, /* argument: node */
    VD_REPLAY_LEAF,    /* argument: leaf */
    VD_REPLAY_END,
} vd_replay_kind;

typedef struct {
    uint32_t kind, argument;
    int64_t step; /* of the state in question */
    vd_hash program;
} vd_replay_command;

/* ---- replays_shared.c: all ranks call each of these ---- */

VD_MUST_USE vd_status vd_shared_init(vd_member *member, const vd_exec *exec, vd_state *out,
                                     vd_err *err);
/* Rank 0 gets the records in `out`; other ranks pass NULL. */
VD_MUST_USE vd_status vd_shared_trace(vd_member *member, const vd_exec *exec,
                                      const vd_hash *program_hash, const vd_state *before,
                                      vd_records *out, vd_err *err);
/* Rank 0 passes the observer; other ranks pass NULL. */
VD_MUST_USE vd_status vd_shared_observe(vd_member *member, const vd_exec *exec,
                                        const vd_state *before, uint32_t node,
                                        const vd_observer *observer, vd_err *err);

#endif
