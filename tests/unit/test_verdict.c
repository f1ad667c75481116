/* A verdict holds by its evidence alone. Nothing in it can be changed, not even by the referee who
 * signs it again. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- verdicts ---- */

static const struct {
    const char *fault; /* fault of the second provider; NULL: none */
    vd_lie lie;
    vd_result result;
    vd_grade grade;
} kinds[] = {
    {NULL, VD_LIE_NONE, VD_RESULT_AGREED, VD_GRADE_NONE},
    {"poison@1", VD_LIE_NONE, VD_RESULT_CONVICTED, VD_GRADE_WRONG_OUTPUT},
    {"lr@1", VD_LIE_NONE, VD_RESULT_CONVICTED, VD_GRADE_WRONG_GRAPH},
    {"skip@1", VD_LIE_NONE, VD_RESULT_CONVICTED, VD_GRADE_CONTRADICTION},
    {"poison@1", VD_LIE_PROOF, VD_RESULT_CONVICTED, VD_GRADE_BAD_PROOF},
    {"poison@1", VD_LIE_SILENCE, VD_RESULT_FORFEIT, VD_GRADE_TIMEOUT},
};

static vd_status verify(const vd_buf *note, const vd_public_key *referee, vd_verdict *out,
                        vd_err *err) {
    return vd_verdict_verify(note->data, note->size, referee, vd_leaf_element, NULL, NULL, out,
                             err);
}

static vd_buf make_verdict(size_t kind) {
    test_job job;
    test_provider honest, liar;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    test_provider_open(&honest, &job, 1, NULL);
    vd_fault fault = {0};
    if (kinds[kind].fault)
        fault = test_fault(&job, kinds[kind].fault);
    test_provider_open(&liar, &job, 2, kinds[kind].fault ? &fault : NULL);
    liar.side.lie = kinds[kind].lie;
    test_duel(&d, &job, &honest.side, &liar.side, 1);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    test_provider_close(&honest);
    test_provider_close(&liar);
    test_job_close(&job);
    return d.verdict;
}

/* Makes a verdict of two hearings. The first convicts the first provider; its second run then
 * contests the other's claim. */
static vd_buf make_challenged(const char *fault, const char *rival, const char *again) {
    test_job job;
    test_provider first, second;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    vd_fault of_first = test_fault(&job, fault), of_second = {0}, of_again = {0};
    if (rival)
        of_second = test_fault(&job, rival);
    if (again)
        of_again = test_fault(&job, again);
    test_provider_open(&first, &job, 1, &of_first);
    test_provider_open(&second, &job, 2, rival ? &of_second : NULL);
    test_provider_runs_again(&first, again ? &of_again : NULL);
    d = (test_dispute){.job = &job, .side = {&first.side, &second.side}, .challenge = true};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    test_provider_close(&first);
    test_provider_close(&second);
    test_job_close(&job);
    return d.verdict;
}

static vd_buf make_upheld(void) {
    return make_challenged("poison@0", "poison@2", NULL);
}

/* No case gives the result "inconclusive", which takes a hash collision or a fault of the reference
 * itself. */
Test(verdict, of_every_result_holds_without_runs_and_programs) {
    vd_key *key = test_referee_key();
    vd_public_key referee;
    vd_key_public(key, &referee);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        vd_verdict v;
        vd_err err = {0};
        vd_buf note = make_verdict(i); /* the runs have been deleted by now */
        cr_assert(verify(&note, &referee, &v, &err) == VD_OK, "%s", err.text);
        cr_expect(v.outcome.result == kinds[i].result, "%zu: %s", i,
                  vd_result_name(v.outcome.result));
        cr_expect(v.outcome.party[1].grade == kinds[i].grade, "%zu: %s", i,
                  vd_grade_name(v.outcome.party[1].grade));
        cr_expect(v.outcome.party[0].standing == VD_STANDS && v.outcome.accepted, "%zu", i);
        cr_expect(v.statements >= 4 && v.cost.bytes_in == 1 && v.cost.seconds == 0.5);
        cr_expect(v.cost.level_seconds[VD_LEVEL_STEP] == 0.25 &&
                  v.cost.level_seconds[VD_LEVEL_NODE] == 0);
        cr_expect(memcmp(&v.referee, &referee, sizeof referee) == 0);
        vd_buf_free(&note);
    }
    vd_key_destroy(key);
}

static vd_status broken_leaf(const ro_call *call, int64_t element,
                             uint32_t (*load)(void *user, int input, int64_t index), void *user,
                             uint32_t *out, vd_err *err) {
    (void)call, (void)element, (void)load, (void)user, (void)out;
    return vd_fail(err, VD_ERR_LOCAL, "no memory for the reference");
}

