/* The data of `verde arbitrate`: a dispute over the network. */
#ifndef VD_ARBITRATE_H
#define VD_ARBITRATE_H

#include "verde/client/arbitrate_journal.h"
#include "verde/client/arbitrate_post.h"
#include "verde/load/load.h"
#include "verde/net/net.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/verdict.h"

typedef struct {
    const char *job, *verdict, *key_dir, *ca;
    vd_loaded *loaded;  /* the job if already loaded; NULL: load it */
    const char *prompt; /* the prompt, of a job with prompts; or NULL */
    const char *resume; /* journal to go on with; or NULL */
    const char *url[VD_PARTIES_MAX];
    uint32_t urls;
    long patience_s;
    long step_s_max; /* 0: derived from the job */
    bool no_challenge, force;
    bool goes_on;   /* goes on with the journal beside the verdict, if it fits */
    bool own_rival; /* provider 1 is our own: if provider 0 refuses the first question, that is a
                       mistake in the options */
    bool quiet;     /* prints the story, but not the outcome */
    vd_common common;
} vd_arbitrate_arguments;

/* Conducts a dispute, from the job to the verdict. Errors are printed as one line. */
vd_exit vd_arbitrate(const vd_arbitrate_arguments *a);

/* A dispute over the network. */
typedef struct {
    const vd_arbitrate_arguments *a;
    vd_loaded *loaded, own;
    vd_items items;           /* of a job with prompts, unless a single one is in question; */
    vd_collection collection; /* otherwise its count is 0 */
    vd_program longest;       /* the longest of its items */
    vd_key *key;
    vd_client *client; /* to ask who the providers are */
    vd_endpoint endpoint[VD_PARTIES_MAX];
    vd_assignment assignment;
    vd_buf payload, note; /* the assignment */
    vd_court_journal journal;
    vd_post_office *office;
    vd_world world;
    vd_arbiter *arbiter;
    vd_cost cost;
    double start;
    vd_err *err;
} vd_arbitration;

/* Returns NULL if the job is a collection. */
const vd_program *vd_arbitration_program(const vd_arbitration *x);

/* arbitrate_enrol.c: finds the providers' keys by their URLs, and makes a new assignment or takes
 * that of the journal. */
VD_MUST_USE vd_status vd_enrol(vd_arbitration *x);
VD_MUST_USE vd_status vd_assign(vd_arbitration *x);

/* arbitrate_course.c: opens the journal and creates the arbiter. */
VD_MUST_USE vd_status vd_arbitrate_prepare(vd_arbitration *x);

/* arbitrate_claims.c: a vd_arbiter_options.opened; `user` is the arbitration. */
void vd_tell_claims(void *user, const vd_tournament *tournament);

#endif
