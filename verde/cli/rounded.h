/* These functions tell about runs with a rounding log, those of backend `log`. */
#ifndef VD_CLI_ROUNDED_H
#define VD_CLI_ROUNDED_H

#include <jansson.h>

#include "verde/log/run.h"

/* These tell how a run on disk was rounded, and by whom. They print nothing and return NULL if
 * run.json does not say. */
void vd_print_kept(const vd_run_log *log);
json_t *vd_kept_json(const vd_run_log *log);
/* These tell what was rounded in a run that has ended; the first prints it on standard output. */
void vd_print_rounded(const vd_run_backend *backend, const vd_run_result *run);
json_t *vd_rounded_json(const vd_run_backend *backend);

#endif
