/* What a child may do to the rest of the machine: nothing. Landlock bounds the files that it can
 * open; a filter of system calls refuses sockets, other programs and processes, and changes of
 * files' owners and modes. Neither needs a privilege, and neither can be undone. */
#ifndef VD_CONFINE_H
#define VD_CONFINE_H

#include "verde/base/base.h"

/* Lists end in NULL. What is not there is left out. */
typedef struct {
    const char *const *reads;  /* files and folders */
    const char *const *writes; /* folders, which it may read too */
    bool gpu; /* it may use NVIDIA's devices, and read the system's libraries and /proc */
} vd_allowed;

/* What this kernel offers. */
typedef struct {
    bool files; /* Landlock */
    bool calls; /* filters of system calls, on a processor that the filter knows */
} vd_confinement;
vd_confinement vd_confinement_here(void);

/* Confines the calling thread and those that it starts from now on: to be called before any other
 * one. What the kernel does not offer is left out; VD_ERR_LOCAL: what it offers does not work. */
VD_MUST_USE vd_status vd_confine(const vd_allowed *places, vd_err *err);

#endif
