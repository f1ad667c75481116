/* The seats of a desk: which question gets one, which one gives way, and whose turn is next.
 * Private to verde/protocol; the caller holds the desk's lock. */
#ifndef VD_DESK_SEATS_H
#define VD_DESK_SEATS_H

#include "verde/protocol/inquiry.h"

typedef enum {
    VD_SEAT_FREE = 0,
    VD_SEAT_WAITING,
    VD_SEAT_WORKING,
    VD_SEAT_DONE
} vd_desk_seat_state;

/* A question, and its answer once it is computed. */
typedef struct {
    vd_desk_seat_state state;
    vd_inquiry inquiry; /* `err` of it points to `err` below */
    vd_status status;
    vd_err err;
    vd_buf note;
    bool taken; /* the answer was fetched */
    int failures, asks;
    uint64_t asked, began; /* values of `now` when last asked about, and when its turn began */
    double charged;        /* vd_seconds() up to which its computing was charged */
} vd_desk_seat;

/* A referee that has fetched a computed answer. Keys cost nothing, but a turn takes time: so known
 * referees keep their seats however many new keys appear. */
typedef struct {
    vd_public_key key;
    uint64_t asked, began; /* values of `now` when it last asked, and when its last turn began */
} vd_known_referee;

/* Seconds spent computing a referee's answers since vd_desk_settle last collected them. */
typedef struct {
    vd_public_key referee;
    double seconds;
} vd_account;

typedef struct {
    uint64_t now; /* counts events: it grows when a question is asked or gets its turn */
    bool known_had_last;
    vd_desk_seat seat[VD_DESK_MAX];
    vd_known_referee known[VD_DESK_KNOWN_MAX];
    int known_count;
    vd_account account[VD_DESK_KNOWN_MAX];
    int account_count;
} vd_desk_seats;

void vd_seat_clear(vd_desk_seat *p);
/* Returns the seat of a question that was asked before, or NULL. */
vd_desk_seat *vd_seats_find(vd_desk_seats *d, const vd_hash *question);
/* Returns an empty seat for a question of this referee, or NULL if it may take none. */
vd_desk_seat *vd_seats_make_room(vd_desk_seats *d, const vd_public_key *referee);
/* Records that the question at `p` was asked (again). */
void vd_seats_note_asked(vd_desk_seats *d, vd_desk_seat *p);
/* Gives the next waiting question its turn and returns it, or NULL if none waits. */
vd_desk_seat *vd_seats_next(vd_desk_seats *d);
/* Charges the referee for the computing at `p` since the last charge, up to `now` (vd_seconds()).
 * If there is no room for another account, the smallest one is replaced. */
void vd_seats_charge(vd_desk_seats *d, vd_desk_seat *p, double now);
/* Records that the answer at `p` was fetched, which makes its referee known. If the answers exceed
 * VD_DESK_BYTES, others are dropped, beginning with the one asked about longest ago. */
void vd_seats_note_taken(vd_desk_seats *d, vd_desk_seat *p);

#endif
