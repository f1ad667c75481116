/* The modes of floating point of the calling thread: the direction of rounding, whether subnormals
 * are flushed, which exceptions trap. All functions of the library set the modes of SPEC.md section
 * 1 for their own time, and give back what was set. What a program computes beside them depends on
 * what is set in its thread, and so do strtod and printf: a program that wants the same numbers
 * everywhere calls ro_modes_set first. */
#ifndef REPOPS_MODES_H
#define REPOPS_MODES_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets this thread's modes to those of SPEC.md section 1: to nearest, subnormals kept, no
 * exception traps. Returns those before, for ro_modes_restore. A thread or process that this one
 * starts later begins with these modes, except that a program which is started by exec begins with
 * the system's. */
RO_API uint64_t ro_modes_set(void);
RO_API void ro_modes_restore(uint64_t before);

#ifdef __cplusplus
}
#endif
#endif
