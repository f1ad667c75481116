/* A tournament's internal declarations. Private to verde/protocol/tournament*.c. */
#ifndef VD_TOURNAMENT_INTERNAL_H
#define VD_TOURNAMENT_INTERNAL_H

#include "verde/protocol/dispute.h"
#include "verde/protocol/tournament.h"

enum { VD_SITTINGS_MAX = VD_GAMES_MAX + 2 }; /* and the opening, and the request for second runs */

typedef enum {
    VD_STAGE_START,
    VD_STAGE_OPENING,
    VD_STAGE_FIRST, /* the games of the first hearing */
    VD_STAGE_CONTEST,
    VD_STAGE_SECOND,
    VD_STAGE_DONE,
} vd_stage;

/* A provider and its claim in this hearing. */
typedef struct {
    bool in;    /* takes part in this hearing and has not fallen */
    bool again; /* it answers from its second run */
    vd_hash root, run_name;
    vd_said said;
} vd_seat;

/* Prefixes a game's story lines with its number. */
typedef struct {
    const vd_tournament *tournament;
    uint32_t game;
} vd_teller;

struct vd_tournament {
    vd_referee_options options;
    vd_assignment assignment;
    vd_stage stage;
    bool stuck;     /* a game ended in which nobody fell */
    uint32_t level; /* level of the last games */
    vd_seat seat[VD_PARTIES_MAX];
    bool challenger[VD_PARTIES_MAX]; /* the provider is asked for a second run */
    vd_sitting sitting[VD_SITTINGS_MAX];
    uint32_t provider[VD_SITTINGS_MAX][VD_PARTIES_MAX]; /* the arrays that sittings point to */
    vd_teller teller[VD_GAMES_MAX];
    size_t sittings, taken; /* number of sittings; those before `taken` are in the outcome */
    vd_outcome outcome;
};

void vd_tournament_tell(const vd_tournament *t, const char *format, ...) VD_PRINTF(2, 3);

/* ---- tournament_pairs.c ---- */

/* Returns the games of the next level as pairs of providers; none: the hearing is over. */
size_t vd_tournament_pairs(const vd_tournament *t, uint32_t pair[VD_PARTIES_MAX / 2][2]);
/* Returns true if p is the spokesman of its claim: the lowest number among those still in. */
bool vd_tournament_speaks(const vd_tournament *t, uint32_t p);

/* ---- tournament_outcome.c ---- */

void vd_tournament_take_opening(vd_tournament *t, const vd_referee *opening);
void vd_tournament_take_game(vd_tournament *t, const vd_sitting *sitting);
void vd_tournament_take_contest(vd_tournament *t, const vd_referee *contest);
/* Returns true if a convicted provider may contest a claim left standing; records who may. */
bool vd_tournament_contest_due(vd_tournament *t);
void vd_tournament_conclude(vd_tournament *t);

#endif
