/* Second runs after a tournament, tournaments over rounding logs, and changes to their verdicts. */
#include "tests/support/tournament.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 4, STEPS = 4, EVERY = 2 };

typedef struct {
    test_job job;
    test_provider provider[COUNT];
    test_tournament t;
} table;

/* The faults of a provider's run and of its second run; NULL: correct. */
typedef struct {
    const char *fault, *again;
    bool runs_again;
} behaviour;

static void run_again(table *b, uint32_t p, const behaviour *how) {
    vd_fault fault = {0};
    if (!how->runs_again)
        return;
    if (how->again)
        fault = test_fault(&b->job, how->again);
    test_provider_runs_again(&b->provider[p], how->again ? &fault : NULL);
}

static void hold_again(table *b, const behaviour *how) {
    memset(b, 0, sizeof *b);
    test_job_open(&b->job, VD_MODEL_MLP, STEPS, EVERY);
    b->t = (test_tournament){.job = &b->job, .count = COUNT, .challenge = true};
    for (uint32_t p = 0; p < COUNT; p++) {
        vd_fault fault = {0};
        if (how[p].fault)
            fault = test_fault(&b->job, how[p].fault);
        test_provider_open(&b->provider[p], &b->job, (uint8_t)(p + 1),
                           how[p].fault ? &fault : NULL);
        run_again(b, p, &how[p]);
        b->t.side[p] = &b->provider[p].side;
    }
    test_hold(&b->t);
    cr_assert(b->t.status == VD_OK, "%s", b->t.err.text);
}

static void leave(table *b) {
    test_tournament_close(&b->t);
    for (uint32_t p = 0; p < b->t.count; p++)
        test_provider_close(&b->provider[p]);
    test_job_close(&b->job);
}

static const vd_contest_outcome *contest_of(const table *b, uint32_t provider) {
    for (uint32_t i = 0; i < b->t.outcome.contest_count; i++)
        if (b->t.outcome.contest[i].provider == provider)
            return &b->t.outcome.contest[i];
    cr_assert_fail("provider %u was not asked", provider);
    return NULL;
}

static void expect_end(const table *b, vd_challenge_end end, bool accepted, const char *what) {
    cr_expect(b->t.outcome.challenge.end == end, "%s: %s", what,
              vd_challenge_name(b->t.outcome.challenge.end));
    cr_expect(b->t.outcome.accepted == accepted, "%s", what);
    cr_expect(b->t.outcome.result == VD_RESULT_CONVICTED, "%s: %s", what,
              vd_result_name(b->t.outcome.result));
}

/* ---- second runs ---- */

Test(tournament_again, leaves_the_claim_that_nobody_contests) {
    static const behaviour how[COUNT] = {
        {NULL, NULL, true}, {"poison@0", NULL, false}, {"lr@1", NULL, false}, {NULL, NULL, true}};
    table b;
    hold_again(&b, how);
    expect_end(&b, VD_CHALLENGE_DECLINED, true, "declined");
    cr_expect(b.t.outcome.contest_count == 2 && !contest_of(&b, 1)->claimed);
    leave(&b);
}

Test(tournament_again, leaves_the_claim_that_second_runs_confirm) {
    static const behaviour how[COUNT] = {
        {"skip@0", NULL, true}, {"poison@0", NULL, true}, {NULL, NULL, true}, {NULL, NULL, true}};
    table b;
    hold_again(&b, how);
    expect_end(&b, VD_CHALLENGE_CONFIRMED, true, "confirmed");
    cr_expect(contest_of(&b, 0)->claimed && contest_of(&b, 1)->claimed);
    leave(&b);
}

Test(tournament_again, leaves_an_honest_claim_against_any_second_run) {
    static const behaviour how[COUNT] = {{"skip@0", "poison@3", true},
                                         {"poison@0", "lr@2", true},
                                         {NULL, NULL, true},
                                         {"lr@1", NULL, true}};
    table b;
    hold_again(&b, how);
    expect_end(&b, VD_CHALLENGE_FAILED, true, "failed");
    test_expect_accepted(&b.t, 2, "failed");
    cr_expect(contest_of(&b, 0)->grade == VD_GRADE_WRONG_OUTPUT && contest_of(&b, 0)->game > 0);
    cr_expect(contest_of(&b, 1)->grade == VD_GRADE_WRONG_GRAPH && contest_of(&b, 1)->game > 0);
    cr_expect(contest_of(&b, 3)->claimed && contest_of(&b, 3)->game == 0);
    cr_expect(b.t.outcome.party[0].grade == VD_GRADE_CONTRADICTION, "the first judgement stays");
    leave(&b);
}

