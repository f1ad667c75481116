/* The seats of a desk: whose question gets one, whose gives way, whose turn is next. Private to
 * verde/protocol; the desk's lock is held in all of these. */
#ifndef VD_DESK_SEATS_H
#define VD_DESK_SEATS_H

#include "verde/protocol/inquiry.h"

typedef enum {
    VD_SEAT_FREE = 0,
    VD_SEAT_WAITING,
    VD_SEAT_WORKING,
    VD_SEAT_DONE
} vd_desk_seat_state;

/* A question that was asked, and its answer once it is there. */
typedef struct {
    vd_desk_seat_state state;
    vd_inquiry inquiry; /* its `err` is the one below */
    vd_status status;
    vd_err err;
    vd_buf note;
    bool taken; /* its answer was fetched */
    int failures, asks;
    uint64_t asked, began; /* when last, by the desk's count */
    double charged;        /* vd_seconds() up to which its computing is accounted for */
} vd_desk_seat;

/* A referee that has fetched an answer that took a turn. A key costs nothing, a turn's time does:
 * who has had one keeps its seats whatever keys come that nobody has seen. */
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
    uint64_t now; /* orders events: it grows when a question is asked or gets its turn */
    bool known_had_last;
    vd_desk_seat seat[VD_DESK_MAX];
    vd_known_referee known[VD_DESK_KNOWN_MAX];
    int known_count;
    vd_account account[VD_DESK_KNOWN_MAX];
    int account_count;
} vd_desk_seats;

void vd_seat_clear(vd_desk_seat *p);
/* The seat of a question that was asked before; NULL: it was not. */
vd_desk_seat *vd_seats_find(vd_desk_seats *d, const vd_hash *question);
/* An empty seat for a question of this referee. NULL: all are of referees that go before it. */
vd_desk_seat *vd_seats_make_room(vd_desk_seats *d, const vd_public_key *referee);
/* The question at `p` was asked, or asked again. */
void vd_seats_note_asked(vd_desk_seats *d, vd_desk_seat *p);
/* The next waiting question, whose turn it now has; NULL: none waits. */
vd_desk_seat *vd_seats_next(vd_desk_seats *d);
/* What was computed at `p` since it was charged last, up to `now` (vd_seconds()), goes on the
 * account of its referee. Where there is no room for another one, the smallest account makes it. */
void vd_seats_charge(vd_desk_seats *d, vd_desk_seat *p, double now);
/* The answer at `p` was fetched: its referee is known from now on. Among the other answers that are
 * kept, the ones asked for longest ago go, as far as memory asks for it. */
void vd_seats_note_taken(vd_desk_seats *d, vd_desk_seat *p);

#endif
