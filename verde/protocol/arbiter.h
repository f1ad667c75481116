/* An arbiter conducts a dispute: it decides whom to ask and when, how long to wait, and what goes
 * into the journal. It connects a referee or a tournament to a vd_world, whose functions provide
 * clock, network and disk, so that it runs wherever these exist. Single-threaded. PROTOCOL.md
 * sections 8.3 and 8.8. */
#ifndef VD_ARBITER_H
#define VD_ARBITER_H

#include "verde/protocol/minutes.h"
#include "verde/protocol/tournament.h"

/* A question on its way to one provider. */
typedef struct {
    uint32_t provider;     /* number in the assignment */
    const vd_buf *request; /* assignment and question (vd_request_write); borrowed until replied */
    size_t answer_max;     /* bytes; a larger reply is refused */
    double seconds;        /* timeout; the reply is then VD_REPLY_TROUBLE */
} vd_post;

typedef enum {
    VD_REPLY_NONE,    /* nothing arrived before `until`; `provider` is not set */
    VD_REPLY_ANSWER,  /* `bytes` arrived; they may turn out to be no valid statement */
    VD_REPLY_WORKING, /* the provider says that it is still computing */
    VD_REPLY_TROUBLE, /* no connection, timeout, or a malformed reply */
    VD_REPLY_REFUSED, /* the provider says that the request is invalid, or its reply is too large */
    VD_REPLY_ASTRAY,  /* the server has another key, or the host name does not resolve */
} vd_reply_kind;

enum { VD_REPLY_WHY = 512 };
typedef struct {
    vd_reply_kind kind;
    uint32_t provider;
    const void *bytes; /* ANSWER; borrowed until the next call of the world */
    size_t size;
    double seconds;         /* from sending to the last byte; charged to the provider's clock */
    char why[VD_REPLY_WHY]; /* all kinds but ANSWER: the provider's words, or what went wrong */
    bool said;              /* REFUSED: the provider said so; false if its reply was too large */
} vd_reply;

typedef enum {
    VD_TELL_LINE,    /* a line for the log */
    VD_TELL_PASSING, /* a progress line, to be replaced by the next one */
    VD_TELL_EITHER,  /* the same, or a line for the log where lines cannot be replaced */
} vd_telling;

/* What an arbiter needs of its surroundings. An error ends the dispute; nobody is blamed. */
typedef struct {
    void *user;
    double (*now)(void *user); /* seconds; monotonic */
    /* Starts sending a question and returns at once. Each provider has at most one at a time. */
    vd_status (*send)(void *user, const vd_post *post, vd_err *err);
    /* Waits for a reply to any question that was sent, or until now() reaches `until` (HUGE_VAL: no
     * limit). */
    vd_status (*wait)(void *user, double until, vd_reply *out, vd_err *err);
    /* Appends to the journal; the bytes are on disk when it returns. NULL: no journal is kept. */
    vd_status (*append)(void *user, const void *bytes, size_t size, vd_err *err);
    void (*tell)(void *user, vd_telling how, const char *line); /* may be NULL */
} vd_world;

enum {
    VD_PATIENCE_S = 120,     /* for an answer, in addition to its computing time */
    VD_PATIENCE_ANSWERS = 5, /* a game's clock begins with this many times the patience */
    VD_WORK_FACTOR = 3,      /* times the computing time that follows from a provider's pace */
};

typedef struct {
    vd_referee_options referee;     /* the objects that it points to are borrowed */
    const vd_buf *assignment;       /* note; borrowed */
    const vd_world *world;          /* borrowed */
    double patience_s;              /* instead of VD_PATIENCE_S; 0: VD_PATIENCE_S */
    int64_t step_us_max;            /* cap on the stated times of a step; 0: from the program */
    const vd_program *longest_item; /* of a collection: its longest item; borrowed */
    bool own_rival;      /* provider 1 is the referee's: if provider 0 refuses the first request,
                            that is a mistake of the user */
    vd_minutes *minutes; /* zeros, or a journal that was read; borrowed, and appended to */
    /* More than two providers: called once claims are revealed; `user`: the world's. May be
     * NULL. */
    void (*opened)(void *user, const vd_tournament *tournament);
} vd_arbiter_options;

typedef struct vd_arbiter vd_arbiter;

VD_MUST_USE vd_status vd_arbiter_create(const vd_arbiter_options *options, vd_arbiter **out,
                                        vd_err *err);
void vd_arbiter_destroy(vd_arbiter *arbiter); /* accepts NULL */

/* Runs the dispute to its end. A question whose answer is in the journal is not sent again.
 * VD_ERR_USAGE: the journal belongs to another dispute. VD_ERR_LOCAL: a function of the world
 * failed, or an address was wrong in the first round (VD_REPLY_ASTRAY). */
VD_MUST_USE vd_status vd_arbiter_run(vd_arbiter *arbiter, vd_err *err);

/* Returns true if the first round showed a mistake of the user's: all providers refused (with
 * `own_rival`: provider 0 did), and vd_arbiter_run succeeded without an outcome; or an address was
 * wrong. */
bool vd_arbiter_mistaken(const vd_arbiter *arbiter);
/* Returns true if any provider has signed a statement. */
bool vd_arbiter_heard(const vd_arbiter *arbiter);
const vd_outcome *vd_arbiter_outcome(const vd_arbiter *arbiter);
const vd_referee *vd_arbiter_referee(const vd_arbiter *arbiter);       /* two providers, or NULL */
const vd_tournament *vd_arbiter_tournament(const vd_arbiter *arbiter); /* more than two, or NULL */
/* Returns the seconds of each level [VD_LEVELS], by the world's clock, from asking to decision.
 * Games at the same time count in full. The arbiter owns the array. */
const double *vd_arbiter_level_seconds(const vd_arbiter *arbiter);

#endif
