/* This file runs `verde run` in one of several processes that MPI started. */
#include "verde/run/run_processes.h"

/* Lets only the first process report why all refuse; it then ends the others. */
static vd_status refuse_once(const vd_transport *t, vd_status status, vd_err *err) {
    vd_err ignored;
    uint8_t never;
    if (t->rank == 0)
        return status;
    return t->receive(t->user, 0, 0, &never, sizeof never, &ignored) == VD_OK ? status
                                                                              : err->status;
}

static void say_lost(const char *sentence) {
    fprintf(stderr, "%sverde: %s\n", vd_is_terminal() ? "\r\033[K" : "", sentence);
}

vd_status vd_run_join(const vd_loaded *loaded, vd_run_processes *out, vd_err *err) {
    if (vd_mpi_processes() == 1)
        return VD_OK;
    vd_status status = vd_mpi_join(say_lost, &out->mpi, err);
    if (status != VD_OK)
        return status;
    const vd_transport t = vd_mpi_transport(out->mpi);
    status = vd_team_plan_create(&loaded->program, t.ranks, &out->plan, err);
    if (status != VD_OK)
        return refuse_once(&t, status, err);
    vd_member_open(&out->member, &out->plan, &t);
    out->lead = vd_member_lead(&out->member);
    return VD_OK;
}

bool vd_run_follows(const vd_run_processes *p) {
    return p->mpi && p->member.transport.rank != 0;
}

const vd_exec_part *vd_run_part(const vd_run_processes *p) {
    return p->mpi ? &p->member.part : NULL;
}

void vd_run_leave(vd_run_processes *p, bool whole) {
    vd_mpi_leave(p->mpi, whole);
    vd_team_plan_free(&p->plan);
    *p = (vd_run_processes){0};
}
