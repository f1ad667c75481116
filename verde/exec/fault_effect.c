/* This file finds out whether a fault on purpose changed what a run commits to. */
#include "verde/exec/source.h"
#include "verde/exec/store.h"

/* Returns whether the fault changes what the run commits to, but not its states. */
static bool history_changes(const vd_exec *exec, const vd_run_log *log) {
    for (uint32_t i = 0; i < log->count; i++) {
        vd_hash state = log->state[i];
        vd_fault_state(exec, log->step[i], &state);
        if (!vd_hash_equal(&state, &log->state[i]))
            return true;
    }
    return false;
}

/* The first checkpoint that the fault could have changed. */
static uint32_t first_after(const vd_run_log *log, int64_t step) {
    uint32_t i = 0;
    while (i + 1 < log->count && log->step[i] <= step)
        i++;
    return i;
}

/* Runs without the fault from the last stored state before it to checkpoint `to`. */
static vd_status run_honestly(const char *dir, const vd_exec *exec, const vd_run_log *log,
                              uint32_t to, vd_state *state, vd_err *err) {
    if (to == 0)
        return vd_exec_init(exec, NULL, state, err);
    const uint32_t from = vd_run_log_kept(log, to - 1);
    vd_status status = vd_store_load_state(exec->ro, dir, exec->program, &log->program,
                                           log->step[from], &log->state[from], state, err);
    if (status == VD_OK)
        status = vd_state_place(exec, state, err);
    while (status == VD_OK && state->step < log->step[to])
        status = vd_exec_step(exec, NULL, state, NULL, err);
    return status;
}

static vd_status compare_states(const char *dir, const vd_exec *exec, const vd_run_log *log,
                                bool *changed, vd_err *err) {
    const uint32_t to = first_after(log, exec->fault.step);
    vd_exec honest = *exec;
    vd_state state = {0};
    vd_hash hash;
    honest.fault = (vd_fault){0};
    honest.numbers = NULL;
    vd_status status = run_honestly(dir, &honest, log, to, &state, err);
    if (status == VD_OK)
        status = vd_state_hash(exec->ro, exec->program, &log->program, &state, NULL, &hash, err);
    *changed = status == VD_OK && !vd_hash_equal(&hash, &log->state[to]);
    vd_state_free(&state);
    return status;
}

vd_status vd_fault_changed(const char *dir, const vd_exec *exec, bool *changed, vd_err *err) {
    vd_run_log log = {0};
    vd_status status = vd_store_load_log(dir, &log, err);
    *changed = true;
    if (status == VD_OK && exec->fault.kind == VD_FAULT_HISTORY)
        *changed = history_changes(exec, &log);
    else if (status == VD_OK && !log.backend)
        status = compare_states(dir, exec, &log, changed, err);
    vd_run_log_free(&log);
    return status;
}
