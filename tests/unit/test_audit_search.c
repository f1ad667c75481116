/* Searches between two different states for the place where a crumb shows the fault. PROTOCOL.md
 * section 13.8. */
#include "repops/op_product.h"
#include "tests/support/audit.h"
#include "verde/protocol/audit_search.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- asking a provider, under an assignment like test_audit_place's ---- */

typedef struct {
    const vd_provider *side;
    vd_key *key;
    vd_buf assignment;
    vd_audit_line line;
} caller;

static vd_status ask(void *user, const vd_outgoing *q, vd_buf *note, vd_err *err) {
    const caller *c = user;
    vd_buf request = {0};
    cr_assert(vd_request_write(&c->assignment, q->note, &request, NULL) == VD_OK);
    const vd_status status = vd_provider_answer(c->side, request.data, request.size, note, err);
    vd_buf_free(&request);
    return status;
}

static void call(caller *c, const vd_provider *side) {
    vd_assignment a = {.program = side->program_hash,
                       .nonce = {42},
                       .provider_count = 1,
                       .audit = true,
                       .beacon_source = "test",
                       .beacon_round = 7};
    vd_buf payload = {0};
    *c = (caller){.side = side, .key = test_referee_key()};
    vd_key_public(c->key, &a.referee);
    vd_key_public(side->key, &a.provider[0]);
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    cr_assert(vd_note_sign(c->key, VD_TYPE_ASSIGNMENT, payload.data, payload.size, &c->assignment,
                           NULL) == VD_OK);
    c->line = (vd_audit_line){.program = side->program,
                              .program_hash = side->program_hash,
                              .run_root = side->source.run_root,
                              .provider = a.provider[0],
                              .key = c->key,
                              .ask = ask,
                              .user = c};
    cr_assert(vd_assignment_hash(payload.data, payload.size, &c->line.assignment));
    vd_buf_free(&payload);
}

static void hang_up(caller *c) {
    vd_buf_free(&c->assignment);
    vd_key_destroy(c->key);
}

/* ---- search results ---- */

static void expect(const test_job *job, const vd_fault *fault, int64_t from, int64_t to,
                   vd_grade grade, const vd_crumb *where) {
    test_provider honest, liar;
    caller c;
    vd_crumb place;
    vd_err err = {0};
    test_provider_open(&honest, job, 1, NULL);
    test_provider_open(&liar, job, 2, fault);
    call(&c, &liar.side);
    const vd_status status = vd_search_place(&c.line, &honest.side.source, from, to, &place, &err);
    cr_assert(status == VD_OK, "%d@%lld: %s, step %lld", fault->kind, (long long)fault->step,
              err.text, (long long)place.step);
    cr_assert(place.step == where->step && place.node == where->node &&
                  place.element == where->element && place.part == where->part,
              "step %lld, node %lld, element %lld, part %lld", (long long)place.step,
              (long long)place.node, (long long)place.element, (long long)place.part);
    test_audit a = {.side = &liar.side};
    cr_assert_eq(test_audit_place(&a, &place), VD_RESULT_CONVICTED);
    cr_assert_eq(a.outcome.party[0].grade, grade);
    test_audit_close(&a);
    hang_up(&c);
    test_provider_close(&liar);
    test_provider_close(&honest);
}

Test(audit_search, the_first_wrong_element_is_found) {
    test_job job;
    test_job_open(&job, VD_MODEL_MLP, 4, 4);
    vd_fault element = test_fault(&job, "element@2:adamw.layer.1.bias.m");
    element.element = 200;
    const vd_crumb there = {
        .step = 2, .node = element.node, .element = 200, .count = 1, .part = -1};
    expect(&job, &element, 0, 4, VD_GRADE_WRONG_OUTPUT, &there);
    const vd_fault rate = test_fault(&job, "lr@1");
    const vd_crumb schedule = {.step = 1, .node = rate.node, .count = 1, .part = -1};
    expect(&job, &rate, 0, 4, VD_GRADE_WRONG_GRAPH, &schedule);
    const vd_fault weights = test_fault(&job, "weights");
    const vd_crumb first = {.step = -1, .node = weights.node, .count = 1, .part = -1};
    expect(&job, &weights, -1, 0, VD_GRADE_WRONG_OUTPUT, &first);
    test_job_close(&job);
}

