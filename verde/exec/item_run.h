/* A run of tokens on disk: DIR/program, DIR/journal with what each step wrote, an image of the
 * whole state every VD_IMAGE_STEPS steps, and DIR/run.json as any run has it. */
#ifndef VD_ITEM_RUN_H
#define VD_ITEM_RUN_H

#include "verde/exec/batch.h"
#include "verde/exec/journal.h"
#include "verde/exec/store.h"

typedef struct {
    char dir[1024];
    vd_hash program; /* its hash */
    vd_run_log log;  /* all states so far */
    uint32_t saved;  /* of them are in run.json */
    vd_journal journal;
} vd_item_run;

/* Begins a run in `dir`, or goes on with the one that lies there: *from is the last state that the
 * journal leads to, owned by the caller; zeros if there is none. The run is finished if log.count
 * says so. VD_ERR_USAGE: `dir` holds something else, or what was on disk is damaged. */
VD_MUST_USE vd_status vd_item_run_open(ro_ctx *ro, const char *dir, const vd_program *program,
                                       vd_item_run *out, vd_state *from, vd_err *err);
void vd_item_run_close(vd_item_run *run); /* harmless twice, and to what open refused */
bool vd_item_run_finished(const vd_item_run *run, const vd_program *program);
/* Takes the next state. Before an image, and after the last state, all of the state is hashed
 * anew: VD_ERR_LOCAL, with the leaf's name, if that gives another commitment. The journal then ends
 * with the image before. */
VD_MUST_USE vd_status vd_item_run_reached(vd_item_run *run, ro_ctx *ro,
                                          const vd_batch_state *reached, vd_err *err);

#endif
