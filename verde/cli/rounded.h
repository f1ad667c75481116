/* These functions print about runs with a rounding log (--backend log). */
#ifndef VD_CLI_ROUNDED_H
#define VD_CLI_ROUNDED_H

#include <jansson.h>

#include "verde/log/run.h"

/* These print or return how a run on disk was rounded, and by whom; nothing or NULL if run.json
 * does not say. */
void vd_print_kept(const vd_run_log *log);
json_t *vd_kept_json(const vd_run_log *log);
/* These print or return what was rounded in a run that has just ended. */
void vd_print_rounded(const vd_run_backend *backend, const vd_run_result *run);
json_t *vd_rounded_json(const vd_run_backend *backend);

#endif
