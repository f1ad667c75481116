/* Audits in memory: a checker, and one provider that answers it. Everything here asserts. */
#ifndef TEST_AUDIT_H
#define TEST_AUDIT_H

#include "tests/support/dispute.h"
#include "verde/protocol/audit.h"
#include "verde/protocol/verdict.h"

typedef struct test_audit test_audit;
/* A liar writes its own note in place of the honest answer; false: it says nothing. */
typedef bool (*test_says)(test_audit *a, const vd_outgoing *question, const vd_buf *request,
                          vd_buf *note);

struct test_audit {
    const vd_provider *side;
    test_says says; /* how a liar answers; NULL: as the provider does */
    void *user;
    uint32_t steps, crumbs;
    uint64_t known;  /* the first crumbs that count as known, and are not asked about */
    uint64_t seed;   /* from which secrets are drawn */
    uint64_t before; /* the seed before the last secret, by which a test foresees that one */
    uint8_t beacon;
    /* set by test_audit_play */
    vd_audit_state state;
    vd_audit_result result; /* the report, without its steps, */
    int64_t step[16];       /* which are these */
    vd_crumb place;         /* FRAUD */
    vd_outcome outcome;
    vd_buf proof; /* verified */
};

/* Plays an audit to its end, and verifies a proof of fraud. */
void test_audit_play(test_audit *a);
/* Asks about this place alone. A proof of fraud goes to a->proof, and is verified. */
vd_result test_audit_place(test_audit *a, const vd_crumb *place);
void test_audit_close(test_audit *a);

#endif
