#include "tests/support/audit.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    test_audit *a;
    vd_key *key;
    vd_buf payload, note; /* of the assignment */
} checker;

static vd_status secret(void *user, uint64_t crumb, uint8_t bytes[VD_HASH_SIZE], vd_err *err) {
    test_audit *a = user;
    (void)crumb;
    (void)err;
    a->before = a->seed;
    for (int i = 0; i < VD_HASH_SIZE; i++)
        bytes[i] = (uint8_t)test_random(&a->seed);
    return VD_OK;
}

static checker assign(test_audit *a) {
    checker c = {.a = a, .key = test_referee_key()};
    vd_assignment x = {.program = a->side->program_hash,
                       .nonce = {42},
                       .provider_count = 1,
                       .audit = true,
                       .beacon_source = "test",
                       .beacon_round = 7};
    vd_key_public(c.key, &x.referee);
    vd_key_public(a->side->key, &x.provider[0]);
    cr_assert(vd_assignment_write(&x, &c.payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(c.key, VD_TYPE_ASSIGNMENT, c.payload.data, c.payload.size, &c.note,
                           NULL) == VD_OK);
    return c;
}

static void dismiss(checker *c) {
    vd_buf_free(&c->payload);
    vd_buf_free(&c->note);
    vd_key_destroy(c->key);
}

/* Asks the provider. Returns an empty buffer if it does not answer. */
static vd_buf ask(const checker *c, const vd_outgoing *q) {
    test_audit *a = c->a;
    vd_buf request = {0}, note = {0};
    vd_err err = {0};
    cr_assert(vd_request_write(&c->note, q->note, &request, NULL) == VD_OK);
    if (a->says) {
        if (!a->says(a, q, &request, &note))
            note.size = 0;
    } else {
        vd_status status = vd_provider_answer(a->side, request.data, request.size, &note, &err);
        cr_assert(status == VD_OK || status == VD_ERR_TIMEOUT, "%s: %s", q->text, err.text);
        note.size = status == VD_OK ? note.size : 0;
    }
    cr_assert(note.size <= q->answer_max, "%s", q->text);
    vd_buf_free(&request);
    return note;
}

static void prove(const checker *c, const vd_referee *referee, const vd_crumb *place) {
    const vd_cost cost = {.bytes_in = 1};
    test_audit *a = c->a;
    vd_err err = {0};
    vd_verdict verdict;
    a->place = *place;
    cr_assert(vd_fraud_write(c->key, a->side->program, &c->note, referee, place, &cost, &a->proof,
                             &err) == VD_OK,
              "%s", err.text);
    cr_assert(vd_verdict_verify(a->proof.data, a->proof.size, NULL, vd_leaf_element, NULL, NULL,
                                &verdict, &err) == VD_OK,
              "%s", err.text);
    cr_assert(verdict.fraud && verdict.outcome.result == VD_RESULT_CONVICTED);
    cr_assert(!verdict.outcome.accepted);
    a->outcome = verdict.outcome;
}

static void put(const checker *c, vd_audit *x, const vd_outgoing *q) {
    vd_buf note = ask(c, q);
    if (note.size)
        vd_audit_answer(x, note.data, note.size);
    else
        vd_audit_no_answer(x, "did not answer in time");
    vd_buf_free(&note);
}

static void take_results(test_audit *a, const vd_audit *x) {
    a->result = *vd_audit_results(x);
    for (uint32_t i = 0; i < a->result.step_count && i < 16; i++)
        a->step[i] = a->result.step[i].step;
    a->result.step = NULL;
}

void test_audit_play(test_audit *a) {
    checker c = assign(a);
    vd_audit *x = NULL;
    vd_outgoing q;
    vd_err err = {0};
    const vd_audit_options options = {.program = a->side->program,
                                      .assignment = &c.payload,
                                      .key = c.key,
                                      .leaf = vd_leaf_element,
                                      .steps = a->steps,
                                      .crumbs = a->crumbs,
                                      .random = secret,
                                      .user = a,
                                      .known = a->known};
    cr_assert(vd_audit_create(&options, &x, &err) == VD_OK, "%s", err.text);
    do {
        cr_assert(vd_audit_next(x, &a->state, &q, &err) == VD_OK, "%s", err.text);
        if (a->state == VD_AUDIT_WAITS)
            cr_assert(vd_audit_beacon(x, &a->beacon, 1, &err) == VD_OK, "%s", err.text);
        else if (a->state == VD_AUDIT_ASKS)
            put(&c, x, &q);
    } while (a->state <= VD_AUDIT_WAITS);
    take_results(a, x);
    if (a->state == VD_AUDIT_FRAUD)
        prove(&c, vd_audit_referee(x), vd_audit_place(x));
    vd_audit_destroy(x);
    dismiss(&c);
}

vd_result test_audit_place(test_audit *a, const vd_crumb *place) {
    checker c = assign(a);
    vd_outgoing q[VD_PARTIES_MAX];
    size_t count;
    vd_err err = {0};
    vd_referee *referee;
    const vd_referee_options options = {.program = a->side->program,
                                        .assignment = &c.payload,
                                        .key = c.key,
                                        .leaf = vd_leaf_element};
    cr_assert(vd_crumb_open(&options, place, &referee, &err) == VD_OK, "%s", err.text);
    while (vd_referee_next(referee, q, &count, &err) == VD_OK && count > 0) {
        vd_buf note = ask(&c, &q[0]);
        if (note.size)
            vd_referee_answer(referee, 0, note.data, note.size);
        else
            vd_referee_no_answer(referee, 0, "did not answer in time");
        vd_buf_free(&note);
    }
    cr_assert(err.status == VD_OK, "%s", err.text);
    const vd_result result = vd_referee_outcome(referee)->result;
    if (result == VD_RESULT_CONVICTED)
        prove(&c, referee, place);
    vd_referee_destroy(referee);
    dismiss(&c);
    return result;
}

void test_audit_close(test_audit *a) {
    vd_buf_free(&a->proof);
}
