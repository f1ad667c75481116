/* Reports of faults on purpose. */
#ifndef VD_FAULTS_H
#define VD_FAULTS_H

#include "verde/load/load.h"

void vd_announce_fault(const vd_loaded *loaded); /* if there is a fault */
/* Reports a fault of the run in DIR that changed nothing, and sets *idle then. */
VD_MUST_USE vd_status vd_tell_fault(const char *dir, const vd_loaded *loaded, bool *idle,
                                    vd_err *err);

#endif
