/* A finished run whose steps a team executes again: rank 0 answers questions about the run, and the
 * other ranks do their part of what it computes. */
#ifndef VD_TEAM_REPLAYS_H
#define VD_TEAM_REPLAYS_H

#include "verde/exec/replay_team.h"
#include "verde/team/member.h"

/* Must not move. After a failure in one process the others would wait for ever, so the team is of
 * no more use: `broke` is called once, and all later calls fail. */
typedef struct {
    vd_member *member; /* borrowed */
    vd_hash program_hash;
    bool broken;
    vd_err why; /* the first failure */
    void (*broke)(void *user);
    void *user;
} vd_replays;

/* For rank 0, before any other call. `broke` may be NULL. */
VD_MUST_USE vd_status vd_replays_open(vd_replays *replays, vd_member *member,
                                      void (*broke)(void *user), void *user, vd_err *err);
/* The functions for vd_replay_share at rank 0. */
vd_replay_team vd_replays_team(vd_replays *replays);
/* Lets the other ranks return from vd_replays_follow. */
VD_MUST_USE vd_status vd_replays_close(vd_replays *replays, vd_err *err);

/* Runs the part of any other rank; it sleeps between commands. exec->part is the member's. */
VD_MUST_USE vd_status vd_replays_follow(vd_member *member, const vd_exec *exec, vd_err *err);

#endif