/* All runs are wrong. The latest error stands, until a provider's second run contests it. */
Test(tournament_again, fells_a_wrong_claim_by_an_honest_second_run) {
    static const behaviour how[COUNT] = {{"poison@3", NULL, true},
                                         {"poison@0", NULL, true},
                                         {"lr@1", "skip@3", true},
                                         {"poison@3", NULL, true}};
    table b;
    hold_again(&b, how);
    expect_end(&b, VD_CHALLENGE_UPHELD, false, "upheld");
    for (uint32_t p = 0; p < COUNT; p++)
        cr_expect(b.t.outcome.party[p].standing == VD_CONVICTED, "%u", p);
    cr_expect(contest_of(&b, 1)->grade == VD_GRADE_NONE, "the honest second run fell");
    cr_expect(contest_of(&b, 2)->grade == VD_GRADE_CONTRADICTION);
    leave(&b);
}

/* ---- rounding logs ---- */

/* Provider 0 trains. The others follow its log, those with a fault of their own wrongly. */
static void hold_rounded(table *b, const char *trainer, const char *const *faults) {
    vd_public_key key;
    vd_err err = {0};
    memset(b, 0, sizeof *b);
    test_job_open(&b->job, VD_MODEL_MLP, STEPS, EVERY);
    test_job_round(&b->job, 32, VD_LOG_CALLS);
    b->t = (test_tournament){.job = &b->job, .count = COUNT};
    for (uint32_t p = 0; p < COUNT; p++) {
        const char *text = p ? faults[p - 1] : trainer;
        const test_party party = {.profile = p % 2 ? "sim-deep" : "sim-wide",
                                  .trainer = p ? &b->provider[0] : NULL,
                                  .trainer_key = p ? &key : NULL,
                                  .contest = true};
        vd_fault fault = {0};
        if (text) {
            fault = test_fault(&b->job, text);
            fault.bit = 22;
        }
        cr_assert(test_party_open(&b->provider[p], &b->job, (uint8_t)(p + 1), &party,
                                  text ? &fault : NULL, &err) == VD_OK,
                  "%s", err.text);
        if (p == 0)
            vd_key_public(b->provider[0].key, &key);
        b->t.side[p] = &b->provider[p].side;
    }
    test_hold(&b->t);
    cr_assert(b->t.status == VD_OK, "%s", b->t.err.text);
}

Test(tournament_again, hears_a_trainer_against_each_auditor_that_differs, .timeout = 120) {
    static const char *const faults[] = {"element@1", NULL, "element@2"};
    table b;
    hold_rounded(&b, NULL, faults);
    test_expect_accepted(&b.t, 0, "an honest trainer");
    test_expect_accepted(&b.t, 2, "an honest auditor");
    test_expect_fallen(&b.t, 1, VD_GRADE_WRONG_OUTPUT, "a wrong auditor");
    test_expect_fallen(&b.t, 3, VD_GRADE_WRONG_OUTPUT, "a wrong auditor");
    cr_expect(b.t.outcome.game_count == 2 && b.t.outcome.game[1].level == 2);
    leave(&b);
}

Test(tournament_again, accepts_nothing_of_a_trainer_that_falls, .timeout = 120) {
    static const char *const faults[] = {"element@3", NULL, NULL};
    table b;
    hold_rounded(&b, "element@1", faults);
    test_expect_fallen(&b.t, 0, VD_GRADE_WRONG_OUTPUT, "a wrong trainer");
    cr_expect(!b.t.outcome.accepted && b.t.outcome.result == VD_RESULT_CONVICTED);
    cr_expect(b.t.outcome.party[2].standing == VD_STANDS, "an honest auditor fell: %s",
              b.t.outcome.party[2].reason);
    leave(&b);
}

/* ---- verdicts ---- */

