/* What is told of a run with a rounding log, the backend `log`. */
#ifndef VD_CLI_ROUNDED_H
#define VD_CLI_ROUNDED_H

#include <jansson.h>

#include "verde/log/run.h"

/* Of a run on disk: how it was rounded, and by whom. Nothing, and NULL, where run.json does not say
 * so. */
void vd_print_kept(const vd_run_log *log);
json_t *vd_kept_json(const vd_run_log *log);
/* Of a run that has ended, on standard output: what was rounded. `backend` is the run's. */
void vd_print_rounded(const vd_run_backend *backend, const vd_run_result *run);
json_t *vd_rounded_json(const vd_run_backend *backend);

#endif
