/* `verde serve` as one of several processes that MPI started; rank 0 answers. */
#ifndef VD_SERVE_TEAM_H
#define VD_SERVE_TEAM_H

#include "verde/run/run_processes.h"
#include "verde/team/replays.h"

/* Must not be moved. All zeros: a single process. */
typedef struct {
    vd_run_processes processes;
    vd_replays replays;
    vd_replay_team team;
    bool leads;
} vd_serve_team;

/* VD_ERR_USAGE if MPI started several processes: only one can serve `dir`, because of `why`. */
VD_MUST_USE vd_status vd_serve_alone(const char *dir, const char *why, vd_err *err);
/* Joins the other processes if MPI started any. *follows: this one was not rank 0, and has done
 * what rank 0 asked until it was let go. */
VD_MUST_USE vd_status vd_serve_join(vd_serve_team *team, const vd_loaded *loaded, bool *follows,
                                    vd_err *err);
/* On rank 0: shares the replay with the others. `broke` is called by the answering thread when the
 * others have become useless. */
VD_MUST_USE vd_status vd_serve_share(vd_serve_team *team, vd_exec *exec, void (*broke)(void *user),
                                     void *user, vd_err *err);
/* Returns the error that broke the team, if any, otherwise `status`. */
vd_status vd_serve_outcome(const vd_serve_team *team, vd_status status, vd_err *err);
/* Lets the other processes go if `whole`; otherwise they are ended. */
void vd_serve_leave(vd_serve_team *team, bool whole);

#endif
