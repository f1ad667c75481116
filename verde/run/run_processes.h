/* `verde run` as one of several processes that MPI started. */
#ifndef VD_RUN_PROCESSES_H
#define VD_RUN_PROCESSES_H

#include "verde/load/load.h"
#include "verde/team/member.h"
#include "verde/team/mpi.h"

/* Must not move. All zeros: a single process. */
typedef struct {
    vd_mpi *mpi;
    vd_team_plan plan;
    vd_member member;
    vd_run_team lead;
} vd_run_processes;

/* Joins the other processes, if MPI started any. */
VD_MUST_USE vd_status vd_run_join(const vd_loaded *loaded, vd_run_processes *out, vd_err *err);
/* Returns whether another process writes the run's directory. */
bool vd_run_follows(const vd_run_processes *p);
/* For vd_exec.part; NULL for a single process. */
const vd_exec_part *vd_run_part(const vd_run_processes *p);
/* Leaves; unless `whole`, ends the other processes. */
void vd_run_leave(vd_run_processes *p, bool whole);

#endif
