/* A provider is convicted for its answers, not its run; then it runs again. Whatever the first
 * conviction was for, a wrong claim falls to an honest second run, and a correct one does not. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <string.h>

typedef struct {
    uint32_t party, round; /* of the first hearing */
    const char *body;
} lie;

#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

/* Rounds: 1 commit, 2 reveal, 3 open run, 4 prove run, 5 subrun, 6 open it, 7 prove it, 8 trace. */
static const struct {
    uint32_t round;
    const char *body;
    vd_grade grade;
} lies[] = {
    {1, "{\"commit\":7}", VD_GRADE_BAD_PROOF},
    {1, "{\"concede\":true}", VD_GRADE_CONCEDED},
    {2, "{\"root\":\"" ZEROS "\",\"salt\":\"" ZEROS "\"}", VD_GRADE_CONTRADICTION},
    {2, "{\"root\":\"00\",\"salt\":\"" ZEROS "\"}", VD_GRADE_BAD_PROOF},
    {2, "{\"concede\":true,\"refusal\":\"both\"}", VD_GRADE_CONCEDED},
    {3, "{\"root\":\"" ZEROS "\",\"hashes\":[]}", VD_GRADE_CONTRADICTION},
    {4, "{\"leaves\":[]}", VD_GRADE_BAD_PROOF},
    {5, "{\"root\":\"" ZEROS "\"}", VD_GRADE_BAD_PROOF},
    {6, "{\"concede\":true}", VD_GRADE_CONCEDED},
    {8, "{\"root\":\"" ZEROS "\",\"before\":\"" ZEROS "\",\"after\":\"" ZEROS "\"}",
     VD_GRADE_CONTRADICTION},
};
enum { LIES = sizeof lies / sizeof lies[0] };

static void tell_lie(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    const lie *l = d->user;
    if (party == l->party && d->rounds == l->round)
        test_resign(d, party, question, test_parse(l->body, strlen(l->body)), note);
}

/* The liar also ran wrongly, so that the first hearing gets as far as its lie. */
static void settle(test_dispute *d, const test_job *job, test_provider *liar, test_provider *other,
                   lie *l) {
    *d = (test_dispute){.job = job, .transit = tell_lie, .user = l, .challenge = true};
    d->side[l->party] = &liar->side;
    d->side[1 - l->party] = &other->side;
    test_settle(d);
    cr_assert(d->status == VD_OK, "%s", d->err.text);
}

static void try_lie(const test_job *job, test_provider *liar, test_provider *other, bool right,
                    size_t i, uint32_t party) {
    char what[160];
    lie l = {party, lies[i].round, lies[i].body};
    test_dispute d;
    settle(&d, job, liar, other, &l);
    const struct vd_party_outcome *rival = &d.outcome.party[1 - party];
    snprintf(what, sizeof what, "party %u, round %u: %.100s", party, l.round, l.body);
    cr_expect(d.outcome.party[party].grade == lies[i].grade, "%s: %s", what,
              vd_grade_name(d.outcome.party[party].grade));
    cr_expect(d.outcome.accepted == right, "%s", what);
    cr_expect(rival->standing == (right ? VD_STANDS : VD_CONVICTED), "%s", what);
    cr_expect(d.outcome.challenge.end == (right ? VD_CHALLENGE_CONFIRMED : VD_CHALLENGE_UPHELD),
              "%s: %s", what, vd_challenge_name(d.outcome.challenge.end));
    test_dispute_close(&d);
}

static void try_lies(const char *fault_of_other) {
    test_job job;
    test_provider liar, other;
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    vd_fault f = test_fault(&job, "poison@1"), g = {0};
    if (fault_of_other)
        g = test_fault(&job, fault_of_other);
    test_provider_open(&liar, &job, 1, &f);
    test_provider_open(&other, &job, 2, fault_of_other ? &g : NULL);
    test_provider_runs_again(&liar, NULL);
    for (size_t i = 0; i < LIES; i++)
        for (uint32_t party = 0; party < 2; party++)
            try_lie(&job, &liar, &other, !fault_of_other, i, party);
    test_provider_close(&liar);
    test_provider_close(&other);
    test_job_close(&job);
}

Test(challenge_after_lies, fells_a_wrong_claim) {
    try_lies("lr@4");
}

Test(challenge_after_lies, leaves_a_right_claim) {
    try_lies(NULL);
}

/* ---- the challenger's answers in the second hearing ---- */

typedef struct {
    uint32_t party;
    bool silent;  /* does not answer, instead of lying */
    bool hearing; /* the second hearing has begun */
} second_lie;

static void lie_again(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    second_lie *l = d->user;
    if (l->hearing && party == l->party) {
        if (l->silent)
            note->size = 0;
        else
            test_resign(d, party, question, json_object(), note);
    }
    l->hearing |= question->whole_run;
}

/* The fault is proven or attested: the outcome shows which. */
Test(challenge_after_lies, a_second_run_that_falls_says_by_what) {
    for (int i = 0; i < 2; i++) {
        test_job job;
        test_provider liar, other;
        test_job_open(&job, VD_MODEL_MLP, 3, 3);
        vd_fault f = test_fault(&job, "poison@1"), again = test_fault(&job, "lr@0");
        test_provider_open(&liar, &job, 1, &f);
        test_provider_open(&other, &job, 2, NULL);
        test_provider_runs_again(&liar, &again);
        second_lie l = {.party = 0, .silent = i == 1};
        test_dispute d = {.job = &job,
                          .side = {&liar.side, &other.side},
                          .challenge = true,
                          .transit = lie_again,
                          .user = &l};
        test_settle(&d);
        cr_expect(d.outcome.challenge.end == VD_CHALLENGE_FAILED && d.outcome.accepted);
        cr_expect(d.outcome.challenge.grade == (i ? VD_GRADE_TIMEOUT : VD_GRADE_BAD_PROOF));
        cr_expect(d.outcome.challenge.reason[0]);
        cr_expect(d.outcome.party[0].grade == VD_GRADE_WRONG_OUTPUT, "the first judgement stays");
        test_dispute_close(&d);
        test_provider_close(&liar);
        test_provider_close(&other);
        test_job_close(&job);
    }
}
