#ifndef VD_RUN_GUARD_H
#define VD_RUN_GUARD_H

#include "verde/cli/cli.h"
#include "verde/exec/guard.h"

typedef struct {
    vd_guard guard;
    vd_machine machine;
    bool json;
} vd_run_guard;

/* Has the run checked if that is wanted. VD_ERR_USAGE: it cannot be. *g stays where it is until
 * vd_run_guard_close, before the context goes. */
VD_MUST_USE vd_status vd_run_guard_open(vd_run_guard *g, bool wanted, bool logs, bool json,
                                        vd_loaded *loaded, vd_err *err);
void vd_run_guard_close(vd_run_guard *g, vd_loaded *loaded);

#endif
