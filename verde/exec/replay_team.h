/* Replays whose steps several processes share; for the process that answers. */
#ifndef VD_REPLAY_TEAM_H
#define VD_REPLAY_TEAM_H

#include "verde/exec/source.h"

/* Functions for the answering process; exec->part is its part. Other leaves of states are NULL. */
typedef struct {
    /* Like vd_exec_init, for the part. */
    vd_status (*init)(void *user, const vd_exec *exec, vd_state *out, vd_err *err);
    /* Sends parts of a whole state in host memory to the others; frees what this process does not
     * keep. */
    vd_status (*spread)(void *user, vd_state *state, vd_err *err);
    vd_status (*step)(void *user, const vd_exec *exec, vd_state *state, vd_err *err);
    /* Like vd_state_hash. */
    vd_status (*hash)(void *user, const vd_exec *exec, const vd_state *state, vd_hash *tensor,
                      vd_hash *out, vd_err *err);
    /* Like vd_trace, for a step. */
    vd_status (*trace)(void *user, const vd_exec *exec, const vd_state *before, vd_records *out,
                       vd_err *err);
    /* Runs a step. The observer sees one node, wherever it ran, and those inputs that nodes
     * made. */
    vd_status (*observe)(void *user, const vd_exec *exec, const vd_state *before, uint32_t node,
                         const vd_observer *observer, vd_err *err);
    /* Gets a leaf that this process does not keep into host memory. The caller frees it. */
    vd_status (*leaf)(void *user, const vd_state *state, uint32_t index, void **out, vd_err *err);
    void *user;
} vd_replay_team;

/* Lets a team, which is borrowed, share a replay in fixed order; called before any question. */
void vd_replay_share(vd_replay *replay, const vd_replay_team *team);

#endif
