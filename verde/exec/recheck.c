/* This file executes stretches of a run again. */
#include "verde/exec/recheck.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/run.h"

/* ---- stretches ---- */

static uint32_t every(const vd_run_log *log) {
    return log->keep ? (uint32_t)log->kept_every : 1;
}

uint32_t vd_recheck_stretches(const vd_run_log *log) {
    return 1 + (log->count - 1 + every(log) - 1) / every(log);
}

vd_stretch vd_recheck_stretch(const vd_run_log *log, uint32_t stretch) {
    if (stretch == 0)
        return (vd_stretch){0, 0, 0};
    const uint32_t from = (stretch - 1) * every(log), to = from + every(log);
    return (vd_stretch){from, from + 1, to < log->count ? to : log->count - 1};
}

static int compare_numbers(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Draws by SplitMix64 (Steele et al., 2014), and replaces numbers that were drawn before. */
void vd_recheck_draw(uint64_t seed, uint32_t stretches, uint32_t count, uint32_t *out) {
    for (uint32_t i = 0; i < count && i < stretches;) {
        uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        out[i] = (uint32_t)((z ^ z >> 31) % stretches);
        uint32_t k = 0;
        while (k < i && out[k] != out[i])
            k++;
        i += k == i;
    }
    qsort(out, count < stretches ? count : stretches, sizeof *out, compare_numbers);
}

/* ---- execution ---- */

static vd_status begin(const vd_recheck *a, uint32_t checkpoint, vd_state *state, vd_err *err) {
    const vd_exec *exec = a->fresh;
    vd_status status =
        vd_store_load_state(exec->ro, a->dir, exec->program, &a->log->program,
                            a->log->step[checkpoint], &a->log->state[checkpoint], state, err);
    return status == VD_OK ? vd_state_place(exec, state, err) : status;
}

static vd_status run_to(const vd_recheck *a, int64_t step, vd_state *state, vd_err *err) {
    vd_status status = VD_OK;
    while (status == VD_OK && state->step < step) {
        status = vd_exec_step(a->fresh, NULL, state, NULL, err);
        if (status == VD_OK && a->progress)
            a->progress(a->user, 1);
    }
    return status;
}

/* What the run commits to at a checkpoint. */
static vd_hash committed(const vd_recheck *a, uint32_t checkpoint) {
    vd_hash state = a->log->state[checkpoint];
    vd_fault_state(a->own, a->log->step[checkpoint], &state);
    return state;
}

static vd_status compare(const vd_recheck *a, const vd_state *state, uint32_t checkpoint,
                         bool *differs, vd_err *err) {
    vd_hash found;
    const vd_hash expected = committed(a, checkpoint);
    vd_status status =
        vd_state_hash(a->fresh->ro, a->fresh->program, &a->log->program, state, NULL, &found, err);
    *differs = status == VD_OK && !vd_hash_equal(&found, &expected);
    return status;
}

static vd_status start(const vd_recheck *a, vd_stretch s, vd_state *state, vd_err *err) {
    if (s.last > 0)
        return begin(a, s.from, state, err);
    const vd_status status = vd_exec_init(a->fresh, NULL, state, err);
    if (status == VD_OK && a->progress)
        a->progress(a->user, 1);
    return status;
}

vd_status vd_recheck_execute(const vd_recheck *a, uint32_t stretch, uint32_t *differs,
                             vd_err *err) {
    const vd_stretch s = vd_recheck_stretch(a->log, stretch);
    vd_state state = {0};
    bool found = false;
    *differs = a->log->count;
    vd_status status = start(a, s, &state, err);
    for (uint32_t i = s.first; i <= s.last && status == VD_OK && !found; i++) {
        status = run_to(a, a->log->step[i], &state, err);
        if (status == VD_OK)
            status = compare(a, &state, i, &found, err);
        if (found)
            *differs = i;
    }
    vd_state_free(&state);
    return status;
}
