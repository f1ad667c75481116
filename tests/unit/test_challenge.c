/* The second hearing: a convicted provider runs again and contests the remaining claim. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Every kind of wrong run, at the first, a middle and the last step. */
static const char *const wrongs[] = {
    "element@0", "element@1:adamw.wte.m",
    "element@2", "attr@1",
    "lr@0",      "lr@2",
    "skip@1",    "poison@0",
    "poison@2",  "seed@1",
    "seed@2",    "weights",
    "history",
};
enum { WRONGS = sizeof wrongs / sizeof wrongs[0], STEPS = 3, INTERVAL = 2 };

typedef struct {
    test_job job;
    test_provider a, b;
} bench;

/* fault: NULL for an honest run. */
static void open_provider(test_provider *p, const test_job *job, uint8_t name, const char *fault) {
    vd_fault f = {0};
    if (fault)
        f = test_fault(job, fault);
    test_provider_open(p, job, name, fault ? &f : NULL);
}

static void bench_open(bench *b, const char *fault_a, const char *fault_b) {
    test_job_open(&b->job, VD_MODEL_GPT2, STEPS, INTERVAL);
    open_provider(&b->a, &b->job, 1, fault_a);
    open_provider(&b->b, &b->job, 2, fault_b);
}

static void bench_close(bench *b) {
    test_provider_close(&b->a);
    test_provider_close(&b->b);
    test_job_close(&b->job);
}

static void contest(test_dispute *d, const test_job *job, const vd_provider *first,
                    const vd_provider *second) {
    *d = (test_dispute){.job = job, .side = {first, second}, .challenge = true};
    test_settle(d);
    cr_assert(d->status == VD_OK, "%s", d->err.text);
}

static void expect_end(const test_dispute *d, vd_challenge_end end, const char *what) {
    cr_expect(d->outcome.challenge.end == end, "%s: expected %s, got %s", what,
              vd_challenge_name(end), vd_challenge_name(d->outcome.challenge.end));
}

/* ---- both are wrong ---- */

static void expect_both_fall(const test_job *job, test_provider *a, test_provider *b,
                             const char *what) {
    test_dispute d;
    contest(&d, job, &a->side, &b->side);
    if (vd_hash_equal(&a->run.run_root, &b->run.run_root)) {
        cr_expect(d.outcome.result == VD_RESULT_AGREED, "%s", what);
    } else {
        cr_expect(d.outcome.result == VD_RESULT_CONVICTED && !d.outcome.accepted, "%s", what);
        for (int p = 0; p < 2; p++)
            cr_expect(d.outcome.party[p].standing == VD_CONVICTED, "%s: provider %d stands", what,
                      p);
        if (d.outcome.challenge.end != VD_CHALLENGE_NONE) /* NONE: both fell at once */
            expect_end(&d, VD_CHALLENGE_UPHELD, what);
    }
    test_dispute_close(&d);
}

Test(challenge, two_different_wrong_runs_are_both_convicted_and_nothing_is_accepted,
     .timeout = 300) {
    test_job job;
    static test_provider provider[WRONGS];
    test_job_open(&job, VD_MODEL_GPT2, STEPS, INTERVAL);
    for (int i = 0; i < WRONGS; i++) {
        open_provider(&provider[i], &job, (uint8_t)(i + 1), wrongs[i]);
        test_provider_runs_again(&provider[i], NULL);
    }
    for (int i = 0; i < WRONGS; i++)
        for (int k = i + 1; k < WRONGS; k++) {
            char what[96];
            bool swap = (i + k) % 2; /* swap: either may be convicted first */
            snprintf(what, sizeof what, "%s against %s", wrongs[i], wrongs[k]);
            expect_both_fall(&job, &provider[swap ? k : i], &provider[swap ? i : k], what);
        }
    for (int i = 0; i < WRONGS; i++)
        test_provider_close(&provider[i]);
    test_job_close(&job);
}

