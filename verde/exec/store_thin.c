/* This file deletes states. It is apart from store.c, which programs without run.json link too. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/store.h"

/* The spacing of kept states is doubled, so that kept ones stay for long. The log is saved first: a
 * crash in between leaves too many states, never too few. */
vd_status vd_store_thin(const char *dir, vd_run_log *log, bool all, vd_err *err) {
    const int32_t before = log->kept_every;
    const vd_run_log was = {.count = log->count - 1, .keep = log->keep, .kept_every = before};
    char path[1024];
    if (!log->keep)
        return VD_OK;
    while (vd_run_log_kept_count(log) > (uint32_t)log->keep)
        log->kept_every *= 2;
    vd_status status = log->kept_every == before ? VD_OK : vd_store_save_log(dir, log, err);
    const bool from_first = all || log->kept_every != before || log->count < 2;
    for (uint32_t i = from_first ? 0 : log->count - 2; status == VD_OK && i + 1 < log->count; i++) {
        if (vd_run_log_kept(&was, i) != i || vd_run_log_kept(log, i) == i)
            continue;
        vd_store_state_path(path, dir, &log->state[i]);
        if (unlink(path) != 0 && errno != ENOENT)
            status = vd_fail(err, VD_ERR_LOCAL, "cannot delete %s: %s", path, strerror(errno));
    }
    return status;
}
