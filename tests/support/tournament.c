#include "tests/support/tournament.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A question that was asked, without the number of the game. */
typedef struct {
    uint32_t provider;
    vd_buf question;
} asked;

typedef struct {
    test_tournament *t;
    vd_key *key;
    vd_buf assignment, note;
    vd_tournament *tournament;
    asked *answered;
    size_t answers;
} hall;

static vd_leaf_fn leaf_of(const test_tournament *t) {
    return t->leaf ? t->leaf : vd_leaf_element;
}

static void assign(hall *h) {
    test_tournament *t = h->t;
    vd_assignment a = {.program = t->job->hash,
                       .nonce = {42},
                       .provider_count = t->count,
                       .challenge = t->challenge,
                       .rounded = t->job->program.rounding.bits != 0};
    vd_key_public(h->key, &a.referee);
    for (uint32_t p = 0; p < t->count; p++)
        vd_key_public(t->side[p]->key, &a.provider[p]);
    cr_assert(vd_assignment_write(&a, &h->assignment, NULL) == VD_OK);
    cr_assert(vd_assignment_hash(h->assignment.data, h->assignment.size, &t->assignment));
    cr_assert(vd_note_sign(h->key, VD_TYPE_ASSIGNMENT, h->assignment.data, h->assignment.size,
                           &h->note, NULL) == VD_OK);
}

static void note_answered(hall *h, uint32_t provider, const vd_outgoing *q) {
    json_t *question = test_payload(q->note);
    json_object_del(question, "game");
    vd_buf text = test_dump(question);
    for (size_t i = 0; i < h->answers; i++)
        cr_assert(h->answered[i].provider != provider ||
                      h->answered[i].question.size != text.size ||
                      memcmp(h->answered[i].question.data, text.data, text.size) != 0,
                  "provider %u is asked again: %.*s", provider, (int)text.size, text.data);
    cr_assert(h->answers < TEST_QUESTIONS_MAX);
    h->answered[h->answers++] = (asked){provider, text};
}

/* Asks a provider. Returns an empty buffer if it does not answer. */
static vd_buf ask(hall *h, uint32_t provider, const vd_outgoing *q) {
    test_tournament *t = h->t;
    vd_buf request = {0}, note = {0};
    vd_err err = {0};
    vd_status status;
    cr_assert(vd_request_write(&h->note, q->note, &request, NULL) == VD_OK);
    while ((status = vd_provider_answer(t->side[provider], request.data, request.size, &note,
                                        &err)) == VD_ERR_IO)
        usleep(1000); /* its second run is not ready yet */
    if (status != VD_OK)
        note.size = 0;
    cr_assert(status == VD_OK || status == VD_ERR_TIMEOUT || q->whole_run, "provider %u, %s: %s",
              provider, q->text, err.text);
    vd_buf_free(&request);
    if (t->gate)
        t->gate(t, provider, q, &note);
    t->asked[provider]++;
    t->bytes += note.size;
    return note;
}

static void put_question(hall *h, const vd_sitting *s, const vd_outgoing *q) {
    const uint32_t provider = s->provider[q->party];
    vd_buf note = ask(h, provider, q);
    if (note.size) {
        note_answered(h, provider, q);
        vd_referee_answer(s->referee, q->party, note.data, note.size);
    } else {
        vd_referee_no_answer(s->referee, q->party, "did not answer in time");
    }
    vd_buf_free(&note);
}

static void sit(hall *h, const vd_sitting *s) {
    test_tournament *t = h->t;
    vd_outgoing q[VD_PARTIES_MAX];
    size_t count;
    while ((t->status = vd_referee_next(s->referee, q, &count, &t->err)) == VD_OK && count > 0)
        for (size_t i = 0; i < count; i++)
            put_question(h, s, &q[t->backwards ? count - 1 - i : i]);
}