static bool holds(const vd_buf *note) {
    vd_verdict v;
    vd_err err = {0};
    const vd_status status =
        vd_verdict_verify(note->data, note->size, NULL, vd_leaf_element, NULL, NULL, &v, &err);
    cr_assert(status == VD_OK || status == VD_ERR_PEER, "%s", err.text);
    if (status == VD_OK)
        vd_verdict_free(&v);
    return status == VD_OK;
}

/* Signs the payload again as the referee. Returns whether the verdict holds. Steals `payload`. */
static bool holds_signed(json_t *payload) {
    vd_buf text = test_dump(payload), note = {0};
    vd_key *key = test_referee_key();
    cr_assert(vd_note_sign(key, VD_TYPE_VERDICT, text.data, text.size, &note, NULL) == VD_OK);
    const bool is = holds(&note);
    vd_key_destroy(key);
    vd_buf_free(&text);
    vd_buf_free(&note);
    return is;
}

static json_t *predicate_of(json_t *payload) {
    return json_object_get(payload, "predicate");
}

static void swap_items(json_t *list, size_t a, size_t b) {
    json_t *first = json_incref(json_array_get(list, a));
    json_t *second = json_incref(json_array_get(list, b));
    json_array_set_new(list, a, second);
    json_array_set_new(list, b, first);
}

Test(tournament_again, lets_no_item_of_its_evidence_be_left_out_doubled_or_moved) {
    static const behaviour how[COUNT] = {{"skip@0", "poison@3", true},
                                         {"poison@0", NULL, true},
                                         {NULL, NULL, true},
                                         {"poison@0", NULL, false}};
    table b;
    hold_again(&b, how);
    json_t *payload = test_payload(&b.t.verdict);
    const size_t count = json_array_size(json_object_get(predicate_of(payload), "evidence"));
    cr_assert(holds_signed(json_deep_copy(payload)));
    for (size_t i = 0; i < count; i++) {
        json_t *less = json_deep_copy(payload), *more = json_deep_copy(payload);
        json_t *moved = json_deep_copy(payload);
        json_array_remove(json_object_get(predicate_of(less), "evidence"), i);
        json_t *list = json_object_get(predicate_of(more), "evidence");
        json_array_insert(list, i, json_array_get(list, i));
        swap_items(json_object_get(predicate_of(moved), "evidence"), i, (i + 1) % count);
        cr_expect(!holds_signed(less), "without item %zu", i);
        cr_expect(!holds_signed(more), "with item %zu twice", i);
        cr_expect(!holds_signed(moved), "with item %zu moved", i);
    }
    json_decref(payload);
    leave(&b);
}

/* Removes each member of `object`, which is part of `payload`, and expects that the verdict no
 * longer holds. */
static void try_without_members(json_t *payload, json_t *object) {
    json_t *all = json_copy(object), *value;
    const char *name;
    json_object_foreach(all, name, value) {
        if (strcmp(name, "reason") == 0)
            continue;
        json_object_del(object, name);
        cr_expect(!holds_signed(json_deep_copy(payload)), "without %s", name);
        json_object_set(object, name, value);
    }
    json_decref(all);
}

Test(tournament_again, lets_nothing_of_its_outcome_be_left_out) {
    static const behaviour how[COUNT] = {{"skip@0", "poison@3", true},
                                         {"poison@0", NULL, true},
                                         {NULL, NULL, true},
                                         {"poison@0", NULL, false}};
    table b;
    json_t *each;
    size_t i;
    hold_again(&b, how);
    json_t *payload = test_payload(&b.t.verdict);
    json_t *outcome = json_object_get(predicate_of(payload), "outcome");
    json_t *challenge = json_object_get(outcome, "challenge");
    try_without_members(payload, outcome);
    try_without_members(payload, challenge);
    json_array_foreach(json_object_get(outcome, "games"), i, each)
        try_without_members(payload, each);
    json_array_foreach(json_object_get(outcome, "providers"), i, each)
        try_without_members(payload, each);
    json_array_foreach(json_object_get(challenge, "providers"), i, each)
        try_without_members(payload, each);
    json_object_set_new(payload, "predicateType", json_string(VD_PREDICATE));
    cr_expect(!holds_signed(payload), "as a verdict of two");
    leave(&b);
}
