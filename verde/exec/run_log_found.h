/* Findings of --guard in run.json. */
#ifndef VD_RUN_LOG_FOUND_H
#define VD_RUN_LOG_FOUND_H

#include <jansson.h>

#include "verde/exec/guard.h"
#include "verde/exec/store.h"

/* Moves findings of `guard` (may be NULL) to the log, with its last checkpoint's machine. */
VD_MUST_USE vd_status vd_found_take(vd_run_log *log, vd_guard *guard, vd_err *err);

json_t *vd_finding_json(const vd_guard_finding *finding);
json_t *vd_found_json(const vd_guard_finding *found, uint32_t count);
/* Reads findings, after the log's machines; `list` may be NULL. VD_ERR_PEER: it is malformed. */
VD_MUST_USE vd_status vd_found_read(const json_t *list, vd_run_log *log, vd_err *err);

#endif
