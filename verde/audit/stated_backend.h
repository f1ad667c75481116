/* Computing as a run says that it was computed. */
#ifndef VD_STATED_BACKEND_H
#define VD_STATED_BACKEND_H

#include "verde/load/load.h"

/* Opens the machine's backend, of several devices the one with its UUID; the best one if this
 * machine has no such backend, or `machine` is NULL. common->backend is not looked at. */
VD_MUST_USE vd_status vd_load_stated(vd_loaded *loaded, const vd_common *common,
                                     const vd_machine *machine, vd_err *err);
/* Is it this machine, with that device? */
bool vd_is_stated(const vd_machine *machine, const ro_ctx *ro);

#endif
