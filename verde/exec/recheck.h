/* Executes one's own run again from its stored states, on another backend or machine. A stretch is
 * the part between two stored states, and is checked by itself. */
#ifndef VD_RECHECK_H
#define VD_RECHECK_H

#include "verde/exec/divergence.h"
#include "verde/exec/store.h"

typedef struct {
    const char *dir;
    const vd_run_log *log; /* in fixed order; may be unfinished */
    const vd_exec *own;    /* as executed: with a fault on purpose, if that recurs */
    const vd_exec *fresh;  /* as it is executed now: without a fault */
    /* Called with the number of new steps; may be NULL. */
    void (*progress)(void *user, int64_t steps);
    void *user;
} vd_recheck;

/* Number of stretches. Stretch 0 is initialisation; others lead from a stored state to the next. */
uint32_t vd_recheck_stretches(const vd_run_log *log);
/* A stretch begins at checkpoint `from` and leads to checkpoints first .. last. */
typedef struct {
    uint32_t from, first, last;
} vd_stretch;
vd_stretch vd_recheck_stretch(const vd_run_log *log, uint32_t stretch);

/* Executes a stretch. *differs: its first checkpoint that differs from the run's commitment;
 * log->count: none. VD_ERR_IO: the state that it begins with cannot be read. */
VD_MUST_USE vd_status vd_recheck_execute(const vd_recheck *audit, uint32_t stretch,
                                         uint32_t *differs, vd_err *err);
/* Finds where, before a differing checkpoint, the run (side 0) and an execution now (side 1)
 * diverge. The run is executed again with `own`; VD_DIVERGE_STORED: the wrong state does not
 * recur. */
VD_MUST_USE vd_status vd_recheck_narrow(const vd_recheck *audit, uint32_t checkpoint,
                                        vd_divergence *out, vd_err *err);

/* Draws `count` of the stretches from a seed, each at most once, in ascending order. */
void vd_recheck_draw(uint64_t seed, uint32_t stretches, uint32_t count, uint32_t *out);

#endif
