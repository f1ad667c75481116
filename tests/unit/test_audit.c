/* An audit of one provider: honest ones pass, whatever is drawn; liars are convicted by their own
 * statements, and the proof holds. PROTOCOL.md section 13. */
#include "tests/support/dispute.h"
#include "verde/protocol/audit.h"
#include "verde/protocol/verdict.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const vd_provider *side;
    uint32_t steps, crumbs;
    uint64_t seed; /* of the secrets */
    uint8_t beacon;
    bool silent_at_trace, again;
    /* set by play */
    vd_audit_state state;
    vd_audit_result result;
    vd_crumb place;
    vd_outcome outcome;
    vd_buf proof;
} audit;

static bool secret(void *user, uint8_t bytes[VD_HASH_SIZE]) {
    audit *a = user;
    for (int i = 0; i < VD_HASH_SIZE; i++)
        bytes[i] = (uint8_t)test_random(&a->seed);
    return true;
}

static void assign(const audit *a, const vd_key *key, vd_buf *payload, vd_buf *note) {
    vd_assignment x = {.program = a->side->program_hash,
                       .nonce = {42},
                       .provider_count = 1,
                       .audit = true,
                       .beacon_source = "test",
                       .beacon_round = 7};
    vd_key_public(key, &x.referee);
    vd_key_public(a->side->key, &x.provider[0]);
    cr_assert(vd_assignment_write(&x, payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(key, VD_TYPE_ASSIGNMENT, payload->data, payload->size, note, NULL) ==
              VD_OK);
}

static void put(const audit *a, vd_audit *x, const vd_buf *assignment, const vd_outgoing *q) {
    vd_buf request = {0}, note = {0};
    vd_err err = {0};
    cr_assert(vd_request_write(assignment, q->note, &request, NULL) == VD_OK);
    if (a->silent_at_trace && strstr(q->text, "trace")) {
        vd_audit_no_answer(x, "did not answer in time");
    } else {
        cr_assert(vd_provider_answer(a->side, request.data, request.size, &note, &err) == VD_OK,
                  "%s: %s", q->text, err.text);
        cr_assert(note.size <= q->answer_max);
        vd_audit_answer(x, note.data, note.size);
    }
    vd_buf_free(&request);
    vd_buf_free(&note);
}

static void prove(audit *a, const vd_audit *x, const vd_key *key, const vd_buf *assignment) {
    const vd_cost cost = {.bytes_in = 1};
    vd_err err = {0};
    vd_verdict verdict;
    a->place = *vd_audit_place(x);
    cr_assert(vd_fraud_write(key, a->side->program, assignment, vd_audit_referee(x), &a->place,
                             &cost, &a->proof, &err) == VD_OK,
              "%s", err.text);
    cr_assert(vd_verdict_verify(a->proof.data, a->proof.size, NULL, vd_leaf_element, NULL, NULL,
                                &verdict, &err) == VD_OK,
              "%s", err.text);
    cr_assert(verdict.fraud && verdict.outcome.result == VD_RESULT_CONVICTED);
    cr_assert(!verdict.outcome.accepted);
    a->outcome = verdict.outcome;
}

static void play(audit *a) {
    vd_key *key = test_referee_key();
    vd_buf payload = {0}, note = {0};
    vd_audit *x = NULL;
    vd_outgoing q;
    vd_err err = {0};
    assign(a, key, &payload, &note);
    const vd_audit_options options = {.program = a->side->program,
                                      .assignment = &payload,
                                      .key = key,
                                      .leaf = vd_leaf_element,
                                      .steps = a->steps,
                                      .crumbs = a->crumbs,
                                      .random = secret,
                                      .user = a};
    cr_assert(vd_audit_create(&options, &x, &err) == VD_OK, "%s", err.text);
    do {
        cr_assert(vd_audit_next(x, &a->state, &q, &err) == VD_OK, "%s", err.text);
        if (a->state == VD_AUDIT_WAITS)
            cr_assert(vd_audit_beacon(x, &a->beacon, 1, &err) == VD_OK, "%s", err.text);
        else if (a->state == VD_AUDIT_ASKS)
            put(a, x, &note, &q);
    } while (a->state <= VD_AUDIT_WAITS);
    a->result = *vd_audit_results(x);
    a->result.step = NULL;
    if (a->state == VD_AUDIT_FRAUD)
        prove(a, x, key, &note);
    vd_audit_destroy(x);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

/* ---- honest ---- */

Test(audit, an_honest_provider_passes_whatever_is_drawn) {
    static const vd_model_kind kinds[] = {VD_MODEL_MLP, VD_MODEL_GPT2};
    static const int64_t intervals[] = {1, 3};
    for (size_t k = 0; k < 4; k++) {
        test_job job;
        test_provider p;
        test_job_open(&job, kinds[k / 2], 3, intervals[k % 2]);
        test_provider_open(&p, &job, 1, NULL);
        audit a = {.side = &p.side, .steps = 4, .crumbs = 60, .seed = k};
        play(&a);
        cr_assert(a.state == VD_AUDIT_PASSED, "%zu: %s", k, a.result.why);
        cr_assert_eq(a.result.crumbs + a.result.whole > 60, true);
        cr_assert_eq(a.result.step_count, 4);
        cr_assert_eq(a.result.seams, 4 * job.program.leaf_count);
        test_provider_close(&p);
        test_job_close(&job);
    }
}

Test(audit, long_folds_are_checked_by_a_part) {
    test_job job;
    test_provider p;
    test_job_open_folds(&job, 1, 2000, 3);
    test_provider_open(&p, &job, 1, NULL);
    audit a = {.side = &p.side, .steps = 2, .crumbs = 200, .seed = 9};
    play(&a);
    cr_assert(a.state == VD_AUDIT_PASSED, "%s", a.result.why);
    cr_assert(a.result.parts > 10, "%llu", (unsigned long long)a.result.parts);
    test_provider_close(&p);
    test_job_close(&job);
}

Test(audit, operators_that_no_model_uses) {
    test_job job;
    test_provider p;
    test_job_open_operators(&job, 2);
    test_provider_open(&p, &job, 1, NULL);
    audit a = {.side = &p.side, .steps = 3, .crumbs = 400, .seed = 5};
    play(&a);
    cr_assert(a.state == VD_AUDIT_PASSED, "%s", a.result.why);
    test_provider_close(&p);
    test_job_close(&job);
}

/* ---- liars ---- */

static const struct {
    const char *fault;
    vd_lie lie;
    vd_audit_state state;
    const char *why;
} liars[] = {
    {"lr@1", VD_LIE_NONE, VD_AUDIT_FRAUD, "wrong-graph"},
    {"skip@1", VD_LIE_NONE, VD_AUDIT_FRAUD, "contradiction"},
    {NULL, VD_LIE_PROOF, VD_AUDIT_FRAUD, "bad-proof"},
    {NULL, VD_LIE_SILENCE, VD_AUDIT_SILENT, "timeout"},
    {NULL, VD_LIE_CONTRADICT, VD_AUDIT_FRAUD, ""},
};

Test(audit, liars_are_convicted_by_their_own_statements) {
    for (size_t i = 0; i < sizeof liars / sizeof *liars; i++) {
        test_job job;
        test_provider p;
        test_job_open(&job, VD_MODEL_MLP, 3, 3);
        vd_fault fault = {0};
        if (liars[i].fault)
            fault = test_fault(&job, liars[i].fault);
        test_provider_open(&p, &job, 2, liars[i].fault ? &fault : NULL);
        p.side.lie = liars[i].lie;
        audit a = {.side = &p.side, .steps = 4, .crumbs = 400, .seed = i};
        if (liars[i].lie == VD_LIE_SILENCE) {
            p.side.lie = VD_LIE_NONE;
            a.silent_at_trace = true;
        }
        play(&a);
        cr_assert(a.state == liars[i].state && strncmp(a.result.why, liars[i].why, strlen(liars[i].why)) == 0, "%zu: %d, %s", i,
                  a.state, a.result.why);
        vd_buf_free(&a.proof);
        test_provider_close(&p);
        test_job_close(&job);
    }
}
