/* One rank of a team at work. */
#ifndef VD_MEMBER_H
#define VD_MEMBER_H

#include "verde/exec/run.h"
#include "verde/team/team.h"
#include "verde/team/transport.h"

/* Stays where it is: `part` points into it. */
typedef struct {
    const vd_team_plan *plan; /* borrowed */
    vd_transport transport;
    uint64_t sent_bytes, received; /* of tensors; how many tensors */
    vd_exec_part part;             /* for vd_exec.part */
    /* Rank 0's, while it writes a state: */
    const vd_state *saved; /* borrowed */
    void *leaf;            /* in host memory, if it is not the state's own */
} vd_member;

/* The transport has as many ranks as the plan. */
void vd_member_open(vd_member *member, const vd_team_plan *plan, const vd_transport *transport);

/* After initialisation, or after a whole state was read: frees what this rank does not keep. */
void vd_member_thin(const vd_member *member, vd_state *state);

/* Commitment of the state, of which each rank hashes the leaves that it owns; all ranks call it.
 * Rank 0 gets in `tensor` the commitment of each leaf (room for all; may be NULL) and in *out that
 * of the state, as vd_state_hash would give; the others get zeros. */
VD_MUST_USE vd_status vd_member_hash(vd_member *member, ro_ctx *ro, const vd_hash *program_hash,
                                     const vd_state *state, vd_hash *tensor, vd_hash *out,
                                     vd_err *err);

/* For vd_run_options.team of rank 0. */
vd_run_team vd_member_lead(vd_member *member);
/* What all other ranks do while rank 0 is in vd_run; exec->part is the member's. */
VD_MUST_USE vd_status vd_member_follow(vd_member *member, const vd_exec *exec, vd_err *err);

#endif
