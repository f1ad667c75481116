/* Disputes in memory: a job that trains in milliseconds, providers with runs on disk, a referee.
 * Everything here asserts: what fails is the test. */
#ifndef TEST_DISPUTE_H
#define TEST_DISPUTE_H

#include "models/models.h"
#include "verde/exec/run.h"
#include "verde/exec/source.h"
#include "verde/log/run.h"
#include "verde/log/served.h"
#include "verde/protocol/desk.h"
#include "verde/protocol/provider.h"
#include "verde/protocol/verdict.h"

/* ---- jobs ---- */

typedef struct {
    vd_program program;
    vd_hash hash;
    uint8_t text[600];   /* the data */
    const void *data[1]; /* it, as vd_exec wants it */
} test_job;

void test_job_open(test_job *job, vd_model_kind kind, int64_t steps, int64_t checkpoint_interval);
/* Steps are numbered from `first_step` on; every state is committed to. */
void test_job_open_from(test_job *job, vd_model_kind kind, int64_t steps, int64_t first_step);
void test_job_open_seed(test_job *job, vd_model_kind kind, int64_t steps, uint64_t seed);
/* Weights, moments and activations are stored as bf16; fixed_bits: as vd_training has it. */
void test_job_open_stored(test_job *job, vd_model_kind kind, int64_t steps, int fixed_bits);
/* Linear layers with fixed products of so many bits. */
void test_job_open_fixed(test_job *job, vd_model_kind kind, int64_t steps, int32_t bits);
void test_job_open_sgd(test_job *job, int64_t steps, bool nesterov); /* an mlp */
void test_job_open_operators(test_job *job, int64_t steps); /* of operators that no model uses */
/* Long sums over `rows`; those of products are the columns of a matrix of that width. */
void test_job_open_folds(test_job *job, int64_t steps, int64_t rows, int64_t columns);
/* One step; a state of so many leaves of one element, each made by a node of its own. */
void test_job_open_leaves(test_job *job, uint32_t leaves);
/* Two steps; a node of so many inputs, each made by a node of its own, but for the last one: it is
 * the first again. The state is what it puts out. */
void test_job_open_inputs(test_job *job, uint32_t inputs);
void test_operators_program(vd_program *program, int64_t steps); /* that job's program */
void test_job_close(test_job *job);

/* The first node of this operator in the graph of a step. */
uint32_t test_node(const test_job *job, int64_t step, int op);
/* As vd_fault_parse. */
vd_fault test_fault(const test_job *job, const char *text);

/* ---- providers ---- */

/* Stays where it is: `side` points into it. */
typedef struct {
    ro_ctx *ro;
    vd_exec exec;
    char dir[64];
    vd_run_result run;
    vd_log_result logged; /* with rounding */
    vd_replay *replay;
    vd_key *key;
    vd_provider side;
    ro_ctx *second; /* the second run's */
} test_provider;

/* Trains, with the fault unless NULL. Providers of different `name` have different keys. */
void test_provider_open(test_provider *p, const test_job *job, uint8_t name, const vd_fault *fault);
void test_provider_close(test_provider *p);
/* A party of a run with rounding logs, of a job whose program says so. */
typedef struct {
    const char *profile;
    const test_provider *trainer; /* whose log is followed; NULL: it trains */
    const vd_public_key *trainer_key;
    bool contest, unsigned_log;
} test_party;
void test_job_round(test_job *job, int32_t bits, vd_log_encoding encoding);
/* Returns what vd_run does; if that is not VD_OK, there is no replay and nothing to ask. */
vd_status test_party_open(test_provider *p, const test_job *job, uint8_t name,
                          const test_party *party, const vd_fault *fault, vd_err *err);
/* Once convicted, it runs again: honestly, or with this fault. */
void test_provider_runs_again(test_provider *p, const vd_fault *fault);
void test_remove_dir(const char *dir);

/* ---- disputes ---- */

typedef struct test_dispute test_dispute;

/* Changes an answer on its way; makes the note empty where it is not to arrive. */
typedef void (*test_transit)(test_dispute *d, uint32_t party, const vd_outgoing *question,
                             vd_buf *note);

struct test_dispute {
    const test_job *job;             /* NULL: many of them, */
    const vd_collection *collection; /* these */
    const vd_provider *side[2];
    vd_desk *desk[2];     /* of these; NULL: they are asked without one */
    vd_leaf_fn leaf;      /* NULL: the reference */
    test_transit transit; /* NULL: answers arrive as they are */
    void *user;           /* for transit */
    bool backwards;       /* the second provider's answer arrives first */
    bool challenge;       /* who is convicted may run again */
    bool refused;         /* a question that deserves no answer does not fail the test */
    /* set by test_settle */
    vd_hash assignment;
    uint32_t rounds;
    vd_status status; /* of the referee */
    vd_err err;
    vd_outcome outcome;
    vd_buf verdict; /* verified */
};

/* Plays until the outcome stands, then writes the verdict and verifies it. */
void test_settle(test_dispute *d);
void test_dispute_close(test_dispute *d);
vd_key *test_referee_key(void);

/* Settles a dispute against an honest provider, as party 0 or 1; closed by test_dispute_close. */
void test_duel(test_dispute *d, const test_job *job, const vd_provider *honest,
               const vd_provider *liar, uint32_t liar_place);

/* ---- changing answers ---- */

json_t *test_parse(const void *text, size_t size); /* any JSON */
vd_buf test_dump(json_t *root);                    /* compact; steals `root` */
json_t *test_payload(const vd_buf *note);     /* of any note, unverified; owned by the caller */
json_t *test_answer_body(const vd_buf *note); /* the same, its "answer" */
/* Replaces `note` by a proper statement of this party on the question. Steals `body`. */
void test_resign(test_dispute *d, uint32_t party, const vd_outgoing *question, json_t *body,
                 vd_buf *note);

/* Adds a member that no document names to an answer, so that its payload has `more` bytes more than
 * the question allows; 0: as many as fit, or up to two less. */
void test_pad(const vd_key *key, const vd_hash *assignment, const vd_outgoing *question,
              size_t more, vd_buf *note);

/* ---- expectations ---- */

/* Exactly this one is convicted, for this reason; the other's claim is accepted. */
void test_expect_convicted(const test_dispute *d, uint32_t liar, vd_grade grade, const char *what);
void test_expect_forfeited(const test_dispute *d, uint32_t liar, const char *what);
void test_expect_place(const test_dispute *d, int64_t step, int64_t node, const char *what);

/* SplitMix64 (Steele et al., 2014): replays every failure from its seed. */
uint64_t test_random(uint64_t *state);

#endif
