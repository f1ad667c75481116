/* Disputes in memory: a job that trains in milliseconds, providers with runs on disk, a referee.
 * All functions assert that they succeed. */
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
    uint8_t text[600];   /* the data tensor's content */
    const void *data[1]; /* the same as vd_exec takes it */
} test_job;

void test_job_open(test_job *job, vd_model_kind kind, int64_t steps, int64_t checkpoint_interval);
/* As test_job_open, with steps numbered from `first_step` on and every state committed to. */
void test_job_open_from(test_job *job, vd_model_kind kind, int64_t steps, int64_t first_step);
void test_job_open_seed(test_job *job, vd_model_kind kind, int64_t steps, uint64_t seed);
/* Stores weights, moments and activations as bf16; fixed_bits as in vd_training. */
void test_job_open_stored(test_job *job, vd_model_kind kind, int64_t steps, int fixed_bits);
/* Linear layers with fixed products of `bits` bits. */
void test_job_open_fixed(test_job *job, vd_model_kind kind, int64_t steps, int32_t bits);
void test_job_open_sgd(test_job *job, int64_t steps, bool nesterov); /* an mlp */
void test_job_open_operators(test_job *job, int64_t steps); /* with operators that no model uses */
/* Long sums over `rows`; sums of products are the columns of a matrix with `columns` columns. */
void test_job_open_folds(test_job *job, int64_t steps, int64_t rows, int64_t columns);
/* One step; the state has `leaves` leaves of one element, each made by a node of its own. */
void test_job_open_leaves(test_job *job, uint32_t leaves);
/* Two steps; a node with `inputs` inputs, each made by a node of its own, except the last one,
 * which is the first again. The state is the node's output. */
void test_job_open_inputs(test_job *job, uint32_t inputs);
void test_operators_program(vd_program *program, int64_t steps); /* that job's program */
void test_job_close(test_job *job);

/* Returns the first node with this operator in a step's graph. */
uint32_t test_node(const test_job *job, int64_t step, int op);
/* Parses a fault like vd_fault_parse. */
vd_fault test_fault(const test_job *job, const char *text);

/* ---- providers ---- */

/* A provider. It must not move: `side` points into it. */
typedef struct {
    ro_ctx *ro;
    vd_exec exec;
    char dir[64];
    vd_run_result run;
    vd_log_result logged; /* of a run with rounding logs */
    vd_replay *replay;
    vd_key *key;
    vd_provider side;
    ro_ctx *second; /* for the second run */
} test_provider;

/* Trains, with the fault if it is not NULL. Different values of `name` give different keys. */
void test_provider_open(test_provider *p, const test_job *job, uint8_t name, const vd_fault *fault);
void test_provider_close(test_provider *p);
/* A party of a run with rounding logs; the job's program must have them. */
typedef struct {
    const char *profile;
    const test_provider *trainer; /* the trainer whose log is followed; NULL: this party trains */
    const vd_public_key *trainer_key;
    bool contest, unsigned_log;
} test_party;
void test_job_round(test_job *job, int32_t bits, vd_log_encoding encoding);
/* Returns the status of vd_run; if it is not VD_OK, there is no replay, and nothing can be
 * asked. */
vd_status test_party_open(test_provider *p, const test_job *job, uint8_t name,
                          const test_party *party, const vd_fault *fault, vd_err *err);
/* Makes it run again after a conviction: honestly, or with this fault. */
void test_provider_runs_again(test_provider *p, const vd_fault *fault);
void test_remove_dir(const char *dir);

/* ---- disputes ---- */

typedef struct test_dispute test_dispute;

/* Changes an answer in transit; empties the note if it shall not arrive. */
typedef void (*test_transit)(test_dispute *d, uint32_t party, const vd_outgoing *question,
                             vd_buf *note);

struct test_dispute {
    const test_job *job;             /* NULL: a job of many programs, */
    const vd_collection *collection; /* which are these */
    const vd_provider *side[2];
    vd_desk *desk[2];     /* desks of the providers; NULL: asked without a desk */
    vd_leaf_fn leaf;      /* NULL: the reference operators */
    test_transit transit; /* NULL: answers arrive unchanged */
    void *user;           /* for transit */
    bool backwards;       /* the second provider's answer arrives first */
    bool challenge;       /* convicted providers may run again */
    bool refused;         /* an unanswerable question does not fail the test */
    /* Set by test_settle: */
    vd_hash assignment;
    uint32_t rounds;
    vd_status status; /* returned by the referee */
    vd_err err;
    vd_outcome outcome;
    vd_buf verdict; /* checked by test_settle */
};

/* Plays until there is an outcome, then writes the verdict and verifies it. */
void test_settle(test_dispute *d);
void test_dispute_close(test_dispute *d);
vd_key *test_referee_key(void);

/* Settles a dispute with an honest provider; the liar is party 0 or 1. Close it with
 * test_dispute_close. */
void test_duel(test_dispute *d, const test_job *job, const vd_provider *honest,
               const vd_provider *liar, uint32_t liar_place);

/* ---- changing answers ---- */

json_t *test_parse(const void *text, size_t size); /* parses any JSON */
vd_buf test_dump(json_t *root);                    /* compact; steals `root` */
json_t *test_payload(const vd_buf *note);     /* of any note, unverified; the caller frees it */
json_t *test_answer_body(const vd_buf *note); /* its member "answer"; the caller frees it */
/* Replaces `note` by a valid statement of this party on the question. Steals `body`. */
void test_resign(test_dispute *d, uint32_t party, const vd_outgoing *question, json_t *body,
                 vd_buf *note);

/* Adds an undefined member to an answer, so that its payload exceeds the question's limit by `more`
 * bytes; 0: it just fits, with up to two bytes to spare. */
void test_pad(const vd_key *key, const vd_hash *assignment, const vd_outgoing *question,
              size_t more, vd_buf *note);

/* ---- expectations ---- */

/* Expects that exactly this party is convicted with this grade, and the other's claim accepted. */
void test_expect_convicted(const test_dispute *d, uint32_t liar, vd_grade grade, const char *what);
void test_expect_forfeited(const test_dispute *d, uint32_t liar, const char *what);
void test_expect_place(const test_dispute *d, int64_t step, int64_t node, const char *what);

/* SplitMix64 (Steele et al., 2014): a failure can be replayed from its seed. */
uint64_t test_random(uint64_t *state);

#endif
