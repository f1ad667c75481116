#include "repops/src/guard.h"
#include "repops/src/backend.h"

void ro_guard_note(ro_guard_log *log, const ro_guard_finding *finding) {
    const int at = atomic_fetch_add(&log->count, 1);
    if (at < RO_GUARD_FOUND_MOST)
        log->found[at] = *finding;
    /* A second mismatch fails the product, so one of them is always reported. */
    else if (finding->again && !atomic_exchange(&log->failed, true))
        log->twice = *finding;
}

ro_status ro_guard_end(ro_ctx *ctx, ro_guard_log *log) {
    const int noted = atomic_load(&log->count);
    const int count = noted < RO_GUARD_FOUND_MOST ? noted : RO_GUARD_FOUND_MOST;
    const ro_guard_finding *twice = NULL;
    if (atomic_load(&log->failed))
        log->found[RO_GUARD_FOUND_MOST - 1] = log->twice;
    for (int i = 0; i < count; i++) {
        log->guard->found(log->guard->user, &log->found[i]);
        twice = log->found[i].again ? &log->found[i] : twice;
    }
    if (!twice)
        return RO_OK;
    return ro_fail(ctx, RO_ERR_DEVICE, RO_GUARD_TWICE, (long long)twice->product,
                   (long long)twice->chunk, (long long)twice->row, (long long)twice->col);
}
