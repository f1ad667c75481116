/* The filter of system calls (seccomp) of verde/provide/confine.h. */
#ifndef VD_CONFINE_CALLS_H
#define VD_CONFINE_CALLS_H

#include <stdbool.h>

bool vd_calls_can_be_refused(void);
/* Refuses them to this thread, and to those that it starts, with EPERM. Needs PR_SET_NO_NEW_PRIVS.
 * False: errno says why. */
bool vd_calls_refuse(void);

#endif