Test(challenge, tells_the_place_of_either_error) {
    bench b;
    test_dispute d;
    bench_open(&b, "poison@0", "lr@2");
    test_provider_runs_again(&b.a, NULL);
    contest(&d, &b.job, &b.a.side, &b.b.side);
    expect_end(&d, VD_CHALLENGE_UPHELD, "both");
    cr_expect(d.outcome.challenge.challenger == 0 && d.outcome.challenge.claimed);
    test_expect_place(&d, 0, d.outcome.place.node, "the first error");
    cr_expect(d.outcome.party[0].grade == VD_GRADE_WRONG_OUTPUT);
    cr_expect(d.outcome.challenge.place.step == 2, "step %lld",
              (long long)d.outcome.challenge.place.step);
    cr_expect(d.outcome.party[1].grade == VD_GRADE_WRONG_GRAPH);
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- one is wrong: the honest claim survives whatever the other does ---- */

static void expect_accepted(const test_dispute *d, uint32_t honest, vd_challenge_end end,
                            const char *what) {
    expect_end(d, end, what);
    cr_expect(d->outcome.result == VD_RESULT_CONVICTED && d->outcome.accepted, "%s", what);
    cr_expect(d->outcome.party[honest].standing == VD_STANDS, "%s: %s", what,
              d->outcome.party[honest].reason);
    cr_expect(vd_hash_equal(&d->outcome.run_root, &d->outcome.party[honest].run_root), "%s", what);
}

Test(challenge, an_honest_second_run_confirms_an_honest_claim) {
    for (int i = 0; i < WRONGS; i++) {
        bench b;
        test_dispute d;
        bench_open(&b, NULL, wrongs[i]);
        test_provider_runs_again(&b.b, NULL);
        contest(&d, &b.job, &b.a.side, &b.b.side);
        expect_accepted(&d, 0, VD_CHALLENGE_CONFIRMED, wrongs[i]);
        test_dispute_close(&d);
        bench_close(&b);
    }
}

Test(challenge, a_wrong_second_run_fails_against_an_honest_claim, .timeout = 300) {
    for (int i = 0; i < WRONGS; i++)
        for (uint32_t honest = 0; honest < 2; honest++) {
            bench b;
            test_dispute d;
            bench_open(&b, NULL, "poison@1");
            vd_fault second = test_fault(&b.job, wrongs[i]);
            test_provider_runs_again(&b.b, &second);
            contest(&d, &b.job, honest ? &b.b.side : &b.a.side, honest ? &b.a.side : &b.b.side);
            expect_accepted(&d, honest, VD_CHALLENGE_FAILED, wrongs[i]);
            cr_expect(d.outcome.party[1 - honest].grade == VD_GRADE_WRONG_OUTPUT,
                      "first judgement");
            test_dispute_close(&d);
            bench_close(&b);
        }
}

Test(challenge, is_declined_by_who_does_not_run_again) {
    bench b;
    test_dispute d;
    bench_open(&b, NULL, "poison@1");
    contest(&d, &b.job, &b.a.side, &b.b.side);
    expect_accepted(&d, 0, VD_CHALLENGE_DECLINED, "no second run");
    cr_expect(!d.outcome.challenge.claimed);
    test_dispute_close(&d);
    bench_close(&b);
}

/* Lies and silence in the second hearing only harm their author. */
Test(challenge, lies_of_a_challenger_do_not_touch_the_claim) {
    static const vd_lie lies[] = {VD_LIE_PROOF, VD_LIE_WITHHOLD, VD_LIE_SILENCE, VD_LIE_CONTRADICT};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        bench b;
        test_dispute d;
        bench_open(&b, NULL, "lr@0");
        vd_fault second = test_fault(&b.job, "poison@1");
        test_provider_runs_again(&b.b, &second);
        b.b.side.lie = lies[i];
        contest(&d, &b.job, &b.a.side, &b.b.side);
        cr_expect(d.outcome.accepted && d.outcome.party[0].standing == VD_STANDS);
        test_dispute_close(&d);
        bench_close(&b);
    }
}

/* ---- who is challenged ---- */

static void expect_none(bench *b, bool challenge) {
    test_dispute d = {.job = &b->job, .side = {&b->a.side, &b->b.side}, .challenge = challenge};
    test_settle(&d);
    expect_end(&d, VD_CHALLENGE_NONE, "nobody is asked");
    cr_expect(b->b.second && !d.outcome.challenge.claimed);
    test_dispute_close(&d);
}

Test(challenge, needs_a_conviction_and_an_assignment_that_provides_for_it) {
    bench b;
    bench_open(&b, NULL, "poison@1");
    test_provider_runs_again(&b.b, NULL);
    expect_none(&b, false);
    b.b.side.lie = VD_LIE_SILENCE; /* forfeits */
    expect_none(&b, true);
    bench_close(&b);
    bench_open(&b, NULL, NULL);
    test_provider_runs_again(&b.b, NULL);
    expect_none(&b, true); /* they agree */
    bench_close(&b);
}

/* ---- the provider whose claim is contested ---- */

typedef struct {
    uint32_t party;
    bool hearing; /* the second hearing has begun */
} silencer;