Test(verdict, is_not_refused_for_trouble_of_who_verifies) {
    vd_verdict v;
    vd_err err = {0};
    vd_buf note = make_verdict(1);
    cr_expect(vd_verdict_verify(note.data, note.size, NULL, broken_leaf, NULL, NULL, &v, &err) ==
              VD_ERR_LOCAL);
    vd_buf_free(&note);
}

/* ---- the note ---- */

static void expect_refused(const vd_buf *note, const vd_public_key *referee, const char *what) {
    vd_verdict v;
    vd_err err = {0};
    vd_status status = verify(note, referee, &v, &err);
    cr_expect(status == VD_ERR_PEER, "%s: status %d %s", what, status, err.text);
    cr_expect(status == VD_OK || err.text[0], "%s: no reason", what);
}

static vd_buf copy_of(const vd_buf *note) {
    vd_buf out = {0};
    vd_put(&out, note->data, note->size);
    return out;
}

Test(verdict, is_refused_if_any_byte_is_another) {
    vd_buf note = make_verdict(1);
    uint64_t random = 1;
    for (int i = 0; i < 300; i++) {
        char what[48];
        vd_buf changed = copy_of(&note);
        size_t at = test_random(&random) % note.size;
        changed.data[at] ^= (uint8_t)(1u << test_random(&random) % 8);
        snprintf(what, sizeof what, "byte %zu", at);
        expect_refused(&changed, NULL, what);
        vd_buf_free(&changed);
    }
    vd_buf_free(&note);
}

Test(verdict, is_refused_with_bytes_around_it_or_missing) {
    vd_buf note = make_verdict(1);
    for (size_t cut = 1; cut <= note.size; cut = 3 * cut + 1) {
        vd_buf changed = copy_of(&note);
        changed.size -= cut;
        expect_refused(&changed, NULL, "truncated");
        vd_buf_free(&changed);
    }
    static const char *const trailing[] = {"\n", " ", "{}", "x"};
    for (int i = 0; i < 4; i++) {
        vd_buf changed = copy_of(&note);
        vd_put(&changed, trailing[i], strlen(trailing[i]));
        expect_refused(&changed, NULL, "trailing bytes");
        vd_buf_free(&changed);
    }
    vd_buf changed = {0};
    vd_put(&changed, " ", 1);
    vd_put(&changed, note.data, note.size);
    expect_refused(&changed, NULL, "a space before");
    vd_buf_free(&changed);
    vd_buf_free(&note);
}

Test(verdict, is_refused_with_a_signature_counted_twice) {
    vd_buf note = make_verdict(1);
    json_t *envelope = test_parse(note.data, note.size);
    json_t *list = json_object_get(envelope, "signatures");
    json_array_append_new(list, json_deep_copy(json_array_get(list, 0)));
    vd_buf changed = test_dump(envelope);
    expect_refused(&changed, NULL, "two signatures");
    vd_buf_free(&changed);
    vd_buf_free(&note);
}

/* Signs a payload as a verdict. Steals `root`. */
static vd_buf sign(const vd_key *key, const char *type, json_t *root) {
    vd_buf payload = test_dump(root), note = {0};
    cr_assert(vd_note_sign(key, type, payload.data, payload.size, &note, NULL) == VD_OK);
    vd_buf_free(&payload);
    return note;
}

static vd_key *stranger(void) {
    vd_key *key;
    uint8_t seed[32] = {0x77};
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    return key;
}

Test(verdict, is_refused_from_another_referee_or_of_another_type) {
    vd_buf note = make_verdict(1);
    vd_key *referee = test_referee_key(), *other = stranger();
    vd_public_key other_public;
    vd_key_public(other, &other_public);
    expect_refused(&note, &other_public, "expected from another referee");
    vd_buf changed = sign(other, VD_TYPE_VERDICT, test_payload(&note));
    expect_refused(&changed, NULL, "signed by a stranger");
    expect_refused(&changed, &other_public, "signed by a stranger, who is expected");
    vd_buf_free(&changed);
    static const char *const types[] = {VD_TYPE_ANSWER, VD_TYPE_QUESTION};
    for (int i = 0; i < 2; i++) {
        changed = sign(referee, types[i], test_payload(&note));
        expect_refused(&changed, NULL, types[i]);
        vd_buf_free(&changed);
    }
    vd_key_destroy(referee);
    vd_key_destroy(other);
    vd_buf_free(&note);
}

/* ---- changed contents, signed again by the referee ---- */

static json_t *predicate_of(json_t *root) {
    return json_object_get(root, "predicate");
}
static json_t *outcome_of(json_t *root) {
    return json_object_get(predicate_of(root), "outcome");
}
static json_t *evidence_of(json_t *root) {
    return json_object_get(predicate_of(root), "evidence");
}
static json_t *party_of(json_t *root, size_t p) {
    return json_array_get(json_object_get(outcome_of(root), "providers"), p);
}

