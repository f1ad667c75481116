/* One's own run, executed again from its stored states, on another backend or machine than it ran
 * on. Stretches lie between states that are on disk: each is checked by itself. */
#ifndef VD_RECHECK_H
#define VD_RECHECK_H

#include "verde/exec/divergence.h"
#include "verde/exec/store.h"

typedef struct {
    const char *dir;
    const vd_run_log *log; /* in fixed order; of an unfinished run as far as it came */
    const vd_exec *own;   /* as the run was executed: with its fault on purpose, unless such a fault
                             comes once (vd_field_repeats) */
    const vd_exec *fresh; /* as it is executed now: without a fault */
    /* After each step; may be NULL. Any number of steps of the stretch. */
    void (*progress)(void *user, int64_t steps);
    void *user;
} vd_recheck;

/* Stretch 0 is initialisation; the others lead from one kept state to the next. */
uint32_t vd_recheck_stretches(const vd_run_log *log);
/* The checkpoints that a stretch leads to: first .. last; and from which it begins. */
typedef struct {
    uint32_t from, first, last;
} vd_stretch;
vd_stretch vd_recheck_stretch(const vd_run_log *log, uint32_t stretch);

/* Executes a stretch. *differs: the first checkpoint in it that is not what the run commits to;
 * log->count: none. VD_ERR_IO: the state that it begins with cannot be read. */
VD_MUST_USE vd_status vd_recheck_execute(const vd_recheck *audit, uint32_t stretch,
                                         uint32_t *differs, vd_err *err);
/* Where in its interval the run (side 0) and an execution now (side 1) part, of a checkpoint that
 * differs. The run executes again on `own`: kind VD_DIVERGE_STORED says that it does not give the
 * wrong state again. */
VD_MUST_USE vd_status vd_recheck_narrow(const vd_recheck *audit, uint32_t checkpoint,
                                        vd_divergence *out, vd_err *err);

/* Draws `count` of the stretches from a seed, each at most once, in ascending order. */
void vd_recheck_draw(uint64_t seed, uint32_t stretches, uint32_t count, uint32_t *out);

#endif
