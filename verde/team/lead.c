/* This file runs a program on a team. Rank 0 has the run's directory: it tells the others where the
 * run begins, and writes their results. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verde/base/thread.h"
#include "verde/exec/memory.h"
#include "verde/team/leaves.h"

typedef struct {
    vd_hash program;
    int64_t step; /* of the state that follows; -1: each rank initialises its own */
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
    }
    if (status == VD_OK)
        vd_member_thin(m, state);
    return status;
}

static vd_status hash(void *user, ro_ctx *ro, const vd_hash *program_hash, const vd_state *state,
                      vd_hash *out, vd_err *err) {
    return vd_member_hash(user, ro, program_hash, state, NULL, out, err);
}

/* Gives the writer a leaf in host memory. Only one leaf at a time is kept there. */
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

static vd_status give_checkpoint(vd_member *m, ro_ctx *ro, const vd_hash *program_hash,
                                 const vd_state *state, vd_err *err) {
    vd_hash none;
    vd_status status = vd_member_hash(m, ro, program_hash, state, NULL, &none, err);
    for (uint32_t i = 0; status == VD_OK && i < state->count; i++)
        if (m->plan->leaf_owner[i] == m->transport.rank)
            status = vd_leaf_send(m, state, i, 0, err);
    return status;
}

/* Sends checkpoints to rank 0 in a thread, while the next step runs. */
typedef struct {
    vd_member *member;
    const vd_exec *exec;
    vd_hash program_hash;
    vd_state state, given;
    bool busy;
    pthread_t thread;
    vd_status status; /* of the thread */
    vd_err err;
} follower;

static void *give(void *user) {
    follower *f = user;
    f->status = give_checkpoint(f->member, NULL, &f->program_hash, &f->given, &f->err);
    return NULL;
}

static vd_status start_giving(follower *f, vd_err *err) {
    f->given = f->state;
    f->state = (vd_state){.step = f->given.step};
    f->busy = vd_thread_start(&f->thread, give, f) == 0;
    return f->busy ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "no thread to give a state");
}

static vd_status finish_giving(follower *f, vd_err *err) {
    if (f->busy)
        pthread_join(f->thread, NULL);
    f->busy = false;
    vd_state_free(&f->given);
    return f->status == VD_OK ? VD_OK : vd_fail(err, f->status, "%s", f->err.text);
}

/* Sends a checkpoint, during the next step unless the state is on a device. */
static vd_status follow_checkpoint(follower *f, vd_err *err) {
    const vd_exec *exec = f->exec;
    return exec->fault.kind == VD_FAULT_NONE && !f->state.memory &&
                   f->state.step < exec->program->steps
               ? start_giving(f, err)
               : give_checkpoint(f->member, exec->ro, &f->program_hash, &f->state, err);
}

static vd_status follow_step(follower *f, vd_err *err) {
    if (!f->busy)
        return vd_exec_step(f->exec, NULL, &f->state, NULL, err);
    const vd_status status = vd_exec_next(f->exec, &f->given, &f->state, NULL, err);
    return status == VD_OK ? finish_giving(f, err) : status;
}

static vd_status follow(follower *f, vd_err *err) {
    const vd_program *p = f->exec->program;
    bool resumed = false;
    vd_status status = vd_program_hash(p, &f->program_hash, err);
    if (status == VD_OK)
        status = begin_with(f->member, f->exec, &f->program_hash, &resumed, &f->state, err);
    if (status == VD_OK && !resumed)
        status = follow_checkpoint(f, err);
    while (status == VD_OK && f->state.step < p->steps) {
        status = follow_step(f, err);
        if (status == VD_OK && vd_is_committed(p, f->state.step))
            status = follow_checkpoint(f, err);
    }
    return status == VD_OK ? f->member->transport.flush(f->member->transport.user, err) : status;
}

vd_status vd_member_follow(vd_member *m, const vd_exec *exec, vd_err *err) {
    follower f = {.member = m, .exec = exec};
    vd_err ignored;
    vd_status status = follow(&f, err), given = finish_giving(&f, &ignored);
    vd_state_free(&f.state);
    return status == VD_OK ? given : status; /* `err` has the first error */
}