static void swap_members(json_t *a, json_t *b, const char *key) {
    json_t *x = json_incref(json_object_get(a, key)), *y = json_incref(json_object_get(b, key));
    json_object_del(a, key);
    json_object_del(b, key);
    if (y)
        json_object_set_new(a, key, y);
    if (x)
        json_object_set_new(b, key, x);
}

static void swap_convicted(json_t *root) {
    static const char *const keys[] = {"standing", "grade", "reason"};
    for (int i = 0; i < 3; i++)
        swap_members(party_of(root, 0), party_of(root, 1), keys[i]);
}

static void swap_everything_but_keys(json_t *root) {
    swap_convicted(root);
    swap_members(party_of(root, 0), party_of(root, 1), "run_root");
    swap_members(party_of(root, 0), party_of(root, 1), "value");
}

static void swap_keys(json_t *root) {
    swap_members(party_of(root, 0), party_of(root, 1), "key");
}

static void acquit(json_t *root) {
    json_object_set_new(party_of(root, 1), "standing", json_string("stands"));
}

static void only_forfeit(json_t *root) {
    json_object_set_new(party_of(root, 1), "standing", json_string("forfeited"));
}

static void another_grade(json_t *root) {
    json_object_set_new(party_of(root, 1), "grade", json_string("wrong-input"));
}

static void another_reason(json_t *root) {
    json_object_set_new(party_of(root, 1), "reason", json_string("because"));
}

static void agreed(json_t *root) {
    json_object_set_new(outcome_of(root), "result", json_string("agreed"));
}

static void not_accepted(json_t *root) {
    json_object_set_new(outcome_of(root), "accepted", json_false());
}

static void accept_the_other(json_t *root) {
    json_object_set(outcome_of(root), "run_root", json_object_get(party_of(root, 1), "run_root"));
}

static void another_step(json_t *root) {
    json_object_set_new(outcome_of(root), "step", json_integer(2));
}

static void step_as_real(json_t *root) {
    json_object_set_new(outcome_of(root), "step", json_real(1));
}

static void no_node(json_t *root) {
    json_object_del(outcome_of(root), "node");
}

static void more_in_outcome(json_t *root) {
    json_object_set_new(outcome_of(root), "winner", json_integer(0));
}

static void another_expected(json_t *root) {
    json_object_set_new(outcome_of(root), "expected", json_string("0x00000000"));
}

static void no_outcome(json_t *root) {
    json_object_del(predicate_of(root), "outcome");
}
static void no_evidence(json_t *root) {
    json_array_clear(evidence_of(root));
}

static void double_first(json_t *root) {
    json_array_insert(evidence_of(root), 1, json_array_get(evidence_of(root), 0));
}

static void double_last(json_t *root) {
    json_t *list = evidence_of(root);
    json_array_append(list, json_array_get(list, json_array_size(list) - 1));
}

static void add_absence(json_t *root) {
    json_array_append_new(evidence_of(root),
                          json_pack("{si ss ss}", "provider", 0, "question", "00", "absent", "x"));
}

static void reverse(json_t *root) {
    json_t *list = evidence_of(root);
    for (size_t i = 0, n = json_array_size(list); i < n; i++) {
        json_t *last = json_incref(json_array_get(list, n - 1));
        json_array_remove(list, n - 1);
        json_array_insert_new(list, i, last);
    }
}

static void silence_the_honest(json_t *root) {
    json_t *item = json_array_get(evidence_of(root), 4);
    json_object_del(item, "statement");
    json_object_set_new(item, "absent", json_string("did not answer in time"));
}

static void silence_the_last(json_t *root) {
    json_t *list = evidence_of(root), *item = json_array_get(list, json_array_size(list) - 1);
    json_object_del(item, "statement");
    json_object_set_new(item, "absent", json_string("did not answer in time"));
}

static void blame_the_other(json_t *root) {
    json_object_set_new(json_array_get(evidence_of(root), 0), "provider", json_integer(1));
}

static void provider_as_text(json_t *root) {
    json_object_set_new(json_array_get(evidence_of(root), 0), "provider", json_string("0"));
}

static void more_in_evidence(json_t *root) {
    json_object_set_new(json_array_get(evidence_of(root), 0), "note", json_string("seen by me"));
}

static void absent_and_stated(json_t *root) {
    json_object_set_new(json_array_get(evidence_of(root), 0), "absent", json_string("but here"));
}

static void another_question(json_t *root) {
    json_object_set(json_array_get(evidence_of(root), 0), "question",
                    json_object_get(json_array_get(evidence_of(root), 2), "question"));
}

static void another_statement(json_t *root) {
    json_object_set(json_array_get(evidence_of(root), 1), "statement",
                    json_object_get(json_array_get(evidence_of(root), 0), "statement"));
}

static void another_predicate_type(json_t *root) {
    json_object_set_new(root, "predicateType", json_string("https://verde.invalid/verdict/v2"));
}

