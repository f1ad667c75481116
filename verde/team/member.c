/* This file runs a rank's part of a step, and sends what other ranks read. */
#include "verde/team/member.h"

#include <stdlib.h>

#include "verde/exec/memory.h"
#include "verde/team/leaves.h"

static bool runs(void *user, uint32_t node) {
    const vd_member *m = user;
    const uint32_t owner = vd_team_owner(m->plan, node);
    return owner == VD_TEAM_ALL || owner == m->transport.rank;
}

static bool waits(void *user, uint32_t node) {
    const vd_member *m = user;
    return vd_team_waits(m->plan, m->transport.rank, node);
}

static bool keeps(void *user, uint32_t leaf) {
    const vd_member *m = user;
    return vd_team_keeps(m->plan, m->transport.rank, leaf);
}

static bool sends(void *user, uint32_t value) {
    const vd_member *m = user;
    uint32_t first;
    return vd_team_messages_of(m->plan, value, &first) > 0;
}

static vd_status send_value(void *user, uint32_t value, const void *data, size_t size,
                            vd_err *err) {
    vd_member *m = user;
    uint32_t first;
    const uint32_t count = vd_team_messages_of(m->plan, value, &first);
    vd_status status = VD_OK;
    for (uint32_t i = first; status == VD_OK && i < first + count; i++) {
        status = m->transport.send(m->transport.user, m->plan->message[i].to, i, data, size, err);
        m->sent_bytes += size;
    }
    return status;
}

static vd_status fetch(void *user, uint32_t value, void *data, size_t size, vd_err *err) {
    vd_member *m = user;
    const uint32_t message = vd_team_message_to(m->plan, value, m->transport.rank);
    if (message == UINT32_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "value %u is read by process %u, and no other sends it",
                       value, m->transport.rank);
    m->received++;
    return m->transport.receive(m->transport.user, m->plan->message[message].from, message, data,
                                size, err);
}

void vd_member_open(vd_member *member, const vd_team_plan *plan, const vd_transport *transport) {
    *member = (vd_member){.plan = plan, .transport = *transport};
    member->part = (vd_exec_part){runs, waits, keeps, sends, send_value, fetch, member};
}

void vd_member_thin(const vd_member *member, vd_state *state) {
    for (uint32_t i = 0; i < state->count; i++)
        if (!vd_team_keeps(member->plan, member->transport.rank, i)) {
            vd_memory_free(state->memory, state->tensor[i]);
            state->tensor[i] = NULL;
        }
}

/* ---- commitments ---- */

static uint32_t leaves_of(const vd_team_plan *plan, uint32_t rank, bool *owned) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->program->leaf_count; i++) {
        owned[i] = plan->leaf_owner[i] == rank;
        count += owned[i];
    }
    return count;
}

/* Packs the commitments of owned leaves one after another, or unpacks them with `back`. */
static void pack(const vd_team_plan *plan, const bool *owned, vd_hash *tensor, vd_hash *packed,
                 bool back) {
    for (uint32_t i = 0; i < plan->program->leaf_count; i++) {
        if (owned[i] && back)
            tensor[i] = *packed++;
        else if (owned[i])
            *packed++ = tensor[i];
    }
}

static vd_status gather(const vd_member *m, bool *owned, vd_hash *tensor, vd_hash *packed,
                        vd_err *err) {
    const vd_transport *t = &m->transport;
    vd_status status = VD_OK;
    if (t->rank != 0) {
        const uint32_t count = leaves_of(m->plan, t->rank, owned);
        pack(m->plan, owned, tensor, packed, false);
        return t->send(t->user, 0, VD_TEAM_COMMITMENTS, packed, count * sizeof *packed, err);
    }
    for (uint32_t r = 1; status == VD_OK && r < t->ranks; r++) {
        const uint32_t count = leaves_of(m->plan, r, owned);
        status = t->receive(t->user, r, VD_TEAM_COMMITMENTS, packed, count * sizeof *packed, err);
        if (status == VD_OK)
            pack(m->plan, owned, tensor, packed, true);
    }
    return status;
}

vd_status vd_member_hash(vd_member *m, ro_ctx *ro, const vd_hash *program_hash,
                         const vd_state *state, vd_hash *tensor, vd_hash *out, vd_err *err) {
    const uint32_t count = m->plan->program->leaf_count;
    vd_hash *all = calloc(count, sizeof *all), *packed = calloc(count, sizeof *packed);
    bool *owned = calloc(count, sizeof *owned);
    vd_status status = all && packed && owned ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    *out = (vd_hash){{0}};
    if (status == VD_OK) {
        leaves_of(m->plan, m->transport.rank, owned);
        status = vd_leaves_hash(ro, m->plan->program, state, owned, all, err);
    }
    if (status == VD_OK)
        status = gather(m, owned, all, packed, err);
    if (status == VD_OK && m->transport.rank == 0)
        status = vd_state_commit(program_hash, state->step, all, count, out, err);
    for (uint32_t i = 0; status == VD_OK && tensor && i < count; i++)
        tensor[i] = m->transport.rank == 0 ? all[i] : (vd_hash){{0}};
    free(all);
    free(packed);
    free(owned);
    return status;
}
