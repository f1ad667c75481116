/* Providers that lie in what they say, not only in what they computed; two dishonest providers;
 * failures of the referee itself. */
#include "repops/op_optimizer.h"
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    test_job job;
    test_provider honest, liar;
} bench;

static void bench_open(bench *b, int64_t steps, int64_t checkpoint_interval, const char *fault) {
    test_job_open(&b->job, VD_MODEL_MLP, steps, checkpoint_interval);
    vd_fault f = test_fault(&b->job, fault);
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &f);
}

static void bench_close(bench *b) {
    test_provider_close(&b->honest);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

/* ---- one liar ---- */

static const struct {
    vd_lie lie;
    vd_grade grade;
    const char *name;
} lies[] = {
    {VD_LIE_PROOF, VD_GRADE_BAD_PROOF, "proof"},
    {VD_LIE_WITHHOLD, VD_GRADE_TIMEOUT, "withhold"},
    {VD_LIE_SILENCE, VD_GRADE_TIMEOUT, "silence"},
    {VD_LIE_CONTRADICT, VD_GRADE_CONTRADICTION, "contradict"},
};

Test(lies, convict_by_proof_and_only_forfeit_by_silence) {
    bench b;
    test_dispute d;
    bench_open(&b, 3, 3, "poison@1");
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++)
        for (uint32_t liar = 0; liar < 2; liar++) {
            b.liar.side.lie = lies[i].lie;
            test_duel(&d, &b.job, &b.honest.side, &b.liar.side, liar);
            if (lies[i].grade == VD_GRADE_TIMEOUT)
                test_expect_forfeited(&d, liar, lies[i].name);
            else
                test_expect_convicted(&d, liar, lies[i].grade, lies[i].name);
            test_dispute_close(&d);
        }
    bench_close(&b);
}

/* ---- replaced statements ---- */

typedef struct {
    uint32_t party, round; /* the statement that is replaced */
    const char *body;
} replacement;

static void replace_statement(test_dispute *d, uint32_t party, const vd_outgoing *question,
                              vd_buf *note) {
    const replacement *r = d->user;
    if (party == r->party && d->rounds == r->round)
        test_resign(d, party, question, test_parse(r->body, strlen(r->body)), note);
}

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* The round determines the question: 1 commit, 2 reveal, 3 open run, 4 prove run, 5 subrun. */
static const struct {
    uint32_t round;
    const char *body;
    vd_standing standing;
    vd_grade grade;
} statements[] = {
    {1, "{\"commit\":\"" ZEROS "\"}", VD_FORFEITED, VD_GRADE_TIMEOUT}, /* it refuses to reveal */
    {1, "{\"commit\":7}", VD_CONVICTED, VD_GRADE_BAD_PROOF},
    {1, "{}", VD_CONVICTED, VD_GRADE_BAD_PROOF},
    {2, "{\"root\":\"" ZEROS "\",\"salt\":\"" ZEROS "\"}", VD_CONVICTED, VD_GRADE_CONTRADICTION},
    {2, "{\"root\":\"00\",\"salt\":\"" ZEROS "\"}", VD_CONVICTED, VD_GRADE_BAD_PROOF},
    {3, "{\"root\":\"" ZEROS "\",\"hashes\":[]}", VD_CONVICTED, VD_GRADE_CONTRADICTION},
    {3, "{\"hashes\":[]}", VD_CONVICTED, VD_GRADE_BAD_PROOF},
    {5, "{\"root\":\"" ZEROS "\"}", VD_CONVICTED, VD_GRADE_BAD_PROOF},
    {1, "{\"refusal\":\"not now\"}", VD_FORFEITED, VD_GRADE_TIMEOUT},
    {1, "{\"concede\":true}", VD_CONVICTED, VD_GRADE_CONCEDED},
    {2, "{\"concede\":true}", VD_CONVICTED, VD_GRADE_CONCEDED},
    {4, "{\"concede\":true}", VD_CONVICTED, VD_GRADE_CONCEDED},
    {4, "{\"concede\":true,\"refusal\":\"both\"}", VD_CONVICTED, VD_GRADE_CONCEDED},
    {4, "{\"refusal\":\"no reason\"}", VD_FORFEITED, VD_GRADE_TIMEOUT},
    {3, "[]", VD_FORFEITED, VD_GRADE_TIMEOUT},
};

