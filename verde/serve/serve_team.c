/* This file serves a run as one of several processes, of which only rank 0 answers. */
#include "verde/serve/serve_team.h"

#include <signal.h>

vd_status vd_serve_alone(const char *dir, const char *why, vd_err *err) {
    return vd_mpi_processes() == 1
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE, "%s: %s is served by one process, and MPI started %u",
                         dir, why, vd_mpi_processes());
}

/* Follows rank 0, which ends the other ranks: signals that reach all of them are ignored here. */
static vd_status follow(vd_serve_team *team, const vd_loaded *loaded, vd_err *err) {
    vd_exec exec = loaded->exec;
    exec.part = vd_run_part(&team->processes);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    return vd_replays_follow(&team->processes.member, &exec, err);
}

vd_status vd_serve_join(vd_serve_team *team, const vd_loaded *loaded, bool *follows, vd_err *err) {
    vd_status status = vd_run_join(loaded, &team->processes, err);
    *follows = status == VD_OK && vd_run_follows(&team->processes);
    return *follows ? follow(team, loaded, err) : status;
}

vd_status vd_serve_share(vd_serve_team *team, vd_exec *exec, void (*broke)(void *user), void *user,
                         vd_err *err) {
    exec->part = vd_run_part(&team->processes);
    if (!exec->part)
        return VD_OK;
    vd_status status = vd_replays_open(&team->replays, &team->processes.member, broke, user, err);
    team->leads = status == VD_OK;
    team->team = vd_replays_team(&team->replays);
    return status;
}

vd_status vd_serve_outcome(const vd_serve_team *team, vd_status status, vd_err *err) {
    const vd_replays *r = &team->replays;
    return r->broken ? vd_fail(err, r->why.status, "%s", r->why.text) : status;
}

void vd_serve_leave(vd_serve_team *team, bool whole) {
    vd_err ignored;
    if (team->leads && whole)
        whole = vd_replays_close(&team->replays, &ignored) == VD_OK;
    vd_run_leave(&team->processes, whole);
}
