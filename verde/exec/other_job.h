/* A directory that holds a run of another job: in what the two differ, for a sentence. */
#ifndef VD_OTHER_JOB_H
#define VD_OTHER_JOB_H

#include "verde/exec/store.h"

/* VD_ERR_USAGE: "DIR: holds a run of another job: steps: 12 there, 24 here; ADVICE". */
vd_status vd_fail_other_job(const char *dir, const vd_program *here, const char *advice,
                            vd_err *err);

/* "steps: 12 there, 24 here; seed: 1 there, 2 here": what a reader of the two job files would name
 * first; a node of a graph only if nothing else differs. Empty: they are the same program. */
void vd_program_differences(const vd_program *there, const vd_program *here, char *text,
                            size_t size);

#endif
