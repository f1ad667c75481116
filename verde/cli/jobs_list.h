/* The jobs of a provider, for people and for machines. */
#ifndef VD_JOBS_LIST_H
#define VD_JOBS_LIST_H

#include "verde/cli/cli.h"
#include "verde/delivery/remote.h"

enum { VD_JOB_SHOWN = 12 }; /* digits of a job's name in a table */

void vd_jobs_text(const vd_remote_entry *entry, uint32_t count); /* on standard output */
json_t *vd_jobs_json(const vd_remote_entry *entry, uint32_t count);

#endif
