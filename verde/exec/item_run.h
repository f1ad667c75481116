/* A run of tokens on disk: DIR/program, DIR/journal with the writes of each step, an image of the
 * whole state every VD_IMAGE_STEPS steps, and DIR/run.json as for any run. */
#ifndef VD_ITEM_RUN_H
#define VD_ITEM_RUN_H

#include "verde/exec/batch.h"
#include "verde/exec/journal.h"
#include "verde/exec/store.h"

typedef struct {
    char dir[1024];
    vd_hash program; /* its hash */
    vd_run_log log;  /* all states so far */
    uint32_t saved;  /* number of these in run.json */
    vd_journal journal;
} vd_item_run;

/* Starts a run in `dir`, or resumes it: *from is the last state that the journal leads to, which
 * the caller owns, or zeros if there is none. log.count shows whether the run is finished.
 * VD_ERR_USAGE: `dir` holds something else. VD_ERR_PEER: files are damaged. */
VD_MUST_USE vd_status vd_item_run_open(ro_ctx *ro, const char *dir, const vd_program *program,
                                       vd_item_run *out, vd_state *from, vd_err *err);
void vd_item_run_close(vd_item_run *run); /* may be called twice, and after a failed open */
bool vd_item_run_finished(const vd_item_run *run, const vd_program *program);
/* Takes the next state. Before an image and after the last state the whole state is hashed anew;
 * VD_ERR_LOCAL names a leaf that differs, and the journal is cut back to the last image. */
VD_MUST_USE vd_status vd_item_run_reached(vd_item_run *run, ro_ctx *ro,
                                          const vd_batch_state *reached, vd_err *err);

#endif
