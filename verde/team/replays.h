/* A run on disk that a team executes again: rank 0 answers questions about it, and the others do
 * what rank 0 does. */
#ifndef VD_TEAM_REPLAYS_H
#define VD_TEAM_REPLAYS_H

#include "verde/exec/replay_team.h"
#include "verde/team/member.h"

/* Stays where it is. What fails in one process leaves the others waiting, so that the team is of no
 * more use: `broke` is called then, once, and all is refused from there on. */
typedef struct {
    vd_member *member; /* borrowed */
    vd_hash program_hash;
    bool broken;
    vd_err why; /* the first failure */
    void (*broke)(void *user);
    void *user;
} vd_replays;

/* Rank 0, before all else. `broke` may be NULL. */
VD_MUST_USE vd_status vd_replays_open(vd_replays *replays, vd_member *member,
                                      void (*broke)(void *user), void *user, vd_err *err);
/* For vd_replay_share of rank 0. */
vd_replay_team vd_replays_team(vd_replays *replays);
/* Lets the others go. */
VD_MUST_USE vd_status vd_replays_close(vd_replays *replays, vd_err *err);

/* What all other ranks do meanwhile; exec->part is the member's. Between commands they rest. */
VD_MUST_USE vd_status vd_replays_follow(vd_member *member, const vd_exec *exec, vd_err *err);

#endif
