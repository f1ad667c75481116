/* This file finds where a run and its execution now diverge. The execution is a source whose states
 * are those of the run, except the one that differs. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/recheck.h"
#include "verde/exec/memory.h"

typedef struct {
    const vd_recheck *audit;
    uint32_t checkpoint;
    vd_replay *replay; /* of the run's directory, executed with `fresh` */
    vd_source inner;
    vd_state state; /* at the checkpoint, as executed now */
    vd_hash *leaf;  /* commitments of its tensors */
    vd_hash commitment;
    void *copy; /* of one of its tensors, in host memory */
} executed;

static int64_t step_of(const executed *e) {
    return e->audit->log->step[e->checkpoint];
}

/* ---- the state at the checkpoint ---- */

static vd_status reach(executed *e, vd_err *err) {
    const vd_recheck *a = e->audit;
    const vd_run_log *log = a->log;
    const uint32_t from = e->checkpoint ? vd_run_log_kept(log, e->checkpoint - 1) : 0;
    if (e->checkpoint == 0)
        return vd_exec_init(a->fresh, NULL, &e->state, err);
    vd_status status = vd_store_load_state(a->fresh->ro, a->dir, a->fresh->program, &log->program,
                                           log->step[from], &log->state[from], &e->state, err);
    if (status == VD_OK)
        status = vd_state_place(a->fresh, &e->state, err);
    while (status == VD_OK && e->state.step < step_of(e))
        status = vd_exec_step(a->fresh, NULL, &e->state, NULL, err);
    return status;
}

static vd_status open_executed(executed *e, vd_err *err) {
    const vd_recheck *a = e->audit;
    const vd_program *p = a->fresh->program;
    vd_status status = reach(e, err);
    e->leaf = calloc((size_t)p->leaf_count + 1, sizeof *e->leaf);
    if (status == VD_OK && !e->leaf)
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = vd_state_hash(a->fresh->ro, p, &a->log->program, &e->state, e->leaf,
                               &e->commitment, err);
    if (status == VD_OK)
        status = vd_replay_create_so_far(a->dir, a->fresh, &e->replay, err);
    if (status == VD_OK)
        e->inner = vd_replay_source(e->replay);
    return status;
}

static void close_executed(executed *e) {
    vd_replay_destroy(e->replay);
    vd_state_free(&e->state);
    free(e->leaf);
    free(e->copy);
}

/* ---- as a source ---- */

static vd_status run(void *user, vd_hash *state, vd_err *err) {
    executed *e = user;
    const vd_run_log *log = e->audit->log;
    (void)err;
    for (uint32_t i = 0; i < log->count; i++) {
        state[i] = log->state[i];
        vd_fault_state(e->audit->own, log->step[i], &state[i]);
    }
    state[e->checkpoint] = e->commitment;
    return VD_OK;
}

static vd_status states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    executed *e = user;
    return e->inner.states(e->inner.user, from, to, state, err);
}

static vd_status trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    executed *e = user;
    return e->inner.trace(e->inner.user, step, out, err);
}

static vd_status leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    executed *e = user;
    if (step != step_of(e))
        return e->inner.leaves(e->inner.user, step, tensor, err);
    memcpy(tensor, e->leaf, e->audit->fresh->program->leaf_count * sizeof *tensor);
    return VD_OK;
}

static vd_status tensor(void *user, int64_t step, uint32_t value, const void **data, vd_err *err) {
    executed *e = user;
    const vd_program *p = e->audit->fresh->program;
    if (step != step_of(e) || value >= p->leaf_count)
        return e->inner.tensor(e->inner.user, step, value, data, err);
    free(e->copy);
    e->copy = NULL;
    *data = vd_memory_in_host(e->state.memory, e->state.tensor[value],
                              vd_shape_bytes(&p->leaf[value].shape), &e->copy, err);
    return *data ? VD_OK : VD_ERR_LOCAL;
}

static vd_status fold(void *user, int64_t step, uint32_t node, int64_t element, vd_records *out,
                      vd_err *err) {
    executed *e = user;
    return e->inner.fold(e->inner.user, step, node, element, out, err);
}

/* ---- both sides ---- */

static bool holds(void *user, uint32_t checkpoint) {
    (void)user, (void)checkpoint;
    return true;
}

static vd_diverge_side side_of(const vd_recheck *a, vd_source source, uint32_t checkpoints) {
    return (vd_diverge_side){.program = a->fresh->program,
                             .program_hash = a->log->program,
                             .source = source,
                             .checkpoints = checkpoints,
                             .holds = holds};
}

vd_status vd_recheck_narrow(const vd_recheck *a, uint32_t checkpoint, vd_divergence *out,
                            vd_err *err) {
    executed e = {.audit = a, .checkpoint = checkpoint};
    vd_replay *own = NULL;
    vd_status status = vd_replay_create_so_far(a->dir, a->own, &own, err);
    if (status == VD_OK)
        status = open_executed(&e, err);
    if (status == VD_OK) {
        const vd_source now = {.user = &e,
                               .run = run,
                               .states = states,
                               .trace = trace,
                               .leaves = leaves,
                               .tensor = tensor,
                               .fold = fold};
        const vd_diverge_side side[] = {
            side_of(a, vd_replay_source(own), vd_replay_checkpoints(own)),
            side_of(a, now, a->log->count)};
        status = vd_diverge(side, NULL, true, out, err);
        out->executed = vd_replay_executed(own) + vd_replay_executed(e.replay);
    }
    close_executed(&e);
    vd_replay_destroy(own);
    return status;
}
