/* A dispute between more than two providers: all commit and reveal, equal claims form groups, and
 * the groups' spokesmen play games of two until one group is left. No sockets, no clock, no files.
 * The same machine, fed from a verdict's evidence, verifies it. PROTOCOL.md section 5.8. */
#ifndef VD_TOURNAMENT_H
#define VD_TOURNAMENT_H

#include "verde/protocol/referee.h"

typedef struct vd_tournament vd_tournament;

/* A part of it: one referee, and whom it asks. */
typedef struct {
    vd_referee *referee;
    uint32_t game;            /* its number, from 1 on; 0: all providers are asked at once */
    const uint32_t *provider; /* of each of the referee's parties, the number in the assignment */
} vd_sitting;

enum { VD_SITTING_TEXT = 64 };
/* One sentence for people: who plays whom. */
void vd_sitting_text(const vd_sitting *sitting, char text[VD_SITTING_TEXT]);

/* The options are kept, and what they point to is borrowed. `story` is called by whoever plays a
 * sitting, for games from several threads if they are played so. VD_ERR_USAGE: the assignment is
 * of another program, or names two providers (vd_referee_create). */
VD_MUST_USE vd_status vd_tournament_create(const vd_referee_options *options, vd_tournament **out,
                                           vd_err *err);
void vd_tournament_destroy(vd_tournament *tournament);

/* Sittings to hold now, at the same time or one after the other, each by vd_referee_next until it
 * asks nothing more; 0 when the outcome stands. All must have ended before the next call. They stay
 * the tournament's. A failure (memory) ends the dispute without an outcome. */
VD_MUST_USE vd_status vd_tournament_next(vd_tournament *tournament, vd_sitting out[VD_PARTIES_MAX],
                                         size_t *count, vd_err *err);

/* So far; it stands when vd_tournament_next gives no more sittings. */
const vd_outcome *vd_tournament_outcome(const vd_tournament *tournament);
/* All sittings so far, in the order of a verdict's evidence. */
const vd_sitting *vd_tournament_sittings(const vd_tournament *tournament, size_t *count);

/* A copy that the caller frees by vd_outcome_free. */
VD_MUST_USE vd_status vd_outcome_copy(const vd_outcome *outcome, vd_outcome *out, vd_err *err);
void vd_outcome_free(vd_outcome *outcome);

#endif
