/* What `verde arbitrate` keeps of a dispute over the network, and its rounds of questions. */
#ifndef VD_ARBITRATE_H
#define VD_ARBITRATE_H

#include "verde/cli/cli.h"
#include "verde/net/net.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/verdict.h"

typedef struct {
    const char *job, *verdict, *key_dir, *ca;
    vd_loaded *loaded;  /* the job, if it is loaded already; NULL: it is read here */
    const char *prompt; /* of a job with prompts: which; else NULL */
    const char *url[VD_PARTIES_MAX];
    uint32_t urls;
    long question_s, budget_s;
    bool no_challenge, force;
    bool quiet; /* the story is told, but not the outcome */
    vd_common common;
} vd_arbitrate_arguments;

enum { VD_ARBITRATE_QUESTION_S = 120 }; /* and VD_BUDGET_S */
/* Settles a dispute, from the job to the verdict. An error is one line, too. */
vd_exit vd_arbitrate(const vd_arbitrate_arguments *a);

/* Whom one referee asks over the network: all of a dispute, or a sitting of a tournament. */
typedef struct {
    const vd_arbitrate_arguments *a;
    vd_client *client;
    vd_referee *referee;
    const vd_buf *assignment;                 /* note */
    const vd_endpoint *party[VD_PARTIES_MAX]; /* of the referee's parties */
    const uint32_t *number;                   /* of each, in the assignment */
    uint32_t parties;
    double left_s[VD_PARTIES_MAX]; /* of each one's budget for this hearing, by our clock */
    bool said;                     /* somebody has signed something before this sitting */
    bool mistaken;                 /* from the first answers: these are not providers of this job */
    uint64_t bytes_in, bytes_out;
    vd_err *err;
} vd_court;

/* One dispute over the network. */
typedef struct {
    const vd_arbitrate_arguments *a;
    vd_loaded *loaded, own;
    vd_items items;           /* of a job with prompts, if no single one is asked about; then: */
    vd_collection collection; /* else a count of 0 */
    vd_key *key;
    vd_client *client;
    vd_endpoint endpoint[VD_PARTIES_MAX];
    vd_assignment assignment;
    vd_buf payload, note;      /* of the assignment */
    vd_referee *referee;       /* of two providers */
    vd_tournament *tournament; /* of more */
    bool mistaken;
    vd_cost cost;
    double start;
    vd_err *err;
} vd_arbitration;

const vd_outcome *vd_arbitration_outcome(const vd_arbitration *x);

/* NULL: the job is a collection. */
const vd_program *vd_arbitration_program(const vd_arbitration *x);

/* arbitrate_enrol.c: who the providers are, by their URLs, and the assignment to them. */
VD_MUST_USE vd_status vd_enrol(vd_arbitration *x);
VD_MUST_USE vd_status vd_assign(vd_arbitration *x);

/* arbitrate_many.c: all sittings of a tournament, those of one level at the same time. */
VD_MUST_USE vd_status vd_arbitrate_many(vd_arbitration *x);
/* The sitting of one referee, to its end. `number`: of its parties; `name`: for people, or NULL.
 * The client is the arbitration's. */
void vd_court_open(vd_court *court, vd_arbitration *x, vd_referee *referee, const uint32_t *number,
                   uint32_t parties);
VD_MUST_USE vd_status vd_court_sit(vd_court *court, const char *name);

/* arbitrate_rounds.c: asks providers `count` questions at once, until each has answered, refused or
 * used up its budget, and gives the referee what they say. Trouble of this machine is an error. */
VD_MUST_USE vd_status vd_ask_round(vd_court *x, const vd_outgoing *out, size_t count);

#endif