static void more_in_statement(json_t *root) {
    json_object_set_new(root, "more", json_null());
}
static void more_in_predicate(json_t *root) {
    json_object_set_new(predicate_of(root), "more", json_null());
}

static void another_subject(json_t *root) {
    json_t *digest = json_object_get(json_array_get(json_object_get(root, "subject"), 0), "digest");
    json_object_set(digest, "sha256", json_object_get(outcome_of(root), "run_root"));
}

static void two_subjects(json_t *root) {
    json_t *list = json_object_get(root, "subject");
    json_array_append(list, json_array_get(list, 0));
}

static void cost_as_text(json_t *root) {
    json_object_set_new(json_object_get(predicate_of(root), "cost"), "seconds", json_string("1"));
}

static void negative_cost(json_t *root) {
    json_object_set_new(json_object_get(predicate_of(root), "cost"), "bytes_out", json_integer(-1));
}

static void negative_seconds(json_t *root) {
    json_object_set_new(json_object_get(predicate_of(root), "cost"), "seconds", json_real(-0.5));
}

static json_t *levels_of(json_t *root) {
    return json_object_get(json_object_get(predicate_of(root), "cost"), "level_seconds");
}

static void negative_level(json_t *root) {
    json_object_set_new(levels_of(root), "step", json_real(-0.5));
}

static void level_as_text(json_t *root) {
    json_object_set_new(levels_of(root), "node", json_string("1"));
}

static void level_of_no_name(json_t *root) {
    json_object_set_new(levels_of(root), "run", json_integer(1));
}

static void levels_of_nothing(json_t *root) {
    json_object_set_new(json_object_get(predicate_of(root), "cost"), "level_seconds", json_null());
}

static void no_cost(json_t *root) {
    json_object_clear(json_object_get(predicate_of(root), "cost"));
}

static void another_program(json_t *root) {
    test_job job;
    vd_buf bytes = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 4);
    vd_program_encode(&job.program, &bytes);
    char *text = vd_base64(bytes.data, bytes.size);
    json_object_set_new(predicate_of(root), "program", json_string(text));
    free(text);
    vd_buf_free(&bytes);
    test_job_close(&job);
}

static void no_program(json_t *root) {
    json_object_set_new(predicate_of(root), "program", json_string(""));
}

/* Changes the assignment, and signs it again with `key`. */
static void reassign(json_t *root, void (*change)(json_t *assignment), const vd_key *key) {
    vd_buf note = test_dump(json_incref(json_object_get(predicate_of(root), "assignment")));
    json_t *assignment = test_payload(&note);
    change(assignment);
    vd_buf changed = sign(key, VD_TYPE_ASSIGNMENT, assignment);
    json_object_set_new(predicate_of(root), "assignment", test_parse(changed.data, changed.size));
    vd_buf_free(&changed);
    vd_buf_free(&note);
}

static void reassign_by_referee(json_t *root, void (*change)(json_t *assignment)) {
    vd_key *key = test_referee_key();
    reassign(root, change, key);
    vd_key_destroy(key);
}

static void set_nonce(json_t *a) {
    json_object_set(a, "nonce", json_object_get(a, "program"));
}

static void swap_providers(json_t *a) {
    json_t *list = json_object_get(a, "providers"), *first = json_incref(json_array_get(list, 0));
    json_array_remove(list, 0);
    json_array_append_new(list, first);
}

static void set_program(json_t *a) {
    json_object_set(a, "program", json_object_get(a, "nonce"));
}
static void keep(json_t *a) {
    (void)a;
}

static void another_nonce(json_t *root) {
    reassign_by_referee(root, set_nonce);
}
static void providers_swapped(json_t *root) {
    reassign_by_referee(root, swap_providers);
}
static void assignment_of_another_program(json_t *root) {
    reassign_by_referee(root, set_program);
}
static void assignment_by_a_stranger(json_t *root) {
    vd_key *key = stranger();
    reassign(root, keep, key);
    vd_key_destroy(key);
}