/* Both are wrong; the second one's answers in the second hearing are changed in transit. */
static test_dispute contest_wrong_claim(bench *b, test_transit transit) {
    silencer s = {.party = 1};
    bench_open(b, "poison@0", "lr@2");
    test_provider_runs_again(&b->a, NULL);
    test_dispute d = {.job = &b->job,
                      .side = {&b->a.side, &b->b.side},
                      .challenge = true,
                      .transit = transit,
                      .user = &s};
    test_settle(&d);
    d.user = NULL;
    return d;
}

static void silence_defendant(test_dispute *d, uint32_t party, const vd_outgoing *question,
                              vd_buf *note) {
    silencer *s = d->user;
    if (s->hearing && party == s->party)
        note->size = 0;
    s->hearing |= question->whole_run;
}

Test(challenge, a_claim_whose_maker_falls_silent_is_not_accepted) {
    bench b;
    test_dispute d = contest_wrong_claim(&b, silence_defendant);
    expect_end(&d, VD_CHALLENGE_UPHELD, "silence");
    cr_expect(d.outcome.party[1].standing == VD_FORFEITED && !d.outcome.accepted);
    test_dispute_close(&d);
    bench_close(&b);
}

/* In the second hearing a provider must keep to the run that it revealed in the first. */
static void other_root(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    silencer *s = d->user;
    if (s->hearing && party == s->party && note->size) {
        json_t *body = test_answer_body(note);
        if (json_object_get(body, "root"))
            json_object_set_new(body, "root",
                                json_string("00000000000000000000000000000000"
                                            "00000000000000000000000000000000"));
        test_resign(d, party, question, body, note);
    }
    s->hearing |= question->whole_run;
}

Test(challenge, a_defendant_cannot_change_its_claim) {
    bench b;
    test_dispute d = contest_wrong_claim(&b, other_root);
    cr_expect(d.outcome.party[1].grade == VD_GRADE_CONTRADICTION, "%s", d.outcome.party[1].reason);
    cr_expect(!d.outcome.accepted);
    test_dispute_close(&d);
    bench_close(&b);
}

/* ---- questions ---- */

Test(challenge, questions_of_the_second_hearing_are_other_questions) {
    vd_program program = {.steps = 3, .checkpoint_interval = 1};
    const vd_job_programs programs = {.program = &program};
    vd_hash assignment = {{1}}, hash[2];
    vd_question q = {.kind = VD_ASK_OPEN, .tree = {.kind = VD_TREE_RUN}, .hi = 4, .depth = 2};
    vd_key *key = test_referee_key();
    for (int i = 0; i < 2; i++) {
        vd_buf payload = {0};
        vd_question again;
        q.challenged = i == 1;
        if (i)
            vd_key_public(key, &q.challenger);
        cr_assert(vd_question_write(&q, &assignment, &payload, NULL) == VD_OK);
        cr_assert(vd_hash_tagged("verde/question/1", payload.data, payload.size, &hash[i]));
        cr_assert(vd_question_read(payload.data, payload.size, &programs, &assignment, &again, NULL,
                                   NULL) == VD_OK);
        cr_expect(again.challenged == q.challenged);
        cr_expect(memcmp(&again.challenger, &q.challenger, sizeof q.challenger) == 0);
        vd_buf_free(&payload);
    }
    cr_expect(!vd_hash_equal(&hash[0], &hash[1]));
    vd_key_destroy(key);
}

/* Commit and reveal have no second hearing, and a challenge only has the second. */
Test(challenge, questions_of_the_wrong_hearing_are_refused) {
    static const vd_ask_kind kind[] = {VD_ASK_COMMIT, VD_ASK_REVEAL, VD_ASK_CHALLENGE};
    static const bool fits[] = {false, false, true}; /* with a challenger; else the reverse */
    vd_program program = {.steps = 3, .checkpoint_interval = 1};
    const vd_job_programs programs = {.program = &program};
    vd_hash assignment = {{1}};
    vd_key *key = test_referee_key();
    for (int i = 0; i < 6; i++) {
        vd_buf payload = {0};
        vd_question again, q = {.kind = kind[i / 2], .challenged = i % 2, .commit_count = 2};
        vd_key_public(key, &q.challenger);
        cr_assert(vd_question_write(&q, &assignment, &payload, NULL) == VD_OK);
        vd_status status = vd_question_read(payload.data, payload.size, &programs, &assignment,
                                            &again, NULL, NULL);
        cr_expect((status == VD_OK) == (fits[i / 2] == q.challenged), "case %d", i);
        vd_buf_free(&payload);
    }
    vd_key_destroy(key);
}
