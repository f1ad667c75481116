/* This file leads the other ranks when a team executes steps of a finished run again. */
#include "verde/team/replays_internal.h"

#include <stdlib.h>

/* ---- rank 0 ---- */

/* Tells all other ranks what to do next. */
static vd_status command(const vd_replays *r, vd_replay_kind kind, uint32_t argument, int64_t step,
                         vd_err *err) {
    const vd_transport *t = &r->member->transport;
    const vd_replay_command c = {kind, argument, step, r->program_hash};
    vd_status status = r->broken ? vd_fail(err, r->why.status, "%s", r->why.text) : VD_OK;
    for (uint32_t rank = 1; status == VD_OK && rank < t->ranks; rank++)
        status = t->send(t->user, rank, VD_TEAM_COMMAND, &c, sizeof c, err);
    return status;
}

static vd_status done(vd_replays *r, vd_status status, const vd_err *err) {
    if (status == VD_OK || r->broken)
        return status;
    r->broken = true;
    if (err)
        r->why = *err;
    r->why.status = status;
    if (r->broke)
        r->broke(r->user);
    return status;
}

vd_status vd_replays_open(vd_replays *r, vd_member *member, void (*broke)(void *user), void *user,
                          vd_err *err) {
    *r = (vd_replays){.member = member, .broke = broke, .user = user};
    vd_status status = vd_program_hash(member->plan->program, &r->program_hash, err);
    if (status == VD_OK)
        status = command(r, VD_REPLAY_PROGRAM, 0, 0, err);
    return status;
}

vd_status vd_replays_close(vd_replays *r, vd_err *err) {
    const vd_status status = command(r, VD_REPLAY_END, 0, 0, err);
    return status == VD_OK ? r->member->transport.flush(r->member->transport.user, err) : status;
}

static vd_status init(void *user, const vd_exec *exec, vd_state *out, vd_err *err) {
    vd_replays *r = user;
    vd_status status = command(r, VD_REPLAY_INIT, 0, 0, err);
    if (status == VD_OK)
        status = vd_shared_init(r->member, exec, out, err);
    return done(r, status, err);
}

static vd_status spread(void *user, vd_state *state, vd_err *err) {
    vd_replays *r = user;
    const vd_member *m = r->member;
    vd_status status = command(r, VD_REPLAY_SPREAD, 0, state->step, err);
    for (uint32_t rank = 1; status == VD_OK && rank < m->transport.ranks; rank++)
        for (uint32_t i = 0; status == VD_OK && i < state->count; i++)
            if (vd_team_keeps(m->plan, rank, i))
                status = vd_leaf_send(m, state, i, rank, err);
    if (status == VD_OK)
        vd_member_thin(m, state);
    return done(r, status, err);
}

static vd_status step(void *user, const vd_exec *exec, vd_state *state, vd_err *err) {
    vd_replays *r = user;
    vd_status status = command(r, VD_REPLAY_STEP, 0, state->step, err);
    if (status == VD_OK)
        status = vd_exec_step(exec, NULL, state, NULL, err);
    return done(r, status, err);
}

static vd_status hash(void *user, const vd_exec *exec, const vd_state *state, vd_hash *tensor,
                      vd_hash *out, vd_err *err) {
    vd_replays *r = user;
    vd_status status = command(r, VD_REPLAY_HASH, 0, state->step, err);
    if (status == VD_OK)
        status = vd_member_hash(r->member, exec->ro, &r->program_hash, state, tensor, out, err);
    return done(r, status, err);
}

static vd_status trace(void *user, const vd_exec *exec, const vd_state *before, vd_records *out,
                       vd_err *err) {
    vd_replays *r = user;
    vd_status status = command(r, VD_REPLAY_TRACE, 0, before->step, err);
    if (status == VD_OK)
        status = vd_shared_trace(r->member, exec, &r->program_hash, before, out, err);
    return done(r, status, err);
}

