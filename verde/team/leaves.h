/* Sending leaves of states between ranks; numbers of these messages. Private to verde/team. */
#ifndef VD_TEAM_LEAVES_H
#define VD_TEAM_LEAVES_H

#include "verde/team/member.h"

/* Numbers of messages that are no values of a step. */
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
/* Receives a leaf into host memory. The caller frees it, also after a failure. */
VD_MUST_USE vd_status vd_leaf_receive(const vd_member *member, uint32_t leaf, uint32_t from,
                                      void **out, vd_err *err);
/* Receives from rank 0 the leaves of a state that this rank keeps, into the memory of exec->ro. */
VD_MUST_USE vd_status vd_state_receive(const vd_member *member, const vd_exec *exec, int64_t step,
                                       vd_state *out, vd_err *err);

#endif