/* A correct trace that leads to another state: the caller has to check its seams. */
Test(audit_search, a_step_left_out_is_a_seam) {
    test_job job;
    test_job_open(&job, VD_MODEL_MLP, 4, 4);
    const vd_fault skip = test_fault(&job, "skip@1");
    const vd_crumb seam = {.step = 1, .node = -1, .part = -1};
    test_provider honest, liar;
    caller c;
    vd_crumb place;
    vd_err err = {0};
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &skip);
    call(&c, &liar.side);
    cr_assert(vd_search_place(&c.line, &honest.side.source, 0, 4, &place, &err) == VD_OK);
    cr_assert(place.step == seam.step && place.node == seam.node);
    place.leaf_count = job.program.leaf_count;
    test_audit a = {.side = &liar.side};
    cr_assert_eq(test_audit_place(&a, &place), VD_RESULT_CONVICTED);
    cr_assert_eq(a.outcome.party[0].grade, VD_GRADE_CONTRADICTION);
    test_audit_close(&a);
    hang_up(&c);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}

/* The parts are right, but the last one does not give the element. */
Test(audit_search, a_wrong_sum_is_found) {
    test_job job;
    test_job_open_folds(&job, 2, 2000, 3);
    const uint32_t node = test_node(&job, 1, RO_OP_MATMUL);
    const vd_fault element = {VD_FAULT_ELEMENT, 1, node, 5, 20};
    const vd_crumb there = {.step = 1, .node = node, .element = 5, .count = 1, .part = 0};
    expect(&job, &element, 0, 2, VD_GRADE_WRONG_OUTPUT, &there);
    test_job_close(&job);
}

/* ---- states ---- */

static vd_status put(void *user, const void *bytes, size_t size, vd_err *err) {
    (void)err;
    vd_put(user, bytes, size);
    return VD_OK;
}

/* The bytes are those of the state's file: little-endian, in the layout's order. */
Test(audit_search, a_state_is_fetched_whole) {
    test_job job;
    test_provider p;
    caller c;
    vd_buf got = {0}, stored = {0};
    vd_hash before, after;
    char path[1024];
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    test_provider_open(&p, &job, 1, NULL);
    call(&c, &p.side);
    cr_assert(vd_search_ends(&c.line, 2, &before, &after, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_search_state(&c.line, 2, put, &got, &err) == VD_OK, "%s", err.text);
    vd_store_state_path(path, p.dir, &before);
    cr_assert(vd_read_file(path, 1 << 24, &stored, &err) == VD_OK, "%s", err.text);
    cr_assert(got.size == stored.size && memcmp(got.data, stored.data, got.size) == 0);
    vd_buf_free(&got);
    vd_buf_free(&stored);
    hang_up(&c);
    test_provider_close(&p);
    test_job_close(&job);
}

Test(audit_search, lies_are_the_providers) {
    test_job job;
    test_provider p;
    caller c;
    vd_hash before, after;
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    test_provider_open(&p, &job, 1, NULL);
    p.side.lie = VD_LIE_PROOF;
    call(&c, &p.side);
    cr_assert(vd_search_ends(&c.line, 2, &before, &after, &err) == VD_ERR_PEER);
    c.line.run_root.b[0] ^= 1;
    p.side.lie = VD_LIE_NONE;
    cr_assert(vd_search_ends(&c.line, 2, &before, &after, &err) == VD_ERR_PEER);
    hang_up(&c);
    test_provider_close(&p);
    test_job_close(&job);
}
