/* The steps of a replay that several processes share, for the one that answers. */
#ifndef VD_REPLAY_TEAM_H
#define VD_REPLAY_TEAM_H

#include "verde/exec/source.h"

/* exec->part is this process's in all of them. States are of its part alone: other leaves are NULL.
 */
typedef struct {
    /* As vd_exec_init, for the part. */
    vd_status (*init)(void *user, const vd_exec *exec, vd_state *out, vd_err *err);
    /* Of a whole state in host memory, frees what this process does not keep; the others have
     * their parts from it. */
    vd_status (*spread)(void *user, vd_state *state, vd_err *err);
    vd_status (*step)(void *user, const vd_exec *exec, vd_state *state, vd_err *err);
    /* As vd_state_hash. */
    vd_status (*hash)(void *user, const vd_exec *exec, const vd_state *state, vd_hash *tensor,
                      vd_hash *out, vd_err *err);
    /* As vd_trace of a step. */
    vd_status (*trace)(void *user, const vd_exec *exec, const vd_state *before, vd_records *out,
                       vd_err *err);
    /* Runs a step; the observer sees one node, wherever it ran, with those of its inputs that are
     * no sources. */
    vd_status (*observe)(void *user, const vd_exec *exec, const vd_state *before, uint32_t node,
                         const vd_observer *observer, vd_err *err);
    /* A leaf that this process does not keep, in host memory. Owned by the caller. */
    vd_status (*leaf)(void *user, const vd_state *state, uint32_t index, void **out, vd_err *err);
    void *user;
} vd_replay_team;

/* Before anything is asked. The team is borrowed. Of a run in fixed order. */
void vd_replay_share(vd_replay *replay, const vd_replay_team *team);

#endif
