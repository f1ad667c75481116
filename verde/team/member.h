/* One rank of a team. */
#ifndef VD_MEMBER_H
#define VD_MEMBER_H

#include "verde/exec/run.h"
#include "verde/team/team.h"
#include "verde/team/transport.h"

/* A member must not move: `part` points into it. */
typedef struct {
    const vd_team_plan *plan; /* borrowed */
    vd_transport transport;
    uint64_t sent_bytes, received; /* bytes of tensors sent; number of tensors received */
    vd_exec_part part;             /* for vd_exec.part */
    /* For rank 0, while it writes a state: */
    const vd_state *saved; /* borrowed */
    void *leaf;            /* in host memory, if it is not the state's own; owned */
} vd_member;

/* Opens a member. The transport has as many ranks as the plan. */
void vd_member_open(vd_member *member, const vd_team_plan *plan, const vd_transport *transport);

/* Frees leaves that this rank does not keep, after it initialised or read a whole state. */
void vd_member_thin(const vd_member *member, vd_state *state);

/* Computes the state's commitment: each rank hashes the leaves that it owns, and all ranks call
 * this. Rank 0 gets the commitments of all leaves in `tensor` (may be NULL) and, in *out, that of
 * the state, equal to vd_state_hash; other ranks get zeros. */
VD_MUST_USE vd_status vd_member_hash(vd_member *member, ro_ctx *ro, const vd_hash *program_hash,
                                     const vd_state *state, vd_hash *tensor, vd_hash *out,
                                     vd_err *err);

/* The functions for vd_run_options.team at rank 0. */
vd_run_team vd_member_lead(vd_member *member);
/* Runs the part of any other rank while rank 0 is in vd_run. exec->part must be the member's. */
VD_MUST_USE vd_status vd_member_follow(vd_member *member, const vd_exec *exec, vd_err *err);

#endif
