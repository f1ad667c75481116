/* The places of a desk: whose question gets one, whose gives way, whose turn is next. Private to
 * verde/protocol; the desk's lock is held in all of these. */
#ifndef VD_DESK_PLACES_H
#define VD_DESK_PLACES_H

#include "verde/protocol/inquiry.h"

typedef enum {
    VD_PLACE_FREE = 0,
    VD_PLACE_WAITING,
    VD_PLACE_WORKING,
    VD_PLACE_DONE
} vd_place_state;

/* A question that was asked, and its answer once it is there. */
typedef struct {
    vd_place_state state;
    vd_inquiry inquiry; /* its `err` is the one below */
    vd_status status;
    vd_err err;
    vd_buf note;
    bool taken; /* its answer was fetched */
    int failures, asks;
    uint64_t asked, began; /* when last, by the desk's count */
    double charged;        /* vd_seconds() up to which its computing is accounted for */
} vd_place;

/* A referee that has fetched an answer that took a turn. A key costs nothing, a turn's time does:
 * who has had one keeps its places whatever keys come that nobody has seen. */
typedef struct {
    vd_public_key key;
    uint64_t asked, began; /* when last */
} vd_known_referee;

/* Seconds of computing for a referee's answers, until somebody asks for the account. */
typedef struct {
    vd_public_key referee;
    double seconds;
} vd_account;

typedef struct {
    uint64_t now; /* counts what happens */
    bool known_had_last;
    vd_place place[VD_DESK_MAX];
    vd_known_referee known[VD_DESK_KNOWN_MAX];
    int known_count;
    vd_account account[VD_DESK_KNOWN_MAX];
    int account_count;
} vd_places;

void vd_place_clear(vd_place *p);
/* The place of a question that was asked before; NULL: it was not. */
vd_place *vd_places_find(vd_places *d, const vd_hash *question);
/* An empty place for a question of this referee. NULL: all are of referees that go before it. */
vd_place *vd_places_make_room(vd_places *d, const vd_public_key *referee);
/* The question at `p` was asked, or asked again. */
void vd_places_note_asked(vd_places *d, vd_place *p);
/* The next waiting question, whose turn it now has; NULL: none waits. */
vd_place *vd_places_next(vd_places *d);
/* What was computed at `p` since it was charged last, up to `now` (vd_seconds()), goes on the
 * account of its referee. Where there is no room for another one, the smallest account makes it. */
void vd_places_charge(vd_places *d, vd_place *p, double now);
/* The answer at `p` was fetched: its referee is known from now on. Among the other answers that are
 * kept, the ones asked for longest ago go, as far as memory asks for it. */
void vd_places_note_taken(vd_places *d, vd_place *p);

#endif
