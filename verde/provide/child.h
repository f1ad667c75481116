/* Children: this program again, without the daemon's descriptors, environment or terminal. */
#ifndef VD_CHILD_H
#define VD_CHILD_H

#include <sys/types.h>

#include "verde/provide/confine.h"

enum { VD_CHILD_ARGS_MAX = 32 };

/* Starts argv[0] with the arguments up to NULL. Standard output and error go to the file `log`,
 * which is truncated; standard input is empty. The `count` descriptors of `fds` become 3, 4, ... */
VD_MUST_USE vd_status vd_child_start(char *const *argv, const char *log, const int *fds, int count,
                                     pid_t *out, vd_err *err);
/* The limits of a child. */
typedef struct {
    int fds;            /* number of descriptors, from 3 on, that it keeps */
    long parent;        /* process id of the daemon, with which the child ends */
    int64_t memory;     /* bytes, without mapped files; 0: unlimited */
    int64_t cpu_s;      /* processor seconds until SIGXCPU ends it; 0: unlimited */
    int64_t file_bytes; /* largest file that it may write; 0: unlimited */
    vd_allowed places;
} vd_child_limits;

/* Closes all other descriptors, sets the limits and confines the process. The child calls it before
 * it reads anything or starts a thread. */
VD_MUST_USE vd_status vd_child_confine(const vd_child_limits *limits, vd_err *err);

#endif
