/* A provider in memory, and all the ways in which it may answer. */
#ifndef SIM_PARTY_H
#define SIM_PARTY_H

#include "tests/sim/toy.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/referee.h"

typedef enum {
    SIM_TELLS = 0,   /* what its run says, wrong or not */
    SIM_OTHER_RUN,   /* what another run says: a liar's other run is honest, so that it looks honest
                      */
    SIM_OTHER_ROOT,  /* the same, under another root than it gave before */
    SIM_WRONG_PROOF, /* with a changed hash or byte in a proof */
    SIM_LESS,        /* with its last hash or leaf left out */
    SIM_NONSENSE,    /* a statement without the members that were asked for */
    SIM_CONCEDES,    /* withdraws its claim */
    SIM_REFUSES,     /* a signed refusal */
    SIM_SILENT,      /* nothing */
    SIM_GARBAGE,     /* bytes that are no note */
    SIM_OTHER_KEY,   /* signed by a key that nobody has named */
    SIM_BAD_SIGNATURE, /* with a bit of the signature changed */
    SIM_REPLAYS,       /* what it said before, to another question */
    SIM_COPIES,        /* what somebody else said last */
    SIM_ADDS,          /* members that no document names, which change nothing */
    SIM_WAYS,
} sim_way;

const char *sim_way_name(sim_way way);

/* How a provider runs the job again to contest a claim, once it is convicted. */
typedef struct {
    toy_run *run; /* NULL: it does not run again */
    bool fails;   /* its disk is full */
} sim_again;

typedef struct {
    vd_key *key;
    sim_again again;
    vd_provider side[2]; /* the provider with its run, and with the other run */
    sim_way way;
    /* Which questions it answers in this way: of a kind (NULL: any), by number. */
    const char *topic;
    uint32_t from, to;
    uint64_t random;
    uint32_t asked;       /* how many different questions it was asked */
    vd_hash name;         /* of the last request */
    vd_buf last;          /* what it said last */
    const vd_buf *rivals; /* what somebody else said last; NULL: nobody */
} sim_party;

/* `other` may be NULL. `number` chooses the key. */
void sim_party_open(sim_party *p, const toy_job *job, toy_run *run, toy_run *other,
                    uint32_t number);
void sim_party_close(sim_party *p);
/* Sets how it runs again once it is convicted. */
void sim_party_runs_again(sim_party *p, sim_again again);
/* Forgets what it said in the last dispute; the way in which it lies stays. */
void sim_party_renew(sim_party *p);

/* The answer to a request, as it is sent; empty: none. `name` is the request's hash,
 * `text` the question for people. Of the same request it is the same. */
vd_buf sim_party_answer(sim_party *p, const vd_buf *request, const vd_hash *name, const char *text);

/* SplitMix64 (Steele et al., 2014). */
uint64_t sim_random(uint64_t *state);
uint32_t sim_below(uint64_t *state, uint32_t bound);

#endif
