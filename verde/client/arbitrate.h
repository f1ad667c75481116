/* What `verde arbitrate` keeps of a dispute over the network. */
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
    vd_loaded *loaded;  /* the job, if it is loaded already; NULL: it is read here */
    const char *prompt; /* of a job with prompts: which; else NULL */
    const char *resume; /* a journal to go on with; else NULL */
    const char *url[VD_PARTIES_MAX];
    uint32_t urls;
    long patience_s;
    long step_s_max; /* 0: by the job */
    bool no_challenge, force;
    bool goes_on;   /* with the journal beside the verdict, if it is of this dispute */
    bool own_rival; /* provider 1 is this command's own: of provider 0 alone a refusal of the first
                       question is a mistake in the options */
    bool quiet;     /* the story is told, but not the outcome */
    vd_common common;
} vd_arbitrate_arguments;

/* Settles a dispute, from the job to the verdict. An error is one line, too. */
vd_exit vd_arbitrate(const vd_arbitrate_arguments *a);

/* One dispute over the network. */
typedef struct {
    const vd_arbitrate_arguments *a;
    vd_loaded *loaded, own;
    vd_items items;           /* of a job with prompts, if no single one is asked about; then: */
    vd_collection collection; /* else a count of 0 */
    vd_program longest;       /* of its items */
    vd_key *key;
    vd_client *client; /* for who the providers are */
    vd_endpoint endpoint[VD_PARTIES_MAX];
    vd_assignment assignment;
    vd_buf payload, note; /* of the assignment */
    vd_court_journal journal;
    vd_post_office *office;
    vd_world world;
    vd_arbiter *arbiter;
    vd_cost cost;
    double start;
    vd_err *err;
} vd_arbitration;

/* NULL: the job is a collection. */
const vd_program *vd_arbitration_program(const vd_arbitration *x);

/* arbitrate_enrol.c: who the providers are, by their URLs, and the assignment to them: a new one,
 * or that of a journal. */
VD_MUST_USE vd_status vd_enrol(vd_arbitration *x);
VD_MUST_USE vd_status vd_assign(vd_arbitration *x);

/* arbitrate_course.c: from the journal to the outcome. */
VD_MUST_USE vd_status vd_arbitrate_prepare(vd_arbitration *x);

/* arbitrate_claims.c: as vd_arbiter_options.opened; `user` is the arbitration. */
void vd_tell_claims(void *user, const vd_tournament *tournament);

#endif
