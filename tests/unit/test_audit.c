/* Audits of one provider: honest ones pass, whatever is drawn; liars are convicted by their own
 * statements, and the proof holds. PROTOCOL.md section 13. */
#include "repops/op_product.h"
#include "tests/support/audit.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- honest providers ---- */

Test(audit, an_honest_provider_passes_whatever_is_drawn) {
    static const vd_model_kind kinds[] = {VD_MODEL_MLP, VD_MODEL_GPT2};
    static const int64_t intervals[] = {1, 3};
    for (size_t k = 0; k < 4; k++) {
        test_job job;
        test_provider p;
        test_job_open(&job, kinds[k / 2], 3, intervals[k % 2]);
        test_provider_open(&p, &job, 1, NULL);
        test_audit a = {.side = &p.side, .steps = 4, .crumbs = 60, .seed = k};
        test_audit_play(&a);
        cr_assert(a.state == VD_AUDIT_PASSED, "%zu: %s", k, a.result.why);
        cr_assert_eq(a.result.crumbs, 60);
        cr_assert(a.result.whole > 0);
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
    test_audit a = {.side = &p.side, .steps = 2, .crumbs = 200, .seed = 9};
    test_audit_play(&a);
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
    test_audit a = {.side = &p.side, .steps = 3, .crumbs = 400, .seed = 5};
    test_audit_play(&a);
    cr_assert(a.state == VD_AUDIT_PASSED, "%s", a.result.why);
    test_provider_close(&p);
    test_job_close(&job);
}

/* An audit continued after a stop: the rest is the same. */
Test(audit, places_that_are_known_are_not_asked_about) {
    test_job job;
    test_provider p;
    test_job_open(&job, VD_MODEL_MLP, 3, 1);
    test_provider_open(&p, &job, 1, NULL);
    test_audit all = {.side = &p.side, .steps = 3, .crumbs = 60, .seed = 4};
    test_audit_play(&all);
    const uint64_t places = (uint64_t)all.result.crumbs + all.result.whole + 3;
    for (uint64_t known = 1; known <= places; known += places / 2) {
        test_audit a = {.side = &p.side, .steps = 3, .crumbs = 60, .seed = 4, .known = known};
        test_audit_play(&a);
        cr_assert(a.state == VD_AUDIT_PASSED, "%s", a.result.why);
        cr_assert(a.result.crumbs == 60 && a.result.whole == all.result.whole &&
                  a.result.nodes == all.result.nodes && a.result.seams == all.result.seams);
        cr_assert(a.result.questions < all.result.questions);
    }
    test_provider_close(&p);
    test_job_close(&job);
}

/* The provider uses what it computed for one node to answer for later nodes. */
Test(audit, a_provider_executes_few_steps_for_many_nodes) {
    test_job job;
    test_provider p;
    test_job_open(&job, VD_MODEL_GPT2, 3, 1);
    test_provider_open(&p, &job, 1, NULL);
    test_audit a = {.side = &p.side, .steps = 3, .crumbs = 300, .seed = 4};
    test_audit_play(&a);
    cr_assert(a.state == VD_AUDIT_PASSED, "%s", a.result.why);
    const uint64_t executed = vd_replay_executed(p.replay);
    cr_assert(executed > 0 && executed <= 3 * 6, "%llu", (unsigned long long)executed);
    cr_assert(a.result.nodes > 100);
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
    {NULL, VD_LIE_SILENCE, VD_AUDIT_SILENT, "did not answer in time"},
    {NULL, VD_LIE_CONTRADICT, VD_AUDIT_FRAUD, "contradiction"},
    {"poison@1", VD_LIE_NONE, VD_AUDIT_FRAUD, "wrong-output"},
    {"seed@1", VD_LIE_NONE, VD_AUDIT_FRAUD, "wrong-graph"},
    {"input@1", VD_LIE_NONE, VD_AUDIT_FRAUD, "wrong-output"},
};

static void expect_liar(size_t i, int64_t interval) {
    test_job job;
    test_provider p;
    vd_fault fault = {0};
    test_job_open(&job, VD_MODEL_MLP, 3, interval);
    if (liars[i].fault)
        fault = test_fault(&job, liars[i].fault);
    test_provider_open(&p, &job, 2, liars[i].fault ? &fault : NULL);
    p.side.lie = liars[i].lie;
    test_audit a = {.side = &p.side, .steps = 4, .crumbs = 100, .seed = i};
    test_audit_play(&a);
    cr_assert(a.state == liars[i].state && strstr(a.result.why, liars[i].why), "%zu: %d, %s", i,
              a.state, a.result.why);
    test_audit_close(&a);
    test_provider_close(&p);
    test_job_close(&job);
}

Test(audit, liars_are_convicted_by_their_own_statements) {
    for (size_t i = 0; i < sizeof liars / sizeof *liars; i++)
        expect_liar(i, 3);
}

/* ---- places ---- */

/* A flipped bit is found at its place and nowhere else. */
Test(audit, a_wrong_element_convicts_at_its_place_alone) {
    test_job job;
    test_provider p;
    test_job_open(&job, VD_MODEL_MLP, 4, 2);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&job, 1, RO_OP_MATMUL), 5, 20};
    test_provider_open(&p, &job, 2, &fault);
    for (int64_t e = 4; e < 7; e++) {
        test_audit a = {.side = &p.side};
        const vd_crumb place = {
            .step = 1, .node = fault.node, .element = e, .count = 1, .part = -1};
        const vd_result result = test_audit_place(&a, &place);
        cr_assert_eq(result, e == 5 ? VD_RESULT_CONVICTED : VD_RESULT_AGREED, "%lld", (long long)e);
        if (e == 5)
            cr_assert(a.outcome.party[0].grade == VD_GRADE_WRONG_OUTPUT &&
                      a.outcome.place.element == 5 && a.outcome.place.computed);
        test_audit_close(&a);
    }
    test_audit a = {.side = &p.side};
    const vd_crumb several = {.step = 1, .node = fault.node, .element = 0, .count = 8, .part = -1};
    cr_assert_eq(test_audit_place(&a, &several), VD_RESULT_CONVICTED);
    cr_assert_eq(a.outcome.place.element, 5);
    test_audit_close(&a);
    test_provider_close(&p);
    test_job_close(&job);
}

