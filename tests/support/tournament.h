/* Disputes between more than two providers, in memory. All functions assert that they succeed. */
#ifndef TEST_TOURNAMENT_H
#define TEST_TOURNAMENT_H

#include "tests/support/dispute.h"
#include "verde/protocol/tournament.h"

enum { TEST_QUESTIONS_MAX = 4096 };

typedef struct test_tournament test_tournament;

/* Changes an answer in transit; empties the note if it shall not arrive. */
typedef void (*test_gate)(test_tournament *t, uint32_t provider, const vd_outgoing *question,
                          vd_buf *note);

struct test_tournament {
    const test_job *job;
    const vd_provider *side[VD_PARTIES_MAX];
    uint32_t count;
    bool challenge;  /* convicted providers may run again */
    bool backwards;  /* games of a level, and answers of a round, come in reverse order */
    vd_leaf_fn leaf; /* NULL: the reference operators */
    test_gate gate;  /* NULL: answers arrive unchanged */
    void *user;      /* for gate */
    void (*story)(void *user, const char *line);
    /* Set by test_hold: */
    vd_hash assignment;
    vd_status status;
    vd_err err;
    vd_outcome outcome; /* owned */
    vd_buf verdict;     /* checked by test_hold */
    uint32_t asked[VD_PARTIES_MAX];
    uint64_t bytes; /* of all answers */
};

/* Plays until there is an outcome, then writes the verdict and verifies it. Fails if a provider is
 * asked again what it has answered. */
void test_hold(test_tournament *t);
void test_tournament_close(test_tournament *t);
/* Replaces `note` by a valid statement of this provider on the question. Steals `body`. */
void test_state(const test_tournament *t, uint32_t provider, const vd_outgoing *question,
                json_t *body, vd_buf *note);

/* Expects that this provider's claim is accepted, and it stands. */
void test_expect_accepted(const test_tournament *t, uint32_t honest, const char *what);
void test_expect_fallen(const test_tournament *t, uint32_t provider, vd_grade grade,
                        const char *what);

#endif
