/* Children: this program again, without the daemon's descriptors, environment or terminal. */
#ifndef VD_CHILD_H
#define VD_CHILD_H

#include <sys/types.h>

#include "verde/base/base.h"

enum { VD_CHILD_ARGS_MAX = 32 };

/* Starts argv[0] .. NULL. Standard output and error go to the file `log`, which begins anew;
 * standard input is empty. `fds` (`count` of them) become descriptors 3, 4, ... */
VD_MUST_USE vd_status vd_child_start(char *const *argv, const char *log, const int *fds, int count,
                                     pid_t *out, vd_err *err);
/* To be called by such a child before it reads anything: closes all descriptors but the first
 * `fds` ones, ends it when the daemon ends, and limits its memory to `memory` bytes beside files
 * that are mapped. */
VD_MUST_USE vd_status vd_child_confine(int fds, long parent, int64_t memory, vd_err *err);

#endif
