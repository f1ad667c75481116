/* What `verde arbitrate` keeps of a dispute over the network, and its rounds of questions. */
#ifndef VD_ARBITRATE_H
#define VD_ARBITRATE_H

#include "verde/cli/cli.h"
#include "verde/net/net.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/verdict.h"

typedef struct {
    const char *job, *verdict, *key_dir, *ca;
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

/* One dispute over the network. */
typedef struct {
    const vd_arbitrate_arguments *a;
    vd_loaded loaded;
    vd_key *key;
    vd_client *client;
    vd_endpoint endpoint[VD_PARTIES_MAX];
    double left_s[VD_PARTIES_MAX]; /* of each one's budget for this hearing, by our clock */
    vd_assignment assignment;
    vd_buf payload, note; /* of the assignment */
    vd_referee *referee;
    bool mistaken; /* from the first answers: these are not two providers of this job */
    vd_cost cost;
    double start;
    vd_err *err;
} vd_arbitration;

/* arbitrate_rounds.c: asks providers `count` questions at once, until each has answered, refused or
 * used up its budget, and gives the referee what they say. Trouble of this machine is an error. */
VD_MUST_USE vd_status vd_ask_round(vd_arbitration *x, const vd_outgoing *out, size_t count);

#endif
