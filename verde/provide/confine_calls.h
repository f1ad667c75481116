/* The filter of system calls (seccomp) of verde/provide/confine.h. */
#ifndef VD_CONFINE_CALLS_H
#define VD_CONFINE_CALLS_H

#include <stdbool.h>

bool vd_calls_can_be_refused(void);
/* Installs the filter for this thread and those that it starts later: forbidden calls fail with
 * EPERM. Needs PR_SET_NO_NEW_PRIVS. False: see errno. */
bool vd_calls_refuse(void);

#endif
