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

/* How this thread's modes differ from those of SPEC.md section 1, in bits of the machine's own; 0:
 * not at all, or the library does not know the machine's register. */
RO_API uint64_t ro_modes(void);
/* Sets this thread's modes to those of SPEC.md section 1: to nearest, subnormals kept, no
 * exception traps. Returns what ro_modes was, for ro_modes_restore. A thread or process that this
 * one starts later begins with these modes, except that a program which is started by exec begins
 * with the system's. */
RO_API uint64_t ro_modes_set(void);
RO_API void ro_modes_restore(uint64_t before);

/* Modes of a team of threads, such as OpenMP's. */
typedef struct {
    int (*number)(void); /* which of the team's threads calls, from 0: omp_get_thread_num */
    uint64_t *modes;     /* what ro_modes_set returned, of each */
} ro_team_modes;

/* Each thread of the team calls these, with its ro_team_modes: ro_modes_set, which keeps what the
 * thread had in `modes`, and ro_modes_restore. They have the form of a body of
 * ro_options.parallel. */
RO_API void ro_team_modes_set(void *team);
RO_API void ro_team_modes_restore(void *team);

#ifdef __cplusplus
}
#endif
#endif
