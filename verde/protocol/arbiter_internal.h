/* The inside of an arbiter. Private to verde/protocol/arbiter*.c. */
#ifndef VD_ARBITER_INTERNAL_H
#define VD_ARBITER_INTERNAL_H

#include "verde/protocol/arbiter.h"

/* What one provider is asked, and how long its answer has taken. */
typedef struct {
    bool asked;     /* and has not answered */
    bool away;      /* a request is on its way */
    bool first;     /* of the first round, in which an address may be a mistake */
    uint32_t seat;  /* of the hearing: which sitting asks */
    uint32_t party; /* of its referee */
    vd_work work;   /* what the answer takes */
    vd_hash question;
    vd_buf note, request; /* owned */
    size_t answer_max;
    double allowance_s, used_s;
    double heard_s; /* of `used_s`, when it last said that it works */
    double noted_s; /* of `used_s`, in the journal */
    double pause_s; /* until it is asked again */
    double again_at, told_at;
    char told_why[VD_REPLY_WHY]; /* what was told last of its work */
    bool told, replied;
    bool met; /* it has said that it works, under its key: the address is no mistake */
} vd_asking;

/* A provider's clock in one game. */
typedef struct {
    double left_s;
    bool paid[VD_WORKS]; /* it got the time for this work */
} vd_game_clock;

/* A sitting of those that are held at the same time. */
typedef struct {
    vd_sitting sitting;
    uint32_t open; /* questions without an answer */
    bool over, begun;
    vd_level level;  /* of the questions that were put last */
    double asked_at; /* when they were */
} vd_seat_of_hearing;

struct vd_arbiter {
    vd_arbiter_options options;
    const vd_world *world;
    vd_assignment assignment;
    vd_referee *two;
    vd_tournament *many;
    vd_minutes *minutes;
    size_t noted[VD_PARTIES_MAX]; /* entries of the journal before this one are taken */
    vd_pace pace[VD_PARTIES_MAX];
    vd_asking asking[VD_PARTIES_MAX];
    vd_game_clock clock[VD_PARTIES_MAX];
    vd_seat_of_hearing seat[VD_PARTIES_MAX];
    size_t seats;
    vd_noted fresh[VD_PARTIES_MAX]; /* questions to be sent, once they are in the journal */
    size_t fresh_count;
    uint64_t rounds; /* begun */
    double level_s[VD_LEVELS];
    bool heard, mistaken;
    bool astray; /* somebody's address is wrong: the first of these, and why */
    uint32_t astray_provider;
    char astray_why[VD_REPLY_WHY];
    uint32_t refusals; /* of the first request */
    vd_err *err;
};

void vd_arbiter_tell(const vd_arbiter *a, vd_telling how, const char *format, ...) VD_PRINTF(3, 4);
/* One frame of the journal. */
VD_MUST_USE vd_status vd_arbiter_append(vd_arbiter *a, const vd_noted *noted, size_t count);

/* ---- arbiter_clock.c ---- */

void vd_clocks_renew(vd_arbiter *a, const vd_sitting *sitting, uint32_t parties);
/* Its time is nobody's clock's, and while it takes that a word is wanted now and then. */
bool vd_is_in_no_game(vd_work work);
/* The seconds that an answer may take: it is put on the clock of the game. */
double vd_clock_allow(vd_arbiter *a, uint32_t provider, vd_work work, const vd_program *program);

/* ---- arbiter_ask.c ---- */

/* Puts a question to a provider: it is answered by the journal, or is to be sent. */
VD_MUST_USE vd_status vd_arbiter_put(vd_arbiter *a, uint32_t seat, const vd_outgoing *question);
/* Sends what is due, and takes one reply or lets the time pass until the next is due. */
VD_MUST_USE vd_status vd_arbiter_go_on(vd_arbiter *a);

#endif