/* The parts are the reference's, but the element does not follow from the last one. */
Test(audit, a_wrong_sum_convicts_by_its_last_part) {
    test_job job;
    test_provider p;
    test_job_open_folds(&job, 2, 2000, 3);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&job, 1, RO_OP_MATMUL), 2, 20};
    test_provider_open(&p, &job, 2, &fault);
    test_audit a = {.side = &p.side};
    const vd_crumb place = {.step = 1, .node = fault.node, .element = 2, .count = 1, .part = 3};
    cr_assert_eq(test_audit_place(&a, &place), VD_RESULT_CONVICTED);
    cr_assert(a.outcome.party[0].grade == VD_GRADE_WRONG_OUTPUT);
    test_audit_close(&a);
    test_provider_close(&p);
    test_job_close(&job);
}

static bool place_fits(const test_job *job, vd_crumb place) {
    return vd_crumb_fits(&place, &job->program);
}

Test(audit, what_is_no_place_is_refused) {
    test_job job;
    test_job_open_folds(&job, 2, 2000, 3);
    const int64_t node = test_node(&job, 1, RO_OP_MATMUL);
    const int64_t numel = ro_shape_numel(&vd_node_stored(&job.program.step, (uint32_t)node)->shape);
    const uint64_t leaves = job.program.leaf_count;
#define SEAM(s, l, n)     ((vd_crumb){.step = s, .node = -1, .part = -1, .leaf = l, .leaf_count = n})
#define PLACE(s, e, n, p) ((vd_crumb){.step = s, .node = node, .element = e, .count = n, .part = p})
    cr_assert(place_fits(&job, SEAM(-1, 0, leaves)) && place_fits(&job, SEAM(1, leaves - 1, 1)));
    cr_assert(!place_fits(&job, SEAM(-2, 0, 1)) && !place_fits(&job, SEAM(2, 0, 1)));
    cr_assert(!place_fits(&job, SEAM(0, leaves, 1)) && !place_fits(&job, SEAM(0, 0, 0)) &&
              !place_fits(&job, SEAM(0, 0, leaves + 1)));
    cr_assert(place_fits(&job, PLACE(1, numel - 1, 1, 0)));
    cr_assert(!place_fits(&job, PLACE(1, numel, 1, 0)) && !place_fits(&job, PLACE(1, 0, 2, 0)));
    cr_assert(!place_fits(&job, PLACE(1, 0, 1, -1)) && !place_fits(&job, PLACE(1, 0, 1, 8)));
    cr_assert(place_fits(&job, PLACE(1, 0, 1, 7)));
    test_job_close(&job);
}

/* ---- a liar that foresees the draw ---- */

/* It only runs step 0 correctly, and claims the last state of another run; hashes in between are
 * made up. If it could foresee which step will be checked, it would try other hashes until that is
 * step 0. */
typedef struct {
    test_provider honest, other; /* other: the provider whose last state it claims */
    vd_provider side;
    uint64_t nonce;
    bool foresees;
} liar;