#define EDIT(function)                                                                             \
    { #function, function }
static const struct {
    const char *name;
    void (*edit)(json_t *root);
} edits[] = {
    EDIT(swap_convicted),
    EDIT(swap_everything_but_keys),
    EDIT(swap_keys),
    EDIT(acquit),
    EDIT(only_forfeit),
    EDIT(another_grade),
    EDIT(agreed),
    EDIT(not_accepted),
    EDIT(accept_the_other),
    EDIT(another_step),
    EDIT(step_as_real),
    EDIT(no_node),
    EDIT(more_in_outcome),
    EDIT(another_expected),
    EDIT(no_outcome),
    EDIT(no_evidence),
    EDIT(double_first),
    EDIT(double_last),
    EDIT(add_absence),
    EDIT(reverse),
    EDIT(silence_the_honest),
    EDIT(silence_the_last),
    EDIT(blame_the_other),
    EDIT(provider_as_text),
    EDIT(more_in_evidence),
    EDIT(absent_and_stated),
    EDIT(another_question),
    EDIT(another_statement),
    EDIT(another_predicate_type),
    EDIT(more_in_statement),
    EDIT(more_in_predicate),
    EDIT(another_subject),
    EDIT(two_subjects),
    EDIT(cost_as_text),
    EDIT(negative_cost),
    EDIT(negative_seconds),
    EDIT(negative_level),
    EDIT(level_as_text),
    EDIT(level_of_no_name),
    EDIT(levels_of_nothing),
    EDIT(no_cost),
    EDIT(another_program),
    EDIT(no_program),
    EDIT(another_nonce),
    EDIT(providers_swapped),
    EDIT(assignment_of_another_program),
    EDIT(assignment_by_a_stranger),
};

/* ---- verdicts of two hearings ---- */

static json_t *challenge_of(json_t *root) {
    return json_object_get(outcome_of(root), "challenge");
}

/* Returns the index of the only answer to the question for a second run's root. */
static size_t challenge_item(json_t *root) {
    json_t *list = evidence_of(root);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *statement = json_object_get(json_array_get(list, i), "statement");
        vd_buf note = test_dump(json_incref(statement));
        json_t *body = test_answer_body(&note);
        bool found = json_object_size(body) == 1 && json_object_get(body, "root");
        json_decref(body);
        vd_buf_free(&note);
        if (found)
            return i;
    }
    cr_assert(false, "nobody was asked for a second run");
    return 0;
}

static void cut_evidence(json_t *root, size_t count) {
    json_t *list = evidence_of(root);
    while (json_array_size(list) > count)
        json_array_remove(list, json_array_size(list) - 1);
}

/* Writes the outcome as if nobody had contested the second provider's claim. */
static void let_the_second_one_off(json_t *root) {
    json_t *party = party_of(root, 1);
    json_object_set_new(party, "standing", json_string("stands"));
    json_object_del(party, "grade");
    json_object_del(party, "reason");
    json_object_set_new(outcome_of(root), "accepted", json_true());
    json_object_set(outcome_of(root), "run_root", json_object_get(party, "run_root"));
}

static void set_end(json_t *root, const char *end) {
    json_object_set_new(challenge_of(root), "end", json_string(end));
}

static void no_second_hearing(json_t *root) {
    cut_evidence(root, challenge_item(root) + 1);
}

static void no_challenge(json_t *root) {
    cut_evidence(root, challenge_item(root));
    json_object_del(outcome_of(root), "challenge");
    let_the_second_one_off(root);
}

static void as_if_confirmed(json_t *root) {
    no_second_hearing(root);
    let_the_second_one_off(root);
    json_object_clear(challenge_of(root));
    set_end(root, "confirmed");
    json_object_set_new(challenge_of(root), "provider", json_integer(0));
    json_object_set(challenge_of(root), "run_root", json_object_get(party_of(root, 1), "run_root"));
}

static void as_if_failed(json_t *root) {
    let_the_second_one_off(root);
    set_end(root, "failed");
}

static void cut_in_the_second_hearing(json_t *root) {
    cut_evidence(root, challenge_item(root) + 3);
}

static void end_failed(json_t *root) {
    set_end(root, "failed");
}
static void end_inconclusive(json_t *root) {
    set_end(root, "inconclusive");
}

static void another_challenger(json_t *root) {
    json_object_set_new(challenge_of(root), "provider", json_integer(1));
}

static void another_second_run(json_t *root) {
    json_object_set(challenge_of(root), "run_root", json_object_get(party_of(root, 0), "run_root"));
}

static void no_second_run(json_t *root) {
    json_object_del(challenge_of(root), "run_root");
}
static void no_second_place(json_t *root) {
    json_object_del(challenge_of(root), "step");
}
static void no_values(json_t *root) {
    json_object_del(challenge_of(root), "values");
}

static void values_swapped(json_t *root) {
    json_t *list = json_object_get(challenge_of(root), "values");
    json_t *first = json_incref(json_array_get(list, 0));
    json_array_remove(list, 0);
    json_array_append_new(list, first);
}

static void places_swapped(json_t *root) {
    static const char *const keys[] = {"step",     "node",    "node_name",
                                       "operator", "element", "expected"};
    for (int i = 0; i < 6; i++)
        swap_members(outcome_of(root), challenge_of(root), keys[i]);
}

static void a_grade_for_the_second_run(json_t *root) {
    json_object_set_new(challenge_of(root), "grade", json_string("bad-proof"));
}

static void outcome_without_challenge(json_t *root) {
    json_object_del(outcome_of(root), "challenge");
}

/* In the second hearing, replaces the statement about the run by that of the first hearing. */
static void first_hearing_in_the_second(json_t *root) {
    size_t at = challenge_item(root);
    json_object_set(json_array_get(evidence_of(root), at + 2), "statement",
                    json_object_get(json_array_get(evidence_of(root), 5), "statement"));
}

