/* Leaves of states on their way between ranks, and the numbers of messages. Private to verde/team.
 */
#ifndef VD_TEAM_LEAVES_H
#define VD_TEAM_LEAVES_H

#include "verde/team/member.h"

/* Of messages that are no values of a step. */
enum {
    VD_TEAM_COMMITMENTS = VD_TEAM_MESSAGES_MAX,
    VD_TEAM_BEGINS,
    VD_TEAM_LEAF,
    VD_TEAM_COMMAND,
    VD_TEAM_TRACED,
    VD_TEAM_CAPTURED,
};

size_t vd_leaf_bytes(const vd_member *member, uint32_t leaf);
VD_MUST_USE vd_status vd_leaf_send(const vd_member *member, const vd_state *state, uint32_t leaf,
                                   uint32_t to, vd_err *err);
/* In host memory; owned by the caller, also after a failure. */
VD_MUST_USE vd_status vd_leaf_receive(const vd_member *member, uint32_t leaf, uint32_t from,
                                      void **out, vd_err *err);
/* The leaves that this rank keeps, of a state that rank 0 sends; placed where exec->ro computes. */
VD_MUST_USE vd_status vd_state_receive(const vd_member *member, const vd_exec *exec, int64_t step,
                                       vd_state *out, vd_err *err);

#endif
