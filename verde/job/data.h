/* The form of a job's data files. Private to verde/job. */
#ifndef VD_JOB_DATA_H
#define VD_JOB_DATA_H

#include "verde/job/job.h"

/* Checks that a file has the form that the job needs, with tokens or labels that the model knows.
 * Sets `out` to its bytes as a tensor, which stays in the file's memory. */
VD_MUST_USE vd_status vd_data_form(const vd_job *job, vd_map *file, vd_data_tensor *out,
                                   vd_err *err);

/* Maps the files that the job names. */
VD_MUST_USE vd_status vd_data_open(const vd_job *job, vd_dataset *out, vd_err *err);

#endif
