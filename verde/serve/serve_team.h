/* `verde serve` as one of several processes that MPI started: the first one answers. */
#ifndef VD_SERVE_TEAM_H
#define VD_SERVE_TEAM_H

#include "verde/run/run_processes.h"
#include "verde/team/replays.h"

/* Stays where it is. All zeros: one process. */
typedef struct {
    vd_run_processes processes;
    vd_replays replays;
    vd_replay_team team;
    bool leads;
} vd_serve_team;

/* VD_ERR_USAGE if MPI started others: what is served in `dir`, `why`, is one process's. */
VD_MUST_USE vd_status vd_serve_alone(const char *dir, const char *why, vd_err *err);
/* Joins the others, if MPI started any. *follows: this process has done what the first one said,
 * until that one let it go. */
VD_MUST_USE vd_status vd_serve_join(vd_serve_team *team, const vd_loaded *loaded, bool *follows,
                                    vd_err *err);
/* At the first process: the replay is shared with the others. `broke` is called by the thread that
 * answers, once the others are of no more use. */
VD_MUST_USE vd_status vd_serve_share(vd_serve_team *team, vd_exec *exec, void (*broke)(void *user),
                                     void *user, vd_err *err);
/* What broke the team is the reason why serving ended: instead of `status`. */
vd_status vd_serve_outcome(const vd_serve_team *team, vd_status status, vd_err *err);
/* Lets the others go if all is well; else they are ended. */
void vd_serve_leave(vd_serve_team *team, bool whole);

#endif
