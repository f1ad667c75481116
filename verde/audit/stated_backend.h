/* Computes in the way that a run states for itself. */
#ifndef VD_STATED_BACKEND_H
#define VD_STATED_BACKEND_H

#include "verde/load/load.h"

/* Opens the machine's backend; of several devices, the one with the machine's UUID. If this machine
 * has no such backend, or `machine` is NULL, opens the best one. common->backend is ignored. */
VD_MUST_USE vd_status vd_load_stated(vd_loaded *loaded, const vd_common *common,
                                     const vd_machine *machine, vd_err *err);
/* Returns true if the stated machine is this one, with this device. */
bool vd_is_stated(const vd_machine *machine, const ro_ctx *ro);

#endif