Test(lies, are_judged_by_what_was_signed) {
    bench b;
    bench_open(&b, 3, 3, "poison@1");
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        for (uint32_t liar = 0; liar < 2; liar++) {
            char what[160];
            replacement r = {liar, statements[i].round, statements[i].body};
            test_dispute d = {.job = &b.job, .transit = replace_statement, .user = &r};
            d.side[liar] = &b.liar.side;
            d.side[1 - liar] = &b.honest.side;
            test_settle(&d);
            snprintf(what, sizeof what, "round %u: %.100s", r.round, r.body);
            if (statements[i].standing == VD_CONVICTED)
                test_expect_convicted(&d, liar, statements[i].grade, what);
            else
                test_expect_forfeited(&d, liar, what);
            test_dispute_close(&d);
        }
    bench_close(&b);
}

/* The second provider waits for the first one's statements and copies them: the commitment, then
 * what opens it. */
static void copy_statement(test_dispute *d, uint32_t party, const vd_outgoing *question,
                           vd_buf *note) {
    json_t **body = d->user;
    if (d->rounds > 2)
        return;
    if (party == 0)
        *body = test_answer_body(note);
    else
        test_resign(d, party, question, *body, note);
}

Test(lies, a_copied_commitment_cannot_be_opened) {
    bench b;
    json_t *body = NULL;
    bench_open(&b, 3, 3, "poison@1");
    test_dispute d = {.job = &b.job,
                      .side = {&b.honest.side, &b.liar.side},
                      .transit = copy_statement,
                      .user = &body};
    test_settle(&d);
    test_expect_convicted(&d, 1, VD_GRADE_CONTRADICTION, "copied commitment");
    test_dispute_close(&d);
    bench_close(&b);
}

/* From this round on, nothing arrives from this party. */
static void cut_off(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    const replacement *r = d->user;
    (void)question;
    if (party == r->party && d->rounds >= r->round)
        note->size = 0;
}

Test(lies, silence_from_any_round_on_leaves_the_honest_claim_accepted_by_forfeit) {
    bench b;
    uint32_t rounds = 5;
    bench_open(&b, 3, 3, "poison@1");
    for (uint32_t round = 1; round <= rounds; round++)
        for (uint32_t liar = 0; liar < 2; liar++) {
            char what[64];
            replacement r = {liar, round, NULL};
            test_dispute d = {.job = &b.job, .transit = cut_off, .user = &r};
            d.side[liar] = &b.liar.side;
            d.side[1 - liar] = &b.honest.side;
            test_settle(&d);
            snprintf(what, sizeof what, "silent from round %u", round);
            test_expect_forfeited(&d, liar, what);
            test_dispute_close(&d);
        }
    bench_close(&b);
}

/* ---- nobody honest: little is promised, but this much holds ---- */

static void expect_both_convicted(const test_dispute *d) {
    cr_assert(d->status == VD_OK, "%s", d->err.text);
    cr_expect(d->outcome.result == VD_RESULT_CONVICTED && !d->outcome.accepted);
    for (int p = 0; p < 2; p++)
        cr_expect(d->outcome.party[p].standing == VD_CONVICTED &&
                      d->outcome.party[p].grade == VD_GRADE_WRONG_OUTPUT,
                  "%s", d->outcome.party[p].reason);
}

Test(nobody_honest, two_wrong_values_of_one_element_convict_both) {
    test_job job;
    test_provider a, b;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    uint32_t node = test_node(&job, 1, RO_OP_ADAMW_M);
    vd_fault one = {VD_FAULT_ELEMENT, 1, node, 5, 20}, other = {VD_FAULT_ELEMENT, 1, node, 5, 21};
    test_provider_open(&a, &job, 1, &one);
    test_provider_open(&b, &job, 2, &other);
    test_duel(&d, &job, &a.side, &b.side, 1);
    expect_both_convicted(&d);
    test_expect_place(&d, 1, node, "both");
    cr_expect(d.outcome.place.element == 5);
    test_dispute_close(&d);
    test_provider_close(&a);
    test_provider_close(&b);
    test_job_close(&job);
}

/* A known limit: a fault that all providers share is not noticed. At least one must be honest. */
Test(nobody_honest, the_same_wrong_run_twice_is_agreed_on) {
    test_job job;
    test_provider a, b;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    vd_fault fault = test_fault(&job, "poison@1");
    test_provider_open(&a, &job, 1, &fault);
    test_provider_open(&b, &job, 2, &fault);
    test_duel(&d, &job, &a.side, &b.side, 1);
    cr_expect(d.outcome.result == VD_RESULT_AGREED && d.outcome.accepted);
    test_dispute_close(&d);
    test_provider_close(&a);
    test_provider_close(&b);
    test_job_close(&job);
}