static vd_status observe(void *user, const vd_exec *exec, const vd_state *before, uint32_t node,
                         const vd_observer *observer, vd_err *err) {
    vd_replays *r = user;
    vd_status status = command(r, VD_REPLAY_OBSERVE, node, before->step, err);
    if (status == VD_OK)
        status = vd_shared_observe(r->member, exec, before, node, observer, err);
    return done(r, status, err);
}

static vd_status leaf(void *user, const vd_state *state, uint32_t index, void **out, vd_err *err) {
    vd_replays *r = user;
    *out = NULL;
    vd_status status = command(r, VD_REPLAY_LEAF, index, state->step, err);
    if (status == VD_OK)
        status = vd_leaf_receive(r->member, index, r->member->plan->leaf_owner[index], out, err);
    return done(r, status, err);
}

vd_replay_team vd_replays_team(vd_replays *r) {
    return (vd_replay_team){init, spread, step, hash, trace, observe, leaf, r};
}

/* ---- the others ---- */

static vd_status give_leaf(const vd_member *m, const vd_state *state, uint32_t leaf, vd_err *err) {
    return leaf < state->count && m->plan->leaf_owner[leaf] == m->transport.rank
               ? vd_leaf_send(m, state, leaf, 0, err)
               : VD_OK;
}

static vd_status obey_start(vd_member *m, const vd_exec *exec, const vd_hash *program_hash,
                            const vd_replay_command *c, vd_state *state, vd_err *err) {
    if (c->kind == VD_REPLAY_PROGRAM)
        return vd_hash_equal(&c->program, program_hash)
                   ? VD_OK
                   : vd_fail(err, VD_ERR_USAGE,
                             "process %u of %u has another run than process 0: do both read the "
                             "same files?",
                             m->transport.rank, m->transport.ranks);
    vd_state_free(state);
    return c->kind == VD_REPLAY_INIT ? vd_shared_init(m, exec, state, err)
                                     : vd_state_receive(m, exec, c->step, state, err);
}

static vd_status obey(vd_member *m, const vd_exec *exec, const vd_hash *program_hash,
                      const vd_replay_command *c, vd_state *state, vd_err *err) {
    vd_hash none;
    if (c->kind <= VD_REPLAY_SPREAD)
        return obey_start(m, exec, program_hash, c, state, err);
    if (!state->tensor || state->step != c->step)
        return vd_fail(err, VD_ERR_LOCAL,
                       "process %u of %u is asked about step %lld, which it has "
                       "not",
                       m->transport.rank, m->transport.ranks, (long long)c->step);
    switch (c->kind) {
    case VD_REPLAY_STEP: return vd_exec_step(exec, NULL, state, NULL, err);
    case VD_REPLAY_HASH: return vd_member_hash(m, exec->ro, program_hash, state, NULL, &none, err);
    case VD_REPLAY_TRACE: return vd_shared_trace(m, exec, program_hash, state, NULL, err);
    case VD_REPLAY_OBSERVE: return vd_shared_observe(m, exec, state, c->argument, NULL, err);
    case VD_REPLAY_LEAF: return give_leaf(m, state, c->argument, err);
    default: return vd_fail(err, VD_ERR_PEER, "process 0 commands %u, which is unknown", c->kind);
    }
}

vd_status vd_replays_follow(vd_member *m, const vd_exec *exec, vd_err *err) {
    const vd_transport *t = &m->transport;
    vd_replay_command c = {.kind = VD_REPLAY_PROGRAM};
    vd_state state = {0};
    vd_hash program_hash;
    vd_status status = vd_program_hash(exec->program, &program_hash, err);
    while (status == VD_OK) {
        status = t->await(t->user, 0, VD_TEAM_COMMAND, err);
        if (status == VD_OK)
            status = t->receive(t->user, 0, VD_TEAM_COMMAND, &c, sizeof c, err);
        if (status != VD_OK || c.kind == VD_REPLAY_END)
            break;
        status = obey(m, exec, &program_hash, &c, &state, err);
    }
    if (status == VD_OK)
        status = t->flush(t->user, err);
    vd_state_free(&state);
    return status;
}