static void second_hearing_in_the_first(json_t *root) {
    size_t at = challenge_item(root);
    json_object_set(json_array_get(evidence_of(root), 5), "statement",
                    json_object_get(json_array_get(evidence_of(root), at + 2), "statement"));
}

static void silence_the_challenger(json_t *root) {
    json_t *item = json_array_get(evidence_of(root), challenge_item(root));
    json_object_del(item, "statement");
    json_object_set_new(item, "absent", json_string("did not answer in time"));
}

/* Counts the evidence's questions to the provider that was asked most. */
static size_t rounds_of(json_t *root) {
    size_t count[2] = {0}, index;
    json_t *item;
    json_array_foreach(evidence_of(root), index, item) {
        count[json_integer_value(json_object_get(item, "provider"))]++;
    }
    return count[0] > count[1] ? count[0] : count[1];
}

/* Silences the challenger, and changes everything else to fit. */
static void silence_and_let_off(json_t *root) {
    size_t at = challenge_item(root);
    silence_the_challenger(root);
    cut_evidence(root, at + 1);
    let_the_second_one_off(root);
    json_object_clear(challenge_of(root));
    set_end(root, "declined");
    json_object_set_new(challenge_of(root), "provider", json_integer(0));
    json_object_set_new(outcome_of(root), "rounds", json_integer((json_int_t)rounds_of(root)));
}

static void take_challenge(json_t *a) {
    json_object_del(a, "challenge");
}
static void give_challenge(json_t *a) {
    json_object_set_new(a, "challenge", json_true());
}
static void deny_challenge(json_t *a) {
    json_object_set_new(a, "challenge", json_false());
}
static void assignment_without_challenge(json_t *root) {
    reassign_by_referee(root, take_challenge);
}
static void assignment_with_challenge(json_t *root) {
    reassign_by_referee(root, give_challenge);
}
static void assignment_that_says_no_challenge(json_t *root) {
    reassign_by_referee(root, deny_challenge);
}

static const struct {
    const char *name;
    void (*edit)(json_t *root);
} challenge_edits[] = {
    EDIT(no_second_hearing),
    EDIT(no_challenge),
    EDIT(as_if_confirmed),
    EDIT(as_if_failed),
    EDIT(cut_in_the_second_hearing),
    EDIT(end_failed),
    EDIT(end_inconclusive),
    EDIT(another_challenger),
    EDIT(another_second_run),
    EDIT(no_second_run),
    EDIT(no_second_place),
    EDIT(no_values),
    EDIT(values_swapped),
    EDIT(places_swapped),
    EDIT(a_grade_for_the_second_run),
    EDIT(outcome_without_challenge),
    EDIT(first_hearing_in_the_second),
    EDIT(second_hearing_in_the_first),
    EDIT(silence_the_challenger),
    EDIT(assignment_without_challenge),
    EDIT(assignment_that_says_no_challenge),
    EDIT(double_first),
    EDIT(double_last),
    EDIT(add_absence),
    EDIT(reverse),
    EDIT(silence_the_honest),
    EDIT(silence_the_last),
    EDIT(acquit),
    EDIT(let_the_second_one_off),
};

static void expect_edit_refused(const vd_buf *note, const vd_key *referee, json_t *root,
                                const char *what) {
    json_t *original = test_payload(note);
    cr_expect(!json_equal(original, root), "%s changed nothing", what);
    json_decref(original);
    vd_buf changed = sign(referee, VD_TYPE_VERDICT, root);
    expect_refused(&changed, NULL, what);
    vd_buf_free(&changed);
}

static void expect_edit_holds(const vd_key *referee, json_t *root, const char *what) {
    vd_verdict v;
    vd_err err = {0};
    vd_buf changed = sign(referee, VD_TYPE_VERDICT, root);
    cr_expect(verify(&changed, NULL, &v, &err) == VD_OK, "%s: %s", what, err.text);
    for (uint32_t p = 0; p < v.outcome.party_count; p++)
        cr_expect(!strstr(v.outcome.party[p].reason, "because"), "%s", what);
    vd_buf_free(&changed);
}

Test(verdict, is_refused_after_every_edit_though_signed_again) {
    vd_buf note = make_verdict(1);
    vd_key *referee = test_referee_key();
    vd_buf same = sign(referee, VD_TYPE_VERDICT, test_payload(&note));
    vd_verdict v;
    cr_assert(verify(&same, NULL, &v, NULL) == VD_OK, "signing again alone must not matter");
    vd_buf_free(&same);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        json_t *root = test_payload(&note);
        edits[i].edit(root);
        expect_edit_refused(&note, referee, root, edits[i].name);
    }
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

