/* What the data files of a job hold. Private to verde/job. */
#ifndef VD_JOB_DATA_H
#define VD_JOB_DATA_H

#include "verde/job/job.h"

/* What data files are to this job, and the bytes of one of them as a tensor, which stays where it
 * is in the file. Files must have this form, with tokens or labels that the model knows. */
VD_MUST_USE vd_status vd_data_form(const vd_job *job, vd_map *file, vd_data_tensor *out,
                                   vd_err *err);

/* The files that the job names, mapped. */
VD_MUST_USE vd_status vd_data_open(const vd_job *job, vd_dataset *out, vd_err *err);

#endif