static vd_status liar_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    const liar *l = user;
    vd_status status = l->other.side.source.states(l->other.side.source.user, from, to, state, err);
    for (int64_t s = from; s <= to && status == VD_OK; s++) {
        if (s == 1)
            status = l->honest.side.source.states(l->honest.side.source.user, 1, 1,
                                                  &state[s - from], err);
        else if (s > 1 && s < l->honest.exec.program->steps)
            memcpy(state[s - from].b, &l->nonce, sizeof l->nonce);
    }
    return status;
}

static const vd_source *source_of(const liar *l, int64_t step) {
    return step <= 0 ? &l->honest.side.source : &l->other.side.source;
}

static vd_status liar_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    const vd_source *s = source_of(user, step);
    return s->trace(s->user, step, out, err);
}

static vd_status liar_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    const vd_source *s = source_of(user, step - 1);
    return s->leaves(s->user, step, tensor, err);
}

static vd_status liar_tensor(void *user, int64_t step, uint32_t value, const void **data,
                             vd_err *err) {
    const vd_source *s = source_of(user, step);
    return s->tensor(s->user, step, value, data, err);
}

static vd_status liar_run(void *user, vd_hash *state, vd_err *err) {
    const liar *l = user;
    return l->other.side.source.run(l->other.side.source.user, state, err);
}

static void liar_open(liar *l, const test_job *job) {
    const vd_fault fault = test_fault(job, "poison@0");
    test_provider_open(&l->honest, job, 2, NULL);
    test_provider_open(&l->other, job, 2, &fault);
    l->side = l->other.side;
    l->side.source = (vd_source){.user = l,
                                 .run = liar_run,
                                 .states = liar_states,
                                 .trace = liar_trace,
                                 .leaves = liar_leaves,
                                 .tensor = liar_tensor,
                                 .run_root = l->other.side.source.run_root,
                                 .dishonest = true};
}

static void liar_close(liar *l) {
    test_provider_close(&l->honest);
    test_provider_close(&l->other);
}

/* Returns the step that the question's secret will select, if the sub-run has this answer's
 * root. */
static int64_t foreseen(const test_audit *a, int64_t steps, const vd_buf *note) {
    uint64_t seed = a->before;
    vd_hash secret, root, drawn;
    int64_t step;
    json_t *body = test_answer_body(note);
    cr_assert(vd_json_get_hash(body, "root", &root));
    json_decref(body);
    for (int i = 0; i < VD_HASH_SIZE; i++)
        secret.b[i] = (uint8_t)test_random(&seed);
    cr_assert(vd_draw_seed(secret.b, sizeof secret.b, &root, &drawn));
    const vd_drawn_interval interval = {.from = 0, .to = steps, .steps = 1};
    cr_assert(vd_draw_steps(&interval, &drawn, &step, NULL) == VD_OK);
    return step;
}

static bool lie(test_audit *a, const vd_outgoing *q, const vd_buf *request, vd_buf *note) {
    liar *l = a->user;
    const int64_t steps = l->honest.exec.program->steps;
    vd_err err = {0};
    for (l->nonce = strstr(q->text, "subrun") ? 1 : l->nonce;; l->nonce++) {
        note->size = 0;
        cr_assert(vd_provider_answer(&l->side, request->data, request->size, note, &err) == VD_OK,
                  "%s: %s", q->text, err.text);
        if (!strstr(q->text, "subrun") || !l->foresees || foreseen(a, steps, note) == 0)
            return true;
    }
}

static uint32_t caught(liar *l, bool foresees, uint32_t audits) {
    uint32_t count = 0;
    l->foresees = foresees;
    for (uint32_t i = 0; i < audits; i++) {
        test_audit a = {.side = &l->side,
                        .says = lie,
                        .user = l,
                        .steps = 1,
                        .crumbs = 8,
                        .seed = i,
                        .beacon = (uint8_t)i};
        test_audit_play(&a);
        cr_assert(a.state == VD_AUDIT_PASSED || a.state == VD_AUDIT_FRAUD, "%s", a.result.why);
        count += a.state == VD_AUDIT_FRAUD;
        test_audit_close(&a);
    }
    return count;
}

/* The interval's step is drawn in 4 of 5 audits, and then a wrong one in 3 of 4. */
Test(audit, who_foresees_the_draw_wins_and_who_does_not_is_caught, .timeout = 300) {
    enum { AUDITS = 40 };
    test_job job;
    liar l = {0};
    test_job_open(&job, VD_MODEL_MLP, 4, 4);
    liar_open(&l, &job);
    cr_assert_eq(caught(&l, true, AUDITS), 0);
    const uint32_t blind = caught(&l, false, AUDITS);
    cr_assert(blind >= 16 && blind <= 32, "%u of %d", blind, AUDITS);
    liar_close(&l);
    test_job_close(&job);
}
