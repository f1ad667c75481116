/* How the job of a run on disk differs from the current one, for messages. */
#ifndef VD_OTHER_JOB_H
#define VD_OTHER_JOB_H

#include "verde/exec/store.h"

/* Fails with VD_ERR_USAGE: "DIR: holds a run of another job: steps: 12 there, 24 here; ADVICE". */
vd_status vd_fail_other_job(const char *dir, const vd_program *here, const char *advice,
                            vd_err *err);

/* Writes "steps: 12 there, 24 here; seed: 1 there, 2 here": what readers of both job files notice
 * first; a node of a graph only if nothing else differs. Empty if the programs are equal. */
void vd_program_differences(const vd_program *there, const vd_program *here, char *text,
                            size_t size);

#endif
