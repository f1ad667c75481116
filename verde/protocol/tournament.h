/* A dispute between more than two providers: all commit and reveal, equal claims form groups, and
 * the groups' spokesmen play games of two until one group is left. It uses no sockets, clock or
 * files. Fed from a verdict's evidence, the same machine verifies it. PROTOCOL.md section 5.8. */
#ifndef VD_TOURNAMENT_H
#define VD_TOURNAMENT_H

#include "verde/protocol/referee.h"

typedef struct vd_tournament vd_tournament;

/* One part of the dispute: a referee and the providers that it asks. */
typedef struct {
    vd_referee *referee;
    uint32_t game;            /* number of the game, from 1; 0: all providers are asked at once */
    const uint32_t *provider; /* for each party of the referee, its number in the assignment */
} vd_sitting;

enum { VD_SITTING_TEXT = 64 };
/* Writes a sentence for people that says who plays whom. */
void vd_sitting_text(const vd_sitting *sitting, char text[VD_SITTING_TEXT]);

/* Creates a tournament. The options are copied; what they point to is borrowed. `story` is called
 * by each thread that plays a game. VD_ERR_USAGE: the assignment is of another program, or names
 * two providers (vd_referee_create). */
VD_MUST_USE vd_status vd_tournament_create(const vd_referee_options *options, vd_tournament **out,
                                           vd_err *err);
void vd_tournament_destroy(vd_tournament *tournament);

/* Returns the sittings to hold now, in parallel or one after the other, each with vd_referee_next
 * until it asks nothing more; none: the outcome is decided. All must have ended before the next
 * call. The tournament owns them. An error (out of memory) ends the dispute without an outcome. */
VD_MUST_USE vd_status vd_tournament_next(vd_tournament *tournament, vd_sitting out[VD_PARTIES_MAX],
                                         size_t *count, vd_err *err);

/* Returns the outcome so far; it is final when vd_tournament_next returns no more sittings. */
const vd_outcome *vd_tournament_outcome(const vd_tournament *tournament);
/* Returns all sittings so far, in the order of a verdict's evidence. */
const vd_sitting *vd_tournament_sittings(const vd_tournament *tournament, size_t *count);

/* Copies an outcome. The caller frees *out with vd_outcome_free. */
VD_MUST_USE vd_status vd_outcome_copy(const vd_outcome *outcome, vd_outcome *out, vd_err *err);
void vd_outcome_free(vd_outcome *outcome);

#endif
