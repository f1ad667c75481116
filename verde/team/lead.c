/* The run's directory is rank 0's: it tells the others where the run begins, and writes what they
 * make. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/memory.h"
#include "verde/team/leaves.h"

typedef struct {
    vd_hash program;
    int64_t step; /* of the state that follows; -1: each process initialises its own */
} beginning;

/* ---- rank 0 ---- */

static vd_status begin(void *user, vd_state *state, bool resumed, vd_err *err) {
    vd_member *m = user;
    const vd_transport *t = &m->transport;
    beginning b = {.step = resumed ? state->step : -1};
    vd_status status = vd_program_hash(m->plan->program, &b.program, err);
    for (uint32_t r = 1; status == VD_OK && r < t->ranks; r++) {
        status = t->send(t->user, r, VD_TEAM_BEGINS, &b, sizeof b, err);
        for (uint32_t i = 0; status == VD_OK && resumed && i < state->count; i++)
            if (vd_team_keeps(m->plan, r, i))
                status = vd_leaf_send(m, state, i, r, err);
        if (status == VD_OK) /* copies of one rank's leaves at a time */
            status = t->flush(t->user, err);
    }
    if (status == VD_OK)
        vd_member_thin(m, state);
    return status;
}

static vd_status hash(void *user, ro_ctx *ro, const vd_hash *program_hash, const vd_state *state,
                      vd_hash *out, vd_err *err) {
    return vd_member_hash(user, ro, program_hash, state, NULL, out, err);
}

/* One of the leaves is held at a time. */
static const void *take_leaf(void *user, uint32_t leaf, vd_err *err) {
    vd_member *m = user;
    const uint32_t owner = m->plan->leaf_owner[leaf];
    if (owner == 0)
        return vd_memory_in_host(m->saved->memory, m->saved->tensor[leaf], vd_leaf_bytes(m, leaf),
                                 &m->leaf, err);
    return vd_leaf_receive(m, leaf, owner, &m->leaf, err) == VD_OK ? m->leaf : NULL;
}

static void drop_leaf(void *user) {
    vd_member *m = user;
    free(m->leaf);
    m->leaf = NULL;
}

static vd_leaf_stream leaves(void *user, const vd_state *state) {
    vd_member *m = user;
    m->saved = state;
    return (vd_leaf_stream){take_leaf, drop_leaf, m};
}

vd_run_team vd_member_lead(vd_member *member) {
    return (vd_run_team){begin, hash, leaves, member};
}

/* ---- the others ---- */

static vd_status begin_with(const vd_member *m, const vd_exec *exec, const vd_hash *program_hash,
                            bool *resumed, vd_state *state, vd_err *err) {
    const vd_transport *t = &m->transport;
    beginning b;
    vd_status status = t->receive(t->user, 0, VD_TEAM_BEGINS, &b, sizeof b, err);
    if (status == VD_OK && !vd_hash_equal(&b.program, program_hash))
        status = vd_fail(err, VD_ERR_USAGE,
                         "process %u of %u has another job than process 0: do both read the same "
                         "files?",
                         t->rank, t->ranks);
    if (status != VD_OK)
        return status;
    *resumed = b.step >= 0;
    if (*resumed)
        return vd_state_receive(m, exec, b.step, state, err);
    status = vd_exec_init(exec, NULL, state, err);
    if (status == VD_OK)
        vd_member_thin(m, state);
    return status;
}

static vd_status give_checkpoint(vd_member *m, const vd_exec *exec, const vd_hash *program_hash,
                                 const vd_state *state, vd_err *err) {
    const vd_transport *t = &m->transport;
    vd_hash none;
    vd_status status = vd_member_hash(m, exec->ro, program_hash, state, NULL, &none, err);
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++) {
        if (m->plan->leaf_owner[i] != t->rank)
            continue;
        status = vd_leaf_send(m, state, i, 0, err);
        if (status == VD_OK) /* one copy at a time */
            status = t->flush(t->user, err);
    }
    return status;
}

vd_status vd_member_follow(vd_member *m, const vd_exec *exec, vd_err *err) {
    const vd_program *p = exec->program;
    vd_state state = {0};
    vd_hash program_hash;
    bool resumed = false;
    vd_status status = vd_program_hash(p, &program_hash, err);
    if (status == VD_OK)
        status = begin_with(m, exec, &program_hash, &resumed, &state, err);
    if (status == VD_OK && !resumed)
        status = give_checkpoint(m, exec, &program_hash, &state, err);
    while (status == VD_OK && state.step < p->steps) {
        status = vd_exec_step(exec, NULL, &state, NULL, err);
        if (status == VD_OK && vd_is_committed(p, state.step))
            status = give_checkpoint(m, exec, &program_hash, &state, err);
    }
    if (status == VD_OK)
        status = m->transport.flush(m->transport.user, err);
    vd_state_free(&state);
    return status;
}
