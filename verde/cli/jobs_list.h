/* Prints the jobs of a provider as a table or as JSON. */
#ifndef VD_JOBS_LIST_H
#define VD_JOBS_LIST_H

#include "verde/cli/cli.h"
#include "verde/delivery/remote.h"

enum { VD_JOB_SHOWN = 12 }; /* digits of a job's name in a table */

void vd_jobs_text(const vd_remote_entry *entry, uint32_t count); /* prints a table */
json_t *vd_jobs_json(const vd_remote_entry *entry, uint32_t count);

#endif
