/* The course of a dispute: whom to ask when, for how long, and what goes into the journal. It
 * stands between a referee, or a tournament, and a world with a clock, a network and a disk, each
 * behind a function, so that it runs on whatever has these. One thread. PROTOCOL.md sections 8.3
 * and 8.8. */
#ifndef VD_ARBITER_H
#define VD_ARBITER_H

#include "verde/protocol/minutes.h"
#include "verde/protocol/tournament.h"

/* A question on its way to one provider. */
typedef struct {
    uint32_t provider;     /* its number in the assignment */
    const vd_buf *request; /* both notes (vd_request_write); borrowed until its reply is taken */
    size_t answer_max;     /* bytes; a larger reply is refused */
    double seconds;        /* then it ends as trouble, if not before */
} vd_post;

typedef enum {
    VD_REPLY_NONE,    /* nothing came until then; of no provider */
    VD_REPLY_ANSWER,  /* `bytes`, which need not be a statement */
    VD_REPLY_WORKING, /* it says that it works on it */
    VD_REPLY_TROUBLE, /* no connection, no time, or something that is no answer */
    VD_REPLY_REFUSED, /* it says that the request deserves no answer; or its reply is too large */
    VD_REPLY_ASTRAY,  /* another's key, or a name that nobody has */
} vd_reply_kind;

enum { VD_REPLY_WHY = 512 };
typedef struct {
    vd_reply_kind kind;
    uint32_t provider;
    const void *bytes; /* ANSWER; borrowed until the next call of the world */
    size_t size;
    double seconds;         /* from sending to the last byte, which the provider's clock pays */
    char why[VD_REPLY_WHY]; /* all kinds but ANSWER: what it says, or what went wrong */
    bool said;              /* REFUSED: by its own word, not by a reply that is too large */
} vd_reply;

typedef enum {
    VD_TELL_LINE,    /* a line for the log */
    VD_TELL_PASSING, /* for a line that the next one takes the place of, where there is one */
    VD_TELL_EITHER,  /* that, or else a line */
} vd_telling;

/* An error of any of these ends the dispute, without blame. */
typedef struct {
    void *user;
    double (*now)(void *user); /* seconds; never goes back */
    /* Sends; returns at once. At most one question is on its way to a provider. */
    vd_status (*send)(void *user, const vd_post *post, vd_err *err);
    /* Waits for a reply to any of those sent, or until now() is `until`, of which HUGE_VAL is
     * never.
     */
    vd_status (*wait)(void *user, double until, vd_reply *out, vd_err *err);
    /* Appends to the journal: on disk when it returns. NULL: no journal is kept. */
    vd_status (*append)(void *user, const void *bytes, size_t size, vd_err *err);
    void (*tell)(void *user, vd_telling how, const char *line); /* may be NULL */
} vd_world;

enum {
    VD_PATIENCE_S = 120,     /* for an answer, beside what its computing takes */
    VD_PATIENCE_ANSWERS = 5, /* of a game: so many of these, beside its computing */
    VD_WORK_FACTOR = 3,      /* times what a provider's pace gives */
};

typedef struct {
    vd_referee_options referee;     /* what it points to is borrowed */
    const vd_buf *assignment;       /* note; borrowed */
    const vd_world *world;          /* borrowed */
    double patience_s;              /* in place of VD_PATIENCE_S; 0: that */
    int64_t step_us_max;            /* cap on a provider's times of a step; 0: by the program */
    const vd_program *longest_item; /* of a collection: what its providers measure; borrowed */
    bool own_rival;      /* provider 1 is the referee's own: of provider 0 alone a refusal
                            of the first request is a mistake, too */
    vd_minutes *minutes; /* zeros, or what was read; borrowed, and goes on growing */
    /* Of many: all who will have revealed their claims; may be NULL. `user` is the world's. */
    void (*opened)(void *user, const vd_tournament *tournament);
} vd_arbiter_options;

typedef struct vd_arbiter vd_arbiter;

VD_MUST_USE vd_status vd_arbiter_create(const vd_arbiter_options *options, vd_arbiter **out,
                                        vd_err *err);
void vd_arbiter_destroy(vd_arbiter *arbiter); /* accepts NULL */

/* Holds the dispute to its end. Questions that a journal has the answers of are not sent again.
 * VD_ERR_USAGE: the journal is of another dispute; VD_ERR_LOCAL: trouble of the world's, or an
 * address that is astray in the first round. */
VD_MUST_USE vd_status vd_arbiter_run(vd_arbiter *arbiter, vd_err *err);

/* The first round showed that the user named what are no providers of this job: all refused, or
 * that one did which has the referee's own rival, and vd_arbiter_run was successful without an
 * outcome; or an address was astray. */
bool vd_arbiter_mistaken(const vd_arbiter *arbiter);
/* Somebody has signed a statement. */
bool vd_arbiter_heard(const vd_arbiter *arbiter);
const vd_outcome *vd_arbiter_outcome(const vd_arbiter *arbiter);
const vd_referee *vd_arbiter_referee(const vd_arbiter *arbiter);       /* of two, else NULL */
const vd_tournament *vd_arbiter_tournament(const vd_arbiter *arbiter); /* of more, else NULL */
/* Seconds by the world's clock, from putting a round's questions until what follows from their
 * answers is known; games at the same time count each. [VD_LEVELS], the arbiter's. */
const double *vd_arbiter_level_seconds(const vd_arbiter *arbiter);

#endif
