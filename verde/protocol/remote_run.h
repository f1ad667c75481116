/* A provider's run as a source, for comparing it with one's own: only what differs is asked for,
 * all else is the own run's. Nothing is judged: what the provider says wrong is VD_ERR_PEER. */
#ifndef VD_REMOTE_RUN_H
#define VD_REMOTE_RUN_H

#include "verde/protocol/audit_line.h"

typedef struct vd_remote_run vd_remote_run;

/* `own` is a run of the same program, of which `checkpoints` are there. All is borrowed. */
VD_MUST_USE vd_status vd_remote_run_open(const vd_audit_line *line, const vd_source *own,
                                         uint32_t checkpoints, vd_remote_run **out, vd_err *err);
void vd_remote_run_close(vd_remote_run *run); /* accepts NULL */
/* `run`, `states`, `trace`, `leaves`, `tensor` and `fold`. Of states and parts it has the first
 * that differs; those behind it are zeros, and the own ones. */
vd_source vd_remote_run_source(vd_remote_run *run);

#endif
