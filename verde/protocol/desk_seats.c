/* This file gives the seats of a desk to referees in turn, known ones before new ones. */
#include "verde/protocol/desk_seats.h"

#include <string.h>

static const vd_public_key *referee_of(const vd_desk_seat *p) {
    return &p->inquiry.assignment.referee;
}

static bool same_key(const vd_public_key *a, const vd_public_key *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

void vd_seat_clear(vd_desk_seat *p) {
    vd_inquiry_free(&p->inquiry);
    vd_buf_free(&p->note);
    *p = (vd_desk_seat){.state = VD_SEAT_FREE};
}

vd_desk_seat *vd_seats_find(vd_desk_seats *d, const vd_hash *question) {
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (d->seat[i].state != VD_SEAT_FREE &&
            vd_hash_equal(&d->seat[i].inquiry.question_hash, question))
            return &d->seat[i];
    return NULL;
}

static int seats_of(const vd_desk_seats *d, const vd_public_key *referee) {
    int count = 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        count += d->seat[i].state != VD_SEAT_FREE && same_key(referee, referee_of(&d->seat[i]));
    return count;
}

/* ---- known referees ---- */

static vd_known_referee *known(vd_desk_seats *d, const vd_public_key *referee) {
    for (int i = 0; i < d->known_count; i++)
        if (same_key(&d->known[i].key, referee))
            return &d->known[i];
    return NULL;
}

static bool is_new(vd_desk_seats *d, const vd_desk_seat *p) {
    return p->state != VD_SEAT_FREE && !known(d, referee_of(p));
}

/* Chooses the known referee to forget: one without a seat if there is any, else any; of these the
 * one that asked longest ago. */
static vd_known_referee *forget_one(vd_desk_seats *d) {
    vd_known_referee *best = &d->known[0];
    for (int i = 1; i < d->known_count; i++) {
        vd_known_referee *k = &d->known[i];
        const bool seated = seats_of(d, &k->key) > 0, best_is = seats_of(d, &best->key) > 0;
        if (seated != best_is ? !seated : k->asked < best->asked)
            best = k;
    }
    return best;
}

static void know(vd_desk_seats *d, const vd_desk_seat *p) {
    vd_known_referee *k = known(d, referee_of(p));
    if (!k) {
        k = d->known_count < VD_DESK_KNOWN_MAX ? &d->known[d->known_count++] : forget_one(d);
        *k = (vd_known_referee){.key = *referee_of(p), .began = p->began};
    }
    k->asked = d->now;
}

void vd_seats_note_asked(vd_desk_seats *d, vd_desk_seat *p) {
    vd_known_referee *k = known(d, referee_of(p));
    p->asked = ++d->now;
    p->asks += p->asks < 2;
    if (k)
        k->asked = d->now;
}

/* ---- turns ---- */

/* Returns the referee's last turn. Turns go by referee: asking more does not bring more of them. */
static uint64_t last_turn(vd_desk_seats *d, const vd_desk_seat *p) {
    const vd_known_referee *k = known(d, referee_of(p));
    uint64_t last = k ? k->began : 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        if (d->seat[i].state != VD_SEAT_FREE && d->seat[i].began > last &&
            same_key(referee_of(p), referee_of(&d->seat[i])))
            last = d->seat[i].began;
    return last;
}

/* Returns the waiting question, of a new referee or not, whose referee has waited longest. */
static vd_desk_seat *longest_waiting(vd_desk_seats *d, bool new) {
    vd_desk_seat *best = NULL;
    uint64_t turn = 0;
    for (int i = 0; i < VD_DESK_MAX; i++) {
        vd_desk_seat *p = &d->seat[i];
        if (p->state != VD_SEAT_WAITING || is_new(d, p) != new)
            continue;
        const uint64_t last = last_turn(d, p);
        if (!best || last < turn) {
            best = p;
            turn = last;
        }
    }
    return best;
}

/* While a known referee waits, all new ones together get at most every second turn. */
vd_desk_seat *vd_seats_next(vd_desk_seats *d) {
    const bool new_first = d->known_had_last;
    vd_desk_seat *p = longest_waiting(d, new_first);
    if (!p)
        p = longest_waiting(d, !new_first);
    if (!p)
        return NULL;
    vd_known_referee *k = known(d, referee_of(p));
    p->began = ++d->now;
    d->known_had_last = k != NULL;
    if (k)
        k->began = p->began;
    return p;
}

/* ---- accounts ---- */

static vd_account *account_of(vd_desk_seats *d, const vd_public_key *referee) {
    vd_account *smallest = &d->account[0];
    for (int i = 0; i < d->account_count; i++) {
        vd_account *a = &d->account[i];
        if (same_key(&a->referee, referee))
            return a;
        if (a->seconds < smallest->seconds)
            smallest = a;
    }
    if (d->account_count < VD_DESK_KNOWN_MAX)
        smallest = &d->account[d->account_count++];
    *smallest = (vd_account){.referee = *referee};
    return smallest;
}

void vd_seats_charge(vd_desk_seats *d, vd_desk_seat *p, double now) {
    account_of(d, referee_of(p))->seconds += now - p->charged;
    p->charged = now;
}

/* ---- room ---- */

/* Returns true if a question may take this seat. A new referee gets no seat that a known one still
 * needs, and none once new ones hold VD_DESK_NEW_MAX. */
static bool may_take(vd_desk_seats *d, const vd_desk_seat *p, bool new, bool new_are_many) {
    if (p->state == VD_SEAT_WORKING)
        return false;
    if (!new || is_new(d, p))
        return true;
    return !new_are_many && (p->state == VD_SEAT_FREE || (p->state == VD_SEAT_DONE && p->taken));
}

static bool gives_way_before(vd_desk_seats *d, const vd_desk_seat *a, const vd_desk_seat *b) {
    if (a->state == VD_SEAT_FREE || b->state == VD_SEAT_FREE)
        return b->state != VD_SEAT_FREE;
    const int of_a = seats_of(d, referee_of(a)), of_b = seats_of(d, referee_of(b));
    if (of_a != of_b)
        return of_a > of_b;
    if (is_new(d, a) != is_new(d, b))
        return is_new(d, a);
    if (a->state != b->state)
        return a->state == VD_SEAT_DONE;
    return a->asked < b->asked;
}

static bool new_are_many(vd_desk_seats *d) {
    int count = 0;
    for (int i = 0; i < VD_DESK_MAX; i++)
        count += is_new(d, &d->seat[i]);
    return count >= VD_DESK_NEW_MAX;
}

/* Returns a free seat, or one of the referee that has most, so that its many questions cost nobody
 * else an answer: a finished one first, then the one asked about longest ago. */
vd_desk_seat *vd_seats_make_room(vd_desk_seats *d, const vd_public_key *referee) {
    const bool new = !known(d, referee), many = new_are_many(d);
    vd_desk_seat *best = NULL;
    for (int i = 0; i < VD_DESK_MAX; i++) {
        vd_desk_seat *p = &d->seat[i];
        if (may_take(d, p, new, many) && (!best || gives_way_before(d, p, best)))
            best = p;
    }
    if (best)
        vd_seat_clear(best);
    return best;
}

void vd_seats_note_taken(vd_desk_seats *d, vd_desk_seat *p) {
    size_t bytes = 0;
    p->taken = true;
    know(d, p);
    for (int i = 0; i < VD_DESK_MAX; i++)
        bytes += d->seat[i].state == VD_SEAT_DONE ? d->seat[i].note.size : 0;
    while (bytes > VD_DESK_BYTES) {
        vd_desk_seat *oldest = NULL;
        for (int i = 0; i < VD_DESK_MAX; i++) {
            vd_desk_seat *other = &d->seat[i];
            if (other != p && other->state == VD_SEAT_DONE && other->note.size &&
                (!oldest || other->asked < oldest->asked))
                oldest = other;
        }
        if (!oldest)
            return;
        bytes -= oldest->note.size;
        vd_seat_clear(oldest);
    }
}