/* Different wrong runs never count as agreed: at least one is convicted. The other's claim may
 * stand, since the dispute ends where the first difference is explained. That may be two wrong
 * elements of one node, or a changed attribute against a changed element. */
static const char *const wrongs[] = {"element@1:adamw.wte.m",
                                     "element@1",
                                     "attr@1",
                                     "lr@1",
                                     "skip@1",
                                     "poison@1",
                                     "seed@1",
                                     "weights"};

static void expect_somebody_convicted(const test_job *job, const test_provider *a,
                                      const test_provider *b, const char *what) {
    test_dispute d;
    test_duel(&d, job, &a->side, &b->side, 1);
    cr_assert(d.status == VD_OK, "%s: %s", what, d.err.text);
    if (vd_hash_equal(&a->run.run_root, &b->run.run_root))
        cr_expect(d.outcome.result == VD_RESULT_AGREED, "%s", what);
    else
        cr_expect(d.outcome.result == VD_RESULT_CONVICTED, "%s", what);
    test_dispute_close(&d);
}

Test(nobody_honest, two_different_wrong_runs_are_never_agreed_on) {
    enum { COUNT = sizeof wrongs / sizeof wrongs[0] };
    test_job job;
    test_provider provider[COUNT];
    test_job_open(&job, VD_MODEL_GPT2, 3, 3);
    for (int i = 0; i < COUNT; i++) {
        vd_fault fault = test_fault(&job, wrongs[i]);
        test_provider_open(&provider[i], &job, (uint8_t)(i + 1), &fault);
    }
    for (int i = 0; i < COUNT; i++)
        for (int k = i + 1; k < COUNT; k++) {
            char what[96];
            snprintf(what, sizeof what, "%s against %s", wrongs[i], wrongs[k]);
            expect_somebody_convicted(&job, &provider[i], &provider[k], what);
        }
    for (int i = 0; i < COUNT; i++)
        test_provider_close(&provider[i]);
    test_job_close(&job);
}

/* Each statement is judged by itself. Lying proofs about one wrong run neither excuse nor shield
 * another wrong run. */
Test(nobody_honest, lying_proofs_are_convicted_against_a_wrong_run_too) {
    test_job job;
    test_provider a, b;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    uint32_t node = test_node(&job, 1, RO_OP_ADAMW_M);
    vd_fault one = {VD_FAULT_ELEMENT, 1, node, 5, 20}, other = {VD_FAULT_ELEMENT, 1, node, 5, 21};
    test_provider_open(&a, &job, 1, &one);
    test_provider_open(&b, &job, 2, &other);
    b.side.lie = VD_LIE_PROOF;
    test_duel(&d, &job, &a.side, &b.side, 1);
    cr_expect(d.outcome.party[1].standing == VD_CONVICTED &&
              d.outcome.party[1].grade == VD_GRADE_BAD_PROOF);
    test_dispute_close(&d);
    a.side.lie = VD_LIE_PROOF; /* now both lie */
    test_duel(&d, &job, &a.side, &b.side, 1);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].standing == VD_CONVICTED &&
                  d.outcome.party[p].grade == VD_GRADE_BAD_PROOF);
    cr_expect(!d.outcome.accepted);
    test_dispute_close(&d);
    test_provider_close(&a);
    test_provider_close(&b);
    test_job_close(&job);
}

/* ---- failures of the referee ---- */

static vd_status broken_leaf(const ro_call *call, int64_t element,
                             uint32_t (*load)(void *user, int input, int64_t index), void *user,
                             uint32_t *out, vd_err *err) {
    (void)call, (void)element, (void)load, (void)user, (void)out;
    return vd_fail(err, VD_ERR_LOCAL, "no memory for the reference");
}

Test(referee, local_trouble_convicts_nobody) {
    bench b;
    bench_open(&b, 3, 3, "poison@1");
    test_dispute d = {.job = &b.job, .side = {&b.honest.side, &b.liar.side}, .leaf = broken_leaf};
    test_settle(&d);
    cr_expect(d.status == VD_ERR_LOCAL, "status %d", d.status);
    cr_expect(strstr(d.err.text, "no memory for the reference"), "%s", d.err.text);
    cr_expect(d.outcome.result == 0 && !d.outcome.accepted && !d.outcome.place.computed);
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].standing == VD_STANDS, "%s", d.outcome.party[p].reason);
    test_dispute_close(&d);
    bench_close(&b);
}
