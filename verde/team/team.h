/* Teams: several processes, called ranks, share the steps of one run, with the same bits as one
 * process. A program does not mention them: its plan says which rank runs which nodes, and values
 * that one rank makes and another reads become messages.
 *
 * Each rank has consecutive micro-batches. A trained parameter, its gradient's sum and its
 * optimizer state have an owner, so that no rank keeps the whole optimizer state (ZeRO-1,
 * Rajbhandari et al., 2020). Partial sums are added in the program's own tree. */
#ifndef VD_TEAM_H
#define VD_TEAM_H

#include "verde/exec/exec.h"

enum {
    VD_TEAM_RANKS_MAX = 1024,
    VD_TEAM_MESSAGES_MAX = 1 << 24, /* of a step */
};

/* The owner of a node that every rank runs, because its inputs are small or on every rank. */
#define VD_TEAM_ALL UINT32_MAX

/* Rank `from` makes the value in a step; `to` reads it, or keeps it as part of the state. */
typedef struct {
    uint32_t value, from, to;
} vd_team_message;

/* What each rank does in a step. Every rank makes the same plan from the program. */
typedef struct {
    const vd_program *program; /* borrowed */
    uint32_t ranks;
    bool *chained;   /* of each stored node of a repeat: whether it depends on a carried value */
    uint32_t *owner; /* of each stored node outside of repeats */
    uint32_t *sum_owner;      /* of each sum: the rank that needs its total */
    uint32_t *leaf_owner;     /* of each leaf: the rank that hashes and stores it */
    bool *reads;              /* [leaf * ranks + rank]: whether the rank reads the leaf in a step */
    vd_team_message *message; /* sorted by value, then by `to`; no duplicates */
    uint32_t message_count;
} vd_team_plan;

/* Plans for 1 to VD_TEAM_RANKS_MAX ranks, at most one per micro-batch: else VD_ERR_USAGE. Owned by
 * the caller. */
VD_MUST_USE vd_status vd_team_plan_create(const vd_program *program, uint32_t ranks,
                                          vd_team_plan *out, vd_err *err);
void vd_team_plan_free(vd_team_plan *plan);

/* The rank that runs a node, or VD_TEAM_ALL; that makes a value, VD_TEAM_ALL for a source. */
uint32_t vd_team_owner(const vd_team_plan *plan, uint32_t node);
uint32_t vd_team_value_owner(const vd_team_plan *plan, uint32_t value);
/* Returns whether a node of this rank in a repeat waits for another rank: it adds iterations of
 * several ranks, or depends on a carried value. */
bool vd_team_waits(const vd_team_plan *plan, uint32_t rank, uint32_t node);
/* Returns whether a rank keeps a leaf of the state: it owns the leaf, or reads it in a step. */
bool vd_team_keeps(const vd_team_plan *plan, uint32_t rank, uint32_t leaf);
/* Returns the number of messages of a value; *first is the index of the first one. */
uint32_t vd_team_messages_of(const vd_team_plan *plan, uint32_t value, uint32_t *first);
/* The index of the message that brings a value to a rank; UINT32_MAX: there is none. */
uint32_t vd_team_message_to(const vd_team_plan *plan, uint32_t value, uint32_t to);

#endif
