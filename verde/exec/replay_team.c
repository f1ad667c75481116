/* This file does a replay's work in this process, or with its team. */
#include "verde/exec/replay_team.h"

#include <stdlib.h>

#include "verde/exec/memory.h"
#include "verde/exec/replay_internal.h"

void vd_replay_share(vd_replay *r, const vd_replay_team *team) {
    r->team = team;
}

vd_status vd_replay_init(vd_replay *r, vd_err *err) {
    const vd_replay_team *t = r->team;
    return t ? t->init(t->user, r->exec, &r->at, err) : vd_exec_init(r->exec, NULL, &r->at, err);
}

vd_status vd_replay_take(vd_replay *r, vd_err *err) {
    const vd_replay_team *t = r->team;
    const vd_status status = t ? t->spread(t->user, &r->at, err) : VD_OK;
    return status == VD_OK ? vd_state_place(r->exec, &r->at, err) : status;
}

vd_status vd_replay_step(vd_replay *r, vd_err *err) {
    const vd_replay_team *t = r->team;
    return t ? t->step(t->user, r->exec, &r->at, err)
             : vd_exec_step(r->exec, NULL, &r->at, NULL, err);
}

vd_status vd_replay_hash(vd_replay *r, vd_hash *tensor, vd_hash *out, vd_err *err) {
    const vd_replay_team *t = r->team;
    return t ? t->hash(t->user, r->exec, &r->at, tensor, out, err)
             : vd_state_hash(r->exec->ro, r->exec->program, &r->log.program, &r->at, tensor, out,
                             err);
}

/* Traces a step with the team; initialisation, which needs no other process, alone. */
vd_status vd_replay_trace(vd_replay *r, int64_t step, vd_records *out, vd_err *err) {
    const vd_replay_team *t = r->team;
    return t && step >= 0 ? t->trace(t->user, r->exec, &r->at, out, err)
                          : vd_trace(r->exec, step < 0 ? NULL : &r->at, out, err);
}

vd_status vd_replay_observe(vd_replay *r, int64_t step, uint32_t node, const vd_observer *observer,
                            vd_err *err) {
    const vd_replay_team *t = r->team;
    return t && step >= 0 ? t->observe(t->user, r->exec, &r->at, node, observer, err)
                          : vd_exec_observe(r->exec, observer, step < 0 ? NULL : &r->at, err);
}

const void *vd_replay_leaf(vd_replay *r, uint32_t index, void **copy, vd_err *err) {
    const vd_replay_team *t = r->team;
    if (r->at.tensor[index] || !t)
        return vd_memory_in_host(r->at.memory, r->at.tensor[index],
                                 vd_shape_bytes(&r->exec->program->leaf[index].shape), copy, err);
    *copy = NULL;
    if (t->leaf(t->user, &r->at, index, copy, err) == VD_OK)
        return *copy;
    free(*copy);
    *copy = NULL;
    return NULL;
}
