/* The backend's state of a run in progress, or executed again. Private to verde/log. */
#ifndef VD_LOG_EMITTER_H
#define VD_LOG_EMITTER_H

#include "verde/log/run.h"
#include "verde/log/served.h"

struct json_t; /* from jansson */

struct vd_emitter {
    vd_rounded *rounded;
    /* of a run in progress */
    const vd_run_options *options; /* NULL: the run is executed again */
    const vd_run_rounding *rounding;
    vd_log_run run;
    int64_t step;          /* the current step */
    vd_hash *root;         /* of the logs since the last checkpoint; owned */
    uint32_t roots, ended; /* since then: number of known roots, and of ended steps */
    uint64_t bytes;
    /* of a run that is executed again */
    vd_emitted_run again;
    vd_thresholds thresholds;
    vd_emitted_source served;
};

/* ---- functions of the table in exec/backend.h, by file ---- */

/* run.c */
VD_MUST_USE vd_status vd_log_allows(const vd_run_options *options, vd_err *err);
VD_MUST_USE vd_status vd_log_choose(const vd_run_options *options, const vd_hash *program,
                                    vd_run_log *out, vd_err *err);
VD_MUST_USE vd_status vd_log_goes_on(const vd_run_options *options, const vd_run_log *log,
                                     vd_err *err);
VD_MUST_USE vd_status vd_log_open_run(const vd_run_options *options, const vd_run_log *log,
                                      vd_exec *exec, vd_emitter **out, vd_err *err);
VD_MUST_USE vd_status vd_log_begin_step(vd_emitter *emitter, int64_t step, vd_err *err);
VD_MUST_USE vd_status vd_log_end_step(vd_emitter *emitter, vd_err *err);
VD_MUST_USE vd_status vd_log_close_run(vd_emitter *emitter, vd_status status, vd_err *err);
/* checkpoint.c */
/* Takes the root of an ended step, whose log is on disk. It is not in the table. */
VD_MUST_USE vd_status vd_log_take_root(vd_emitter *emitter, int64_t step, vd_err *err);
VD_MUST_USE vd_status vd_log_checkpoint(vd_emitter *emitter, int64_t step, vd_run_log *log,
                                        vd_hash *out, vd_err *err);
VD_MUST_USE vd_status vd_log_agree(vd_emitter *emitter, vd_run_log *log, vd_err *err);
/* run_json.c */
extern const char *const vd_log_members[];
VD_MUST_USE vd_status vd_log_read_json(const struct json_t *root, vd_run_log *log, vd_err *err);
void vd_log_write_json(const vd_run_log *log, struct json_t *root);
const char *vd_log_ran_on(const vd_run_log *log);
/* check.c */
VD_MUST_USE vd_status vd_log_check_emitted(const vd_check *check, uint32_t first, uint32_t count,
                                           vd_err *err);
/* diverge.c */
VD_MUST_USE vd_status vd_log_compare_emitted(const vd_diverge_side side[2], uint32_t checkpoint,
                                             vd_divergence *out, bool *found, vd_err *err);
/* again.c */
VD_MUST_USE vd_status vd_log_open_again(const vd_emitted_run *run, vd_exec *exec, vd_emitter **out,
                                        vd_err *err);
const vd_emitted_source *vd_log_served(const vd_emitter *emitter);

#endif