Test(verdict, of_two_hearings_is_refused_after_every_edit_though_signed_again) {
    vd_buf note = make_upheld();
    vd_key *referee = test_referee_key();
    vd_verdict v;
    cr_assert(verify(&note, NULL, &v, NULL) == VD_OK);
    cr_assert(v.outcome.challenge.end == VD_CHALLENGE_UPHELD && !v.outcome.accepted);
    cr_assert(v.outcome.challenge.place.computed && v.outcome.challenge.place.step == 2);
    for (size_t i = 0; i < sizeof challenge_edits / sizeof challenge_edits[0]; i++) {
        json_t *root = test_payload(&note);
        challenge_edits[i].edit(root);
        expect_edit_refused(&note, referee, root, challenge_edits[i].name);
    }
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

Test(verdict, without_a_challenge_is_refused_with_one_added) {
    vd_buf note = make_verdict(1);
    vd_key *referee = test_referee_key();
    json_t *root = test_payload(&note);
    assignment_with_challenge(root);
    expect_edit_refused(&note, referee, root, "an assignment with a challenge");
    root = test_payload(&note);
    json_object_set_new(outcome_of(root), "challenge",
                        json_pack("{ss si}", "end", "declined", "provider", 1));
    expect_edit_refused(&note, referee, root, "an outcome with a challenge");
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

/* If a second run falls, the verdict says why: its error is proven, or the referee says that it did
 * not answer. */
Test(verdict, of_a_challenge_that_failed_says_why) {
    vd_buf note = make_challenged("poison@0", NULL, "lr@1");
    vd_key *referee = test_referee_key();
    vd_verdict v;
    cr_assert(verify(&note, NULL, &v, NULL) == VD_OK);
    cr_expect(v.outcome.challenge.end == VD_CHALLENGE_FAILED && v.outcome.accepted);
    cr_expect(v.outcome.party[0].grade == VD_GRADE_WRONG_OUTPUT);
    cr_expect(v.outcome.challenge.grade == VD_GRADE_WRONG_GRAPH && v.outcome.challenge.reason[0]);
    json_t *root = test_payload(&note);
    json_object_set_new(challenge_of(root), "grade", json_string("timeout"));
    expect_edit_refused(&note, referee, root, "another grade of the second run");
    root = test_payload(&note);
    json_object_del(challenge_of(root), "reason");
    expect_edit_holds(referee, root, "no reason for the second run");
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

/* Reasons are meant for people, and implementations word them differently. The verifier states its
 * own reason. */
Test(verdict, holds_whatever_its_reasons_say) {
    vd_buf note = make_verdict(1);
    vd_key *referee = test_referee_key();
    json_t *root = test_payload(&note);
    another_reason(root);
    expect_edit_holds(referee, root, "another reason");
    root = test_payload(&note);
    json_object_del(party_of(root, 1), "reason");
    expect_edit_holds(referee, root, "none");
    root = test_payload(&note);
    json_object_set_new(party_of(root, 0), "reason", json_integer(7));
    expect_edit_holds(referee, root, "one of who stands, which is no sentence");
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

/* As with any silence, only the referee attests that a challenger did not answer. That can clear
 * the second provider, but not convict it. */
Test(verdict, of_a_challenge_that_was_declined_is_the_referees_word) {
    vd_buf note = make_upheld();
    vd_key *referee = test_referee_key();
    json_t *root = test_payload(&note);
    vd_verdict v;
    vd_err err = {0};
    silence_and_let_off(root);
    vd_buf changed = sign(referee, VD_TYPE_VERDICT, root);
    cr_expect(verify(&changed, NULL, &v, &err) == VD_OK, "%s", err.text);
    cr_expect(v.outcome.challenge.end == VD_CHALLENGE_DECLINED && v.outcome.accepted);
    vd_buf_free(&changed);
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

static void swap_neighbours(json_t *list, size_t at) {
    json_t *item = json_incref(json_array_get(list, at));
    json_array_remove(list, at);
    json_array_insert_new(list, at + 1, item);
}

static void expect_every_statement_in_order(vd_buf note) {
    vd_key *referee = test_referee_key();
    json_t *whole = test_payload(&note);
    size_t count = json_array_size(evidence_of(whole));
    json_decref(whole);
    for (size_t i = 0; i < count; i++) {
        char what[96];
        json_t *root = test_payload(&note);
        json_array_remove(evidence_of(root), i);
        snprintf(what, sizeof what, "without statement %zu of %zu", i, count);
        expect_edit_refused(&note, referee, root, what);
        if (i + 1 == count)
            continue;
        root = test_payload(&note);
        swap_neighbours(evidence_of(root), i);
        snprintf(what, sizeof what, "statements %zu and %zu swapped", i, i + 1);
        expect_edit_refused(&note, referee, root, what);
    }
    vd_key_destroy(referee);
    vd_buf_free(&note);
}

Test(verdict, is_refused_with_any_statement_dropped_or_out_of_order) {
    expect_every_statement_in_order(make_verdict(1));
    expect_every_statement_in_order(make_upheld());
}

/* Removes what the verifier does not derive again: the cost, which the referee attests, and
 * sentences for people. */
static json_t *derived_of(json_t *payload) {
    json_t *predicate = predicate_of(payload), *outcome = json_object_get(predicate, "outcome");
    json_t *party;
    size_t i;
    json_object_del(predicate, "cost");
    json_array_foreach(json_object_get(outcome, "providers"), i, party)
        json_object_del(party, "reason");
    json_object_del(json_object_get(outcome, "challenge"), "reason");
    return payload;
}

static bool derived_is_the_same(const vd_buf *note, const vd_buf *changed) {
    json_t *a = derived_of(test_payload(note));
    json_t *b = derived_of(test_parse(changed->data, changed->size));
    bool same = b && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

/* A changed byte of the program may give an unknown operator, or exceed a limit. */
static void expect_not_held(const vd_buf *note, const char *what) {
    vd_verdict v;
    vd_err err = {0};
    const vd_status status = verify(note, NULL, &v, &err);
    cr_expect(status == VD_ERR_PEER || status == VD_ERR_VERSION, "%s: status %d %s", what, status,
              err.text);
}

/* Changes any byte of the payload, and signs it again. */
Test(verdict, is_refused_with_any_byte_of_its_payload_changed_though_signed_again) {
    vd_buf note = make_verdict(1), payload = test_dump(test_payload(&note));
    vd_key *referee = test_referee_key();
    uint64_t random = 7;
    for (int i = 0; i < 400; i++) {
        char what[48];
        vd_buf changed = copy_of(&payload), signed_note = {0};
        size_t at = test_random(&random) % payload.size;
        changed.data[at] ^= (uint8_t)(1u << test_random(&random) % 7);
        cr_assert(vd_note_sign(referee, VD_TYPE_VERDICT, changed.data, changed.size, &signed_note,
                               NULL) == VD_OK);
        snprintf(what, sizeof what, "byte %zu of the payload", at);
        if (!derived_is_the_same(&note, &changed))
            expect_not_held(&signed_note, what);
        vd_buf_free(&changed);
        vd_buf_free(&signed_note);
    }
    vd_key_destroy(referee);
    vd_buf_free(&payload);
    vd_buf_free(&note);
}

Test(verdict, has_as_many_bytes_as_its_games_allow_and_hearings_of_two_are_games) {
    vd_outcome o = {.party_count = 2};
    cr_expect(vd_verdict_bytes_of(&o) == vd_verdict_bytes_max(1));
    o.challenge.end = VD_CHALLENGE_CONFIRMED; /* there was no second hearing */
    cr_expect(vd_verdict_bytes_of(&o) == vd_verdict_bytes_max(1));
    o.challenge.end = VD_CHALLENGE_FAILED;
    cr_expect(vd_verdict_bytes_of(&o) == vd_verdict_bytes_max(2));
    o = (vd_outcome){.party_count = 3, .game_count = 5};
    cr_expect(vd_verdict_bytes_of(&o) == vd_verdict_bytes_max(5));
    /* The answers of two providers, each in base64 in a note, and the note in base64 in the
     * verdict. The limit also covers the largest program. */
    const size_t payloads = (size_t)2 * VD_GAME_ANSWER_BYTES / 9 * 16;
    const size_t program = (size_t)VD_PROGRAM_BYTES_MAX / 9 * 16;
    cr_expect(vd_verdict_bytes_max(1) - vd_verdict_bytes_max(0) > payloads + program);
    cr_expect(vd_verdict_bytes_max(0) > program);
}

/* As if this build knew the operator, since local runs may use one. */
Test(verdict, no_referee_judges_an_experimental_operator) {
    test_job job;
    vd_referee *referee = NULL;
    vd_buf payload = {0};
    vd_err err = {.text = "accepted"};
    vd_assignment a = {.provider_count = 2};
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    a.program = job.hash;
    for (int i = 0; i < 3; i++) {
        const uint8_t seed[32] = {(uint8_t)i};
        vd_key *key;
        cr_assert(vd_key_from_seed(seed, &key, &err) == VD_OK);
        vd_key_public(key, i < 2 ? &a.provider[i] : &a.referee);
        vd_key_destroy(key);
    }
    cr_assert(vd_assignment_write(&a, &payload, &err) == VD_OK, "%s", err.text);
    const vd_referee_options options = {
        .program = &job.program, .assignment = &payload, .leaf = vd_leaf_element};
    job.program.step.stored[7].op = RO_OP_EXPERIMENTAL;
    cr_expect(vd_referee_create(&options, &referee, &err) == VD_ERR_PEER);
    cr_expect(!referee && strstr(err.text, "step graph, node 7 ("), "%s", err.text);
    cr_expect(strstr(err.text, "operator 61440 is experimental (61440 to 65535): no program may"),
              "%s", err.text);
    vd_buf_free(&payload);
    test_job_close(&job);
}