static void hold(hall *h) {
    test_tournament *t = h->t;
    vd_sitting s[VD_PARTIES_MAX];
    size_t count;
    while ((t->status = vd_tournament_next(h->tournament, s, &count, &t->err)) == VD_OK &&
           count > 0)
        for (size_t i = 0; i < count; i++) {
            sit(h, &s[t->backwards ? count - 1 - i : i]);
            if (t->status != VD_OK)
                return;
        }
}

static void write_verdict(hall *h) {
    test_tournament *t = h->t;
    vd_cost cost = {.bytes_in = 1,
                    .seconds = 0.5,
                    .level_seconds = {[VD_LEVEL_CLAIM] = 0.0625, [VD_LEVEL_STEP] = 0.25}};
    vd_public_key referee;
    vd_verdict verdict;
    vd_err err = {0};
    vd_key_public(h->key, &referee);
    vd_status status = vd_verdict_write_many(h->key, &t->job->program, &h->note, h->tournament,
                                             &cost, &t->verdict, &err);
    cr_assert(status == VD_OK, "%s", err.text);
    status = vd_verdict_verify(t->verdict.data, t->verdict.size, &referee, leaf_of(t), NULL, NULL,
                               &verdict, &err);
    cr_assert(status == VD_OK, "the verdict does not verify: %s", err.text);
    cr_assert(verdict.outcome.result == t->outcome.result);
    vd_verdict_free(&verdict);
}

void test_hold(test_tournament *t) {
    hall h = {.t = t, .key = test_referee_key()};
    h.answered = calloc(TEST_QUESTIONS_MAX, sizeof *h.answered);
    cr_assert(h.answered);
    assign(&h);
    const vd_referee_options options = {.program = &t->job->program,
                                        .assignment = &h.assignment,
                                        .key = h.key,
                                        .leaf = leaf_of(t),
                                        .story = t->story,
                                        .user = t->user};
    cr_assert(vd_tournament_create(&options, &h.tournament, NULL) == VD_OK);
    hold(&h);
    cr_assert(vd_outcome_copy(vd_tournament_outcome(h.tournament), &t->outcome, NULL) == VD_OK);
    if (t->status == VD_OK)
        write_verdict(&h);
    vd_tournament_destroy(h.tournament);
    for (size_t i = 0; i < h.answers; i++)
        vd_buf_free(&h.answered[i].question);
    free(h.answered);
    vd_buf_free(&h.assignment);
    vd_buf_free(&h.note);
    vd_key_destroy(h.key);
}

void test_tournament_close(test_tournament *t) {
    vd_outcome_free(&t->outcome);
    vd_buf_free(&t->verdict);
    t->verdict = (vd_buf){0};
}

void test_state(const test_tournament *t, uint32_t provider, const vd_outgoing *question,
                json_t *body, vd_buf *note) {
    note->size = 0;
    cr_assert(vd_answer_write(t->side[provider]->key, &t->assignment, &question->question, body,
                              note, NULL) == VD_OK);
    json_decref(body);
}

void test_expect_accepted(const test_tournament *t, uint32_t honest, const char *what) {
    const struct vd_party_outcome *party = &t->outcome.party[honest];
    cr_assert(t->status == VD_OK, "%s: %s", what, t->err.text);
    cr_expect(party->standing == VD_STANDS, "%s: honest one lost: %s", what, party->reason);
    cr_expect(t->outcome.accepted && party->claimed &&
                  vd_hash_equal(&t->outcome.run_root, &party->run_root),
              "%s: the honest claim is not accepted (%s)", what, vd_result_name(t->outcome.result));
}

void test_expect_fallen(const test_tournament *t, uint32_t provider, vd_grade grade,
                        const char *what) {
    const struct vd_party_outcome *party = &t->outcome.party[provider];
    cr_expect(party->grade == grade && party->standing != VD_STANDS,
              "%s: provider %u: expected %s, got %s: %s", what, provider, vd_grade_name(grade),
              vd_grade_name(party->grade), party->reason);
}
