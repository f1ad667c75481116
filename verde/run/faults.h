/* Faults on purpose, and whether they came to anything. */
#ifndef VD_FAULTS_H
#define VD_FAULTS_H

#include "verde/load/load.h"

void vd_announce_fault(const vd_loaded *loaded); /* says that there is one, if there is */
/* Says so if the run in DIR has a fault on purpose that changed nothing, and sets *idle. */
VD_MUST_USE vd_status vd_tell_fault(const char *dir, const vd_loaded *loaded, bool *idle,
                                    vd_err *err);

#endif
