/* What --guard found, as run.json states it. */
#ifndef VD_RUN_LOG_FOUND_H
#define VD_RUN_LOG_FOUND_H

#include <jansson.h>

#include "verde/exec/guard.h"
#include "verde/exec/store.h"

/* Moves what `guard` (may be NULL) has to the log, as of the machine of its last checkpoint. */
VD_MUST_USE vd_status vd_found_take(vd_run_log *log, vd_guard *guard, vd_err *err);

json_t *vd_finding_json(const vd_guard_finding *finding);
json_t *vd_found_json(const vd_guard_finding *found, uint32_t count);
/* After the log's machines were read. VD_ERR_PEER: it is no list of findings; NULL: none is there.
 */
VD_MUST_USE vd_status vd_found_read(const json_t *list, vd_run_log *log, vd_err *err);

#endif
