/* Another provider's run as a source, to compare with our own: only what differs is asked for, the
 * rest is taken from our run. Nothing is judged. VD_ERR_PEER: the provider's answer is wrong. */
#ifndef VD_REMOTE_RUN_H
#define VD_REMOTE_RUN_H

#include "verde/protocol/audit_line.h"

typedef struct vd_remote_run vd_remote_run;

/* `own`: a run of the same program with `checkpoints` checkpoints. All arguments are borrowed. */
VD_MUST_USE vd_status vd_remote_run_open(const vd_audit_line *line, const vd_source *own,
                                         uint32_t checkpoints, vd_remote_run **out, vd_err *err);
void vd_remote_run_close(vd_remote_run *run); /* accepts NULL */
/* Returns a source with `run`, `states`, `trace`, `leaves`, `tensor` and `fold`. Behind the first
 * difference, states are zeros and parts are our own. */
vd_source vd_remote_run_source(vd_remote_run *run);

#endif
