/* Teams: the steps of one run shared by several processes, its ranks, with the bits of one. The
 * program does not know of them: who runs which node of its graph is planned here, and what one
 * rank makes and another one reads becomes a message.
 *
 * Each rank has consecutive micro-batches. A trained parameter, its gradient's sum and what the
 * optimizer keeps for it have an owner, so that no rank keeps all of an optimizer's state (ZeRO-1,
 * Rajbhandari et al., 2020). Partial sums are added in the program's own tree. */
#ifndef VD_TEAM_H
#define VD_TEAM_H

#include "verde/exec/exec.h"

enum {
    VD_TEAM_RANKS_MAX = 1024,
    VD_TEAM_MESSAGES_MAX = 1 << 24, /* of a step */
};

/* The owner of a node that every rank runs: what it reads is small, or there everywhere. */
#define VD_TEAM_ALL UINT32_MAX

/* Rank `from` makes the value in a step, and `to` reads it, or keeps it as part of the state. */
typedef struct {
    uint32_t value, from, to;
} vd_team_message;

/* Who does what in each step. The same on every rank: it follows from the program alone. */
typedef struct {
    const vd_program *program; /* borrowed */
    uint32_t ranks;
    bool *chained;            /* of each stored node of a repeat: depends on a carried value */
    uint32_t *owner;          /* of each stored node that is in no repeat; else unused */
    uint32_t *sum_owner;      /* of each sum: the rank where its tree's root is wanted */
    uint32_t *leaf_owner;     /* of each leaf: the rank that hashes and stores it */
    bool *reads;              /* [leaf * ranks + rank]: reads the leaf in a step */
    vd_team_message *message; /* ascending by value, then by `to`; each once */
    uint32_t message_count;
} vd_team_plan;

/* A plan for `ranks` ranks, 1 to VD_TEAM_RANKS_MAX, at most as many as the step has micro-batches:
 * VD_ERR_USAGE. Owned by the caller. */
VD_MUST_USE vd_status vd_team_plan_create(const vd_program *program, uint32_t ranks,
                                          vd_team_plan *out, vd_err *err);
void vd_team_plan_free(vd_team_plan *plan);

/* The rank that runs a node of the step's graph, or VD_TEAM_ALL; likewise of a value, and
 * VD_TEAM_ALL for a source. */
uint32_t vd_team_owner(const vd_team_plan *plan, uint32_t node);
uint32_t vd_team_value_owner(const vd_team_plan *plan, uint32_t value);
/* Whether a node of this rank in a repeat waits for another rank: an addition over iterations that
 * are not all its own, or what depends on a value that is carried from iteration to iteration. */
bool vd_team_waits(const vd_team_plan *plan, uint32_t rank, uint32_t node);
/* Whether a rank keeps a leaf of the state: it reads it in a step, or owns it. */
bool vd_team_keeps(const vd_team_plan *plan, uint32_t rank, uint32_t leaf);
/* The messages of a value, from *first on; how many. */
uint32_t vd_team_messages_of(const vd_team_plan *plan, uint32_t value, uint32_t *first);
/* The number of the message that brings a value to a rank; UINT32_MAX: none does. */
uint32_t vd_team_message_to(const vd_team_plan *plan, uint32_t value, uint32_t to);

#endif
