/* The rounding logs of a run that is replayed. Private to verde/exec/replay.c. */
#ifndef VD_REPLAY_LOGS_H
#define VD_REPLAY_LOGS_H

#include "verde/exec/source.h"
#include "verde/exec/store.h"

typedef struct {
    const char *dir; /* borrowed, as `program` and `log` are */
    const vd_program *program;
    const vd_run_log *log;
    vd_rounded *rounded; /* NULL: the run is in fixed order, and all of this does nothing */
    vd_thresholds thresholds;
} vd_replay_logs;

/* Sets exec->free. VD_ERR_USAGE: this run cannot be asked about, and why. */
VD_MUST_USE vd_status vd_replay_logs_open(vd_replay_logs *logs, vd_exec *exec, vd_err *err);
/* Before a step is executed again. */
VD_MUST_USE vd_status vd_replay_logs_begin(vd_replay_logs *logs, int64_t step, vd_err *err);
void vd_replay_logs_close(vd_replay_logs *logs);

/* vd_source.section and .note. */
VD_MUST_USE vd_status vd_replay_section(const vd_replay_logs *logs, int64_t step, uint64_t index,
                                        vd_section_proof *out, vd_err *err);
VD_MUST_USE vd_status vd_replay_note(const vd_replay_logs *logs, uint64_t leaf,
                                     const vd_public_key *trainer, vd_buf *out, vd_err *err);

#endif
