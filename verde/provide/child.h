/* Children: this program again, without the daemon's descriptors, environment or terminal. */
#ifndef VD_CHILD_H
#define VD_CHILD_H

#include <sys/types.h>

#include "verde/provide/confine.h"

enum { VD_CHILD_ARGS_MAX = 32 };

/* Starts argv[0] .. NULL. Standard output and error go to the file `log`, which begins anew;
 * standard input is empty. `fds` (`count` of them) become descriptors 3, 4, ... */
VD_MUST_USE vd_status vd_child_start(char *const *argv, const char *log, const int *fds, int count,
                                     pid_t *out, vd_err *err);
/* What a child may have. */
typedef struct {
    int fds;            /* descriptors from 3 on that it keeps */
    long parent;        /* the daemon: the child ends when it does */
    int64_t memory;     /* bytes beside files that are mapped; 0: as many as it likes */
    int64_t cpu_s;      /* seconds of a processor, then SIGXCPU ends it; 0: likewise */
    int64_t file_bytes; /* of a file that it writes; 0: likewise */
    vd_allowed places;
} vd_child_limits;

/* To be called by such a child before it reads anything, and before it has threads: closes all
 * other descriptors, sets its limits and confines it. */
VD_MUST_USE vd_status vd_child_confine(const vd_child_limits *limits, vd_err *err);

#endif
