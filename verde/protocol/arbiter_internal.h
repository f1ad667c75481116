/* The arbiter's internal declarations. Private to verde/protocol/arbiter*.c. */
#ifndef VD_ARBITER_INTERNAL_H
#define VD_ARBITER_INTERNAL_H

#include "verde/protocol/arbiter.h"

/* The question that one provider has to answer, and the time that it has taken. */
typedef struct {
    bool asked;     /* a question is open: it has no answer yet */
    bool away;      /* a request was sent and has no reply yet */
    bool first;     /* in the first round, where a wrong address may be a mistake */
    uint32_t seat;  /* index of the sitting that asks */
    uint32_t party; /* the provider's number in the sitting's referee */
    vd_work work;   /* the kind of computing that the answer needs */
    vd_hash question;
    vd_buf note, request; /* owned */
    size_t answer_max;
    double allowance_s, used_s;
    double heard_s; /* value of `used_s` when it last said that it works */
    double noted_s; /* value of `used_s` last written to the journal */
    double pause_s; /* until the question is sent again */
    double again_at, told_at;
    char told_why[VD_REPLY_WHY]; /* the last reason that was printed */
    bool told, replied;
    bool met; /* it has said, under its key, that it works: so the address is right */
} vd_asking;

/* A provider's clock in one game. */
typedef struct {
    double left_s;
    bool paid[VD_WORKS]; /* time for this kind of work was added */
} vd_game_clock;

/* One of the sittings that are held at the same time. */
typedef struct {
    vd_sitting sitting;
    uint32_t open; /* number of questions without an answer */
    bool over, begun;
    vd_level level;  /* of the questions that were asked last */
    double asked_at; /* when they were asked */
} vd_seat_of_hearing;

struct vd_arbiter {
    vd_arbiter_options options;
    const vd_world *world;
    vd_assignment assignment;
    vd_referee *two;
    vd_tournament *many;
    vd_minutes *minutes;
    size_t noted[VD_PARTIES_MAX]; /* per provider: journal entries before this index are used up */
    vd_pace pace[VD_PARTIES_MAX];
    vd_asking asking[VD_PARTIES_MAX];
    vd_game_clock clock[VD_PARTIES_MAX];
    vd_seat_of_hearing seat[VD_PARTIES_MAX];
    size_t seats;
    vd_noted fresh[VD_PARTIES_MAX]; /* questions to append to the journal before they are sent */
    size_t fresh_count;
    uint64_t rounds; /* number of rounds begun */
    double level_s[VD_LEVELS];
    bool heard, mistaken;
    bool astray; /* somebody's address is wrong: which provider's (the first), and why */
    uint32_t astray_provider;
    char astray_why[VD_REPLY_WHY];
    uint32_t refusals; /* number of providers that refused the first request */
    vd_err *err;
};

void vd_arbiter_tell(const vd_arbiter *a, vd_telling how, const char *format, ...) VD_PRINTF(3, 4);
/* Appends `count` entries to the journal as one frame. */
VD_MUST_USE vd_status vd_arbiter_append(vd_arbiter *a, const vd_noted *noted, size_t count);

/* ---- arbiter_clock.c ---- */

void vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties);
/* Returns true if no game's clock pays: the provider must say now and then that it works. */
bool vd_is_in_no_game(vd_work work);
/* Returns the seconds that the answer may take, and adds the work's time to the game's clock. */
double vd_clock_allow(vd_arbiter *a, uint32_t provider, vd_work work, const vd_program *program);

/* ---- arbiter_ask.c ---- */

/* Puts a question to a provider: the journal answers it, or it is marked for sending. */
VD_MUST_USE vd_status vd_arbiter_put(vd_arbiter *a, uint32_t seat, const vd_outgoing *question);
/* Sends the questions that are due, then takes one reply, or waits until the next one is due. */
VD_MUST_USE vd_status vd_arbiter_go_on(vd_arbiter *a);

#endif
