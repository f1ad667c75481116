/* The inside of a tournament. Private to verde/protocol/tournament*.c. */
#ifndef VD_TOURNAMENT_INTERNAL_H
#define VD_TOURNAMENT_INTERNAL_H

#include "verde/protocol/dispute.h"
#include "verde/protocol/tournament.h"

enum { VD_SITTINGS_MAX = VD_GAMES_MAX + 2 }; /* the opening, and the question for second runs */

typedef enum {
    VD_STAGE_START,
    VD_STAGE_OPENING,
    VD_STAGE_FIRST, /* hearing */
    VD_STAGE_CONTEST,
    VD_STAGE_SECOND,
    VD_STAGE_DONE,
} vd_stage;

/* What a provider claims in this hearing. */
typedef struct {
    bool in;    /* it takes part and has not fallen */
    bool again; /* it answers from its second run */
    vd_hash root, run_name;
    vd_said said;
} vd_seat;

/* Tells the story of one game. */
typedef struct {
    const vd_tournament *tournament;
    uint32_t game;
} vd_teller;

struct vd_tournament {
    vd_referee_options options;
    vd_assignment assignment;
    vd_stage stage;
    bool stuck;     /* a game ended in which nobody fell */
    uint32_t level; /* of the last games */
    vd_seat seat[VD_PARTIES_MAX];
    bool challenger[VD_PARTIES_MAX]; /* is asked for a second run */
    vd_sitting sitting[VD_SITTINGS_MAX];
    uint32_t provider[VD_SITTINGS_MAX][VD_PARTIES_MAX]; /* what each sitting points to */
    vd_teller teller[VD_GAMES_MAX];
    size_t sittings, taken; /* those before `taken` are in the outcome */
    vd_outcome outcome;
};

void vd_tournament_tell(const vd_tournament *t, const char *format, ...) VD_PRINTF(2, 3);

/* ---- tournament_pairs.c ---- */

/* The games of the next level, as pairs of providers; none: the hearing is over. */
size_t vd_tournament_pairs(const vd_tournament *t, uint32_t pair[VD_PARTIES_MAX / 2][2]);
/* Whether a provider is the first of those in with its claim. */
bool vd_tournament_speaks(const vd_tournament *t, uint32_t p);

/* ---- tournament_outcome.c ---- */

void vd_tournament_take_opening(vd_tournament *t, const vd_referee *opening);
void vd_tournament_take_game(vd_tournament *t, const vd_sitting *sitting);
void vd_tournament_take_contest(vd_tournament *t, const vd_referee *contest);
/* Is a claim left that somebody convicted may contest? Notes who. */
bool vd_tournament_contest_due(vd_tournament *t);
void vd_tournament_conclude(vd_tournament *t);

#endif
