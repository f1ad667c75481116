/* The floating-point modes of the calling thread: rounding direction, flushing of subnormals,
 * exception traps. Every function of the library sets the modes of SPEC.md section 1 while it runs,
 * and restores the caller's. What a program computes by itself, strtod and printf included, depends
 * on the thread's modes: a program that wants the same numbers everywhere calls ro_modes_set
 * first. */
#ifndef REPOPS_MODES_H
#define REPOPS_MODES_H

#include "repops/repops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns how this thread's modes differ from those of SPEC.md section 1, as bits of the machine's
 * control register; 0 if they do not, or if the library does not know that register. */
RO_API uint64_t ro_modes(void);
/* Sets this thread's modes to those of SPEC.md section 1: round to nearest, subnormals kept, no
 * exception traps. Returns what ro_modes returned before, for ro_modes_restore. Threads and
 * processes that this thread starts later inherit these modes, but a program started by exec begins
 * with the system's. */
RO_API uint64_t ro_modes_set(void);
RO_API void ro_modes_restore(uint64_t before);

/* Modes of the threads of a team, such as OpenMP's. */
typedef struct {
    int (*number)(void); /* the calling thread's index in the team: omp_get_thread_num */
    uint64_t *modes;     /* one per thread: what ro_modes_set returned */
} ro_team_modes;

/* Each thread of the team calls these with the team's ro_team_modes. The first calls ro_modes_set
 * and keeps its result in `modes`; the second calls ro_modes_restore with it. Their signature is
 * that of the body of ro_options.parallel. */
RO_API void ro_team_modes_set(void *team);
RO_API void ro_team_modes_restore(void *team);

#ifdef __cplusplus
}
#endif
#endif
