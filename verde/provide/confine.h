/* Confines a child to its own files. Landlock restricts the files that it can open; a filter of
 * system calls forbids sockets, other programs and processes, and changing owners or modes of
 * files. Neither needs privileges, and neither can be undone. */
#ifndef VD_CONFINE_H
#define VD_CONFINE_H

#include "verde/base/base.h"

/* What a confined process may reach. Lists end with NULL; entries that do not exist are ignored. */
typedef struct {
    const char *const *reads;  /* files and folders */
    const char *const *writes; /* folders, also readable */
    bool gpu;                  /* NVIDIA's devices, and reading system libraries and /proc */
} vd_allowed;

/* The confinement that this kernel offers. */
typedef struct {
    bool files; /* Landlock */
    bool calls; /* system call filters for this processor */
} vd_confinement;
vd_confinement vd_confinement_here(void);

/* Confines the calling thread and all that it starts later: call it before starting any. What the
 * kernel does not offer is left out. VD_ERR_LOCAL: what it offers failed. */
VD_MUST_USE vd_status vd_confine(const vd_allowed *places, vd_err *err);

#endif
