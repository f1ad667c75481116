/* This file measures how long a provider's answers take. PROTOCOL.md section 8.3. */
#include "verde/exec/estimate.h"
#include "verde/exec/exec.h"
#include "verde/exec/replay_internal.h"

static int64_t microseconds(double seconds) {
    const double us = seconds * 1e6;
    return us < 1 ? 1 : us > VD_PACE_US_LIMIT ? VD_PACE_US_LIMIT : (int64_t)us;
}

/* The most steps between stored states; 1 with a journal, which leads to every state. */
static int64_t greatest_distance(const vd_replay *r) {
    int64_t distance = 1, before = 0;
    for (uint32_t i = 0; i < r->log.count && !r->journaled; i++) {
        if (vd_run_log_kept(&r->log, i) != i && i + 1 < r->log.count)
            continue;
        distance = r->log.step[i] - before > distance ? r->log.step[i] - before : distance;
        before = r->log.step[i];
    }
    return distance;
}

static vd_status measure_step(vd_replay *r, vd_pace *out, vd_err *err) {
    vd_hash hash;
    vd_status status = vd_replay_reach(r, 0, err);
    const double start = vd_seconds();
    if (status == VD_OK)
        status = vd_replay_reach(r, 1, err);
    out->plain_us = microseconds(vd_seconds() - start);
    if (status == VD_OK)
        status = vd_replay_hash(r, NULL, &hash, err);
    out->committed_us = microseconds(vd_seconds() - start);
    return status;
}

/* Measures a trace, of initialisation if step is -1. */
static vd_status measure_trace(vd_replay *r, int64_t step, vd_pace *out, vd_err *err) {
    vd_records records = {0};
    vd_status status = step < 0 ? VD_OK : vd_replay_reach(r, step, err);
    if (status == VD_OK)
        status = vd_emit_begin(&r->emits, step, err);
    const double start = vd_seconds();
    if (status == VD_OK)
        status = vd_replay_trace(r, step, &records, err);
    const int64_t us = microseconds(vd_seconds() - start);
    out->traced_us = us > out->traced_us ? us : out->traced_us;
    vd_records_free(&records);
    return status;
}

/* Measures the trace of a step, and of initialisation if that computes more, as for long
 * prompts. */
static vd_status measure_traces(vd_replay *r, vd_pace *out, vd_err *err) {
    const vd_program *p = r->exec->program;
    vd_status status = measure_trace(r, p->steps > 1 ? 1 : 0, out, err);
    if (status == VD_OK && vd_estimate_terms(p, &p->init) > vd_estimate_terms(p, &p->step))
        status = measure_trace(r, -1, out, err);
    return status;
}

/* Measures, and resets what a caller could notice of it. */
vd_status vd_replay_measure(vd_replay *r, vd_pace *out, vd_err *err) {
    const uint64_t executed = atomic_load(&r->executed);
    *out = (vd_pace){.distance = greatest_distance(r)};
    vd_status status = VD_OK;
    if (r->exec->program->steps > 0)
        status = measure_step(r, out, err);
    if (status == VD_OK && r->exec->program->steps > 0)
        status = measure_traces(r, out, err);
    vd_state_free(&r->at);
    atomic_store(&r->executed, executed);
    if (status != VD_OK)
        *out = (vd_pace){0};
    return status;
}
