/* A provider in memory, and the ways in which it may answer. */
#ifndef SIM_PARTY_H
#define SIM_PARTY_H

#include "tests/sim/toy.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/referee.h"

typedef enum {
    SIM_TELLS = 0,     /* what its run says, correct or not */
    SIM_OTHER_RUN,     /* what its other run says: a liar's is honest, so that it seems honest */
    SIM_OTHER_ROOT,    /* the same, but with another root than before */
    SIM_WRONG_PROOF,   /* with a changed hash or byte in a proof */
    SIM_LESS,          /* without the last hash or leaf */
    SIM_NONSENSE,      /* a statement without the requested members */
    SIM_CONCEDES,      /* withdraws its claim */
    SIM_REFUSES,       /* a signed refusal */
    SIM_SILENT,        /* nothing */
    SIM_GARBAGE,       /* bytes that are not a note */
    SIM_OTHER_KEY,     /* signed with an unnamed key */
    SIM_BAD_SIGNATURE, /* with one bit of the signature changed */
    SIM_REPLAYS,       /* its earlier answer to another question */
    SIM_COPIES,        /* the last answer of another provider */
    SIM_ADDS,          /* with additional undefined members, which change nothing */
    SIM_WAYS,
} sim_way;

const char *sim_way_name(sim_way way);

/* How a convicted provider runs the job again, to contest a claim. */
typedef struct {
    toy_run *run; /* NULL: it does not */
    bool fails;   /* the run fails, as with a full disk */
} sim_again;

typedef struct {
    vd_key *key;
    sim_again again;
    vd_provider side[2]; /* with its run, and with the other run */
    sim_way way;
    /* The questions that it answers in this way: their kind (NULL: any) and range of numbers. */
    const char *topic;
    uint32_t from, to;
    uint64_t random;
    uint32_t asked;       /* number of different questions it was asked */
    vd_hash name;         /* of the last request */
    vd_buf last;          /* its last answer */
    const vd_buf *rivals; /* the last answer of another provider, or NULL */
} sim_party;

/* Opens a provider. `other` may be NULL; `number` selects the key. */
void sim_party_open(sim_party *p, const toy_job *job, toy_run *run, toy_run *other,
                    uint32_t number);
void sim_party_close(sim_party *p);
/* Sets how it runs again after a conviction. */
void sim_party_runs_again(sim_party *p, sim_again again);
/* Forgets its answers in the last dispute, but keeps its way of lying. */
void sim_party_renew(sim_party *p);

/* Returns the answer to a request as it is sent; empty: none. `name` is the request's hash, `text`
 * the question for people. Equal requests get equal answers. */
vd_buf sim_party_answer(sim_party *p, const vd_buf *request, const vd_hash *name, const char *text);

/* SplitMix64 (Steele et al., 2014). */
uint64_t sim_random(uint64_t *state);
uint32_t sim_below(uint64_t *state, uint32_t bound);

#endif
