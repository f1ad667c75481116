#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

vd_key *test_referee_key(void) {
    uint8_t seed[32];
    vd_key *key;
    memset(seed, 0xee, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    return key;
}

/* ---- one dispute ---- */

typedef struct {
    test_dispute *d;
    vd_key *key;
    vd_buf assignment, assignment_note;
    vd_referee *referee;
} court;

static vd_hash job_hash(const test_dispute *d) {
    const vd_collection *many = d->collection;
    vd_hash out;
    if (!many)
        return d->job->hash;
    cr_assert(vd_collection_commit(many->count, &many->programs, &out));
    return out;
}

static void assign(court *c) {
    test_dispute *d = c->d;
    vd_assignment a = {.program = job_hash(d),
                       .nonce = {42},
                       .provider_count = 2,
                       .challenge = d->challenge,
                       .rounded = d->job && d->job->program.rounding.bits != 0};
    vd_key_public(c->key, &a.referee);
    for (int p = 0; p < 2; p++)
        vd_key_public(d->side[p]->key, &a.provider[p]);
    cr_assert(vd_assignment_write(&a, &c->assignment, NULL) == VD_OK);
    cr_assert(vd_assignment_hash(c->assignment.data, c->assignment.size, &d->assignment));
    cr_assert(vd_note_sign(c->key, VD_TYPE_ASSIGNMENT, c->assignment.data, c->assignment.size,
                           &c->assignment_note, NULL) == VD_OK);
}

static vd_leaf_fn leaf_of(const test_dispute *d) {
    return d->leaf ? d->leaf : vd_leaf_element;
}

static const vd_program *program_of(const test_dispute *d) {
    return d->job ? &d->job->program : NULL;
}

static void convene(court *c, test_dispute *d) {
    *c = (court){.d = d, .key = test_referee_key()};
    assign(c);
    vd_referee_options options = {.program = program_of(d),
                                  .collection = d->collection,
                                  .assignment = &c->assignment,
                                  .key = c->key,
                                  .leaf = leaf_of(d)};
    cr_assert(vd_referee_create(&options, &c->referee, NULL) == VD_OK);
}

static void adjourn(court *c) {
    vd_referee_destroy(c->referee);
    vd_buf_free(&c->assignment);
    vd_buf_free(&c->assignment_note);
    vd_key_destroy(c->key);
}

static vd_status answer(const test_dispute *d, uint32_t party, const vd_buf *request, vd_buf *note,
                        vd_err *err) {
    vd_working working;
    return d->desk[party]
               ? vd_desk_answer(d->desk[party], request->data, request->size, note, &working, err)
               : vd_provider_answer(d->side[party], request->data, request->size, note, err);
}

/* Asks a provider. Returns an empty buffer if it does not answer. */
static vd_buf ask(court *c, const vd_outgoing *q) {
    vd_buf request = {0}, note = {0};
    vd_err err = {0};
    cr_assert(vd_request_write(&c->assignment_note, q->note, &request, NULL) == VD_OK);
    vd_status status;
    while ((status = answer(c->d, q->party, &request, &note, &err)) == VD_ERR_IO)
        usleep(1000); /* its second run is not ready yet */
    if (status != VD_OK)
        note.size = 0;
    cr_assert(status == VD_OK || status == VD_ERR_TIMEOUT || q->whole_run || c->d->refused,
              "%s: %s", q->text, err.text);
    vd_buf_free(&request);
    if (c->d->transit)
        c->d->transit(c->d, q->party, q, &note);
    return note;
}

static void put_question(court *c, const vd_outgoing *q) {
    vd_buf note = ask(c, q);
    if (note.size)
        vd_referee_answer(c->referee, q->party, note.data, note.size);
    else
        vd_referee_no_answer(c->referee, q->party, "did not answer in time");
    vd_buf_free(&note);
}

static void play(court *c) {
    test_dispute *d = c->d;
    vd_outgoing q[VD_PARTIES_MAX];
    size_t count;
    while ((d->status = vd_referee_next(c->referee, q, &count, &d->err)) == VD_OK && count > 0) {
        d->rounds++;
        for (size_t i = 0; i < count; i++)
            put_question(c, &q[d->backwards ? count - 1 - i : i]);
    }
    d->outcome = *vd_referee_outcome(c->referee);
}

static void write_verdict(court *c) {
    test_dispute *d = c->d;
    vd_cost cost = {.bytes_in = 1,
                    .seconds = 0.5,
                    .level_seconds = {[VD_LEVEL_CLAIM] = 0.0625, [VD_LEVEL_STEP] = 0.25}};
    vd_public_key referee;
    vd_verdict verdict;
    vd_err err = {0};
    vd_key_public(c->key, &referee);
    vd_status status = vd_verdict_write(c->key, program_of(d), &c->assignment_note, c->referee,
                                        &cost, &d->verdict, &err);
    cr_assert(status == VD_OK, "%s", err.text);
    status = vd_verdict_verify(d->verdict.data, d->verdict.size, &referee, leaf_of(d), NULL, NULL,
                               &verdict, &err);
    cr_assert(status == VD_OK, "the verdict does not verify: %s", err.text);
    cr_assert(verdict.outcome.result == d->outcome.result);
}

void test_settle(test_dispute *d) {
    court c;
    convene(&c, d);
    play(&c);
    if (d->status == VD_OK)
        write_verdict(&c);
    adjourn(&c);
}

void test_dispute_close(test_dispute *d) {
    vd_buf_free(&d->verdict);
    d->verdict = (vd_buf){0};
}

void test_duel(test_dispute *d, const test_job *job, const vd_provider *honest,
               const vd_provider *liar, uint32_t liar_place) {
    *d = (test_dispute){.job = job};
    d->side[liar_place] = liar;
    d->side[1 - liar_place] = honest;
    test_settle(d);
}

/* ---- changing answers ---- */

json_t *test_parse(const void *text, size_t size) {
    return json_loadb(text, size, 0, NULL);
}

vd_buf test_dump(json_t *root) {
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    vd_buf out = {0};
    cr_assert(text);
    vd_put(&out, text, strlen(text));
    free(text);
    json_decref(root);
    return out;
}

json_t *test_payload(const vd_buf *note) {
    vd_buf payload = {0};
    json_t *envelope = test_parse(note->data, note->size);
    const char *text = json_string_value(json_object_get(envelope, "payload"));
    cr_assert(text && vd_unbase64(text, strlen(text), &payload, NULL) == VD_OK);
    json_t *root = test_parse(payload.data, payload.size);
    cr_assert(root);
    json_decref(envelope);
    vd_buf_free(&payload);
    return root;
}

json_t *test_answer_body(const vd_buf *note) {
    json_t *root = test_payload(note), *body = json_incref(json_object_get(root, "answer"));
    json_decref(root);
    return body;
}

void test_resign(test_dispute *d, uint32_t party, const vd_outgoing *question, json_t *body,
                 vd_buf *note) {
    note->size = 0;
    cr_assert(vd_answer_write(d->side[party]->key, &d->assignment, &question->question, body, note,
                              NULL) == VD_OK);
    json_decref(body);
}

static size_t payload_size(const vd_buf *note) {
    vd_buf payload = test_dump(test_payload(note));
    const size_t size = payload.size;
    vd_buf_free(&payload);
    return size;
}

static void restate(const vd_key *key, const vd_hash *assignment, const vd_outgoing *question,
                    json_t *body, vd_buf *note) {
    note->size = 0;
    cr_assert(vd_answer_write(key, assignment, &question->question, body, note, NULL) == VD_OK);
}

void test_pad(const vd_key *key, const vd_hash *assignment, const vd_outgoing *question,
              size_t more, vd_buf *note) {
    /* A note's limit follows from its payload's, in base64. */
    const size_t most = (question->answer_max - VD_ANSWER_SPARE) / 4 * 3 - (more ? 0 : 2) + more;
    json_t *body = test_answer_body(note);
    json_object_set_new(body, "padding", json_string(""));
    restate(key, assignment, question, body, note);
    const size_t left = most - payload_size(note);
    char *padding = malloc(left + 1);
    cr_assert(padding && left < question->answer_max);
    memset(padding, 'x', left);
    padding[left] = 0;
    json_object_set_new(body, "padding", json_string(padding));
    restate(key, assignment, question, body, note);
    free(padding);
    json_decref(body);
}

/* ---- expectations ---- */

static void expect_honest_stands(const test_dispute *d, uint32_t liar, const char *what) {
    const struct vd_party_outcome *honest = &d->outcome.party[1 - liar];
    cr_assert(d->status == VD_OK, "%s: %s", what, d->err.text);
    cr_expect(honest->standing == VD_STANDS, "%s: honest one lost: %s", what, honest->reason);
    cr_expect(d->outcome.accepted && honest->claimed &&
                  vd_hash_equal(&d->outcome.run_root, &honest->run_root),
              "%s: the honest claim is not accepted", what);
}

void test_expect_convicted(const test_dispute *d, uint32_t liar, vd_grade grade, const char *what) {
    const struct vd_party_outcome *party = &d->outcome.party[liar];
    expect_honest_stands(d, liar, what);
    cr_expect(d->outcome.result == VD_RESULT_CONVICTED, "%s: %s", what,
              vd_result_name(d->outcome.result));
    cr_expect(party->standing == VD_CONVICTED && party->grade == grade,
              "%s: expected %s, got %s: %s", what, vd_grade_name(grade),
              vd_grade_name(party->grade), party->reason);
}

void test_expect_forfeited(const test_dispute *d, uint32_t liar, const char *what) {
    const struct vd_party_outcome *party = &d->outcome.party[liar];
    expect_honest_stands(d, liar, what);
    cr_expect(d->outcome.result == VD_RESULT_FORFEIT, "%s: %s", what,
              vd_result_name(d->outcome.result));
    cr_expect(party->standing == VD_FORFEITED && party->grade == VD_GRADE_TIMEOUT, "%s: got %s: %s",
              what, vd_grade_name(party->grade), party->reason);
}

void test_expect_place(const test_dispute *d, int64_t step, int64_t node, const char *what) {
    cr_expect(d->outcome.place.step == step, "%s: expected step %lld, got %lld", what,
              (long long)step, (long long)d->outcome.place.step);
    cr_expect(d->outcome.place.node == node, "%s: expected node %lld, got %lld (%s)", what,
              (long long)node, (long long)d->outcome.place.node, d->outcome.place.node_name);
}
