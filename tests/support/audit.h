/* Audits in memory, of one provider by a checker. All functions assert that they succeed. */
#ifndef TEST_AUDIT_H
#define TEST_AUDIT_H

#include "tests/support/dispute.h"
#include "verde/protocol/audit.h"
#include "verde/protocol/verdict.h"

typedef struct test_audit test_audit;
/* A liar replaces the honest answer in *note by its own; returning false means no answer. */
typedef bool (*test_says)(test_audit *a, const vd_outgoing *question, const vd_buf *request,
                          vd_buf *note);

struct test_audit {
    const vd_provider *side;
    test_says says; /* a liar's answers; NULL: the provider's */
    void *user;
    uint32_t steps, crumbs;
    uint64_t known;  /* number of leading crumbs that count as known, and are not asked about */
    uint64_t seed;   /* secrets are drawn from it */
    uint64_t before; /* the seed before the last secret, which a test can so foresee */
    uint8_t beacon;
    /* Set by test_audit_play: */
    vd_audit_state state;
    vd_audit_result result; /* the report, without its list of steps */
    int64_t step[16];       /* the steps of `result` */
    vd_crumb place;         /* if the result is fraud */
    vd_outcome outcome;
    vd_buf proof; /* checked by test_audit_play */
};

/* Plays an audit to its end. A proof of fraud is verified. */
void test_audit_play(test_audit *a);
/* Asks about this place only. A proof of fraud goes to a->proof, and is verified. */
vd_result test_audit_place(test_audit *a, const vd_crumb *place);
void test_audit_close(test_audit *a);

#endif
