/* Lies in disputes over rounding logs: about notes, sections, leaves with a log, and roles. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, INTERVAL = 2 };

#define DROPPED "drop-record@1"

typedef struct {
    test_job job;
    test_provider trainer, auditor;
} bench;

static void open_bench(bench *b, const char *fault, bool is_signed) {
    vd_err err = {0};
    vd_public_key key;
    vd_fault f;
    test_job_open(&b->job, VD_MODEL_GPT2, STEPS, INTERVAL);
    test_job_round(&b->job, 32, VD_LOG_CALLS);
    f = test_fault(&b->job, fault);
    const test_party trainer = {.profile = "sim-wide", .unsigned_log = !is_signed};
    cr_assert(test_party_open(&b->trainer, &b->job, 1, &trainer, &f, &err) == VD_OK, "%s",
              err.text);
    vd_key_public(b->trainer.key, &key);
    const test_party auditor = {.profile = "sim-plain",
                                .trainer = &b->trainer,
                                .trainer_key = is_signed ? &key : NULL,
                                .contest = true};
    cr_assert(test_party_open(&b->auditor, &b->job, 2, &auditor, NULL, &err) == VD_OK, "%s",
              err.text);
}

static void close_bench(bench *b) {
    test_provider_close(&b->auditor);
    test_provider_close(&b->trainer);
    test_job_close(&b->job);
}

/* Removes or changes the member `key` in all answers of `party` that have it. */
typedef struct {
    uint32_t party;
    const char *key;
    enum { SILENT, FLIPPED, REPLACED, SHORT } how;
    int seen;
} lie;

static json_t *flipped(const json_t *value) {
    char text[4096];
    snprintf(text, sizeof text, "%s", json_string_value(value));
    text[4] = text[4] == '0' ? '1' : '0';
    return json_string(text);
}

/* Keeps only the first 32 bytes of a leaf. */
static void shorten(json_t *body) {
    json_t *leaf = json_array_get(json_object_get(body, "leaves"), 0);
    const char *data = json_string_value(json_object_get(leaf, "data"));
    vd_buf bytes = {0};
    cr_assert(vd_unbase64(data, strlen(data), &bytes, NULL) == VD_OK);
    char *text = vd_base64(bytes.data, 32);
    json_object_set_new(leaf, "data", json_string(text));
    free(text);
    vd_buf_free(&bytes);
}

static void transit(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    lie *l = d->user;
    json_t *body = note->size ? test_answer_body(note) : NULL;
    if (!body || !json_object_get(body, l->key) || (l->party < 2 && party != l->party) ||
        (l->how == SHORT && !strstr(question->text, "prove run"))) {
        json_decref(body);
        return;
    }
    l->seen++;
    if (l->how == FLIPPED)
        json_object_set_new(body, l->key, flipped(json_object_get(body, l->key)));
    if (l->how == REPLACED)
        json_object_set_new(body, l->key, json_string("{}"));
    if (l->how == SHORT)
        shorten(body);
    if (l->how == SILENT) {
        note->size = 0;
        json_decref(body);
    } else {
        test_resign(d, party, question, body, note);
    }
}

static test_dispute settle(bench *b, lie *l) {
    test_dispute d = {.job = &b->job,
                      .side = {&b->trainer.side, &b->auditor.side},
                      .transit = transit,
                      .user = l};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    cr_expect(!l->key[0] || l->seen > 0, "no answer has `%s`", l->key);
    return d;
}

static void expect(const char *fault, bool is_signed, lie l, vd_grade trainer, vd_grade auditor,
                   vd_result result) {
    bench b;
    open_bench(&b, fault, is_signed);
    test_dispute d = settle(&b, &l);
    const struct vd_party_outcome *p = d.outcome.party;
    cr_expect(p[0].grade == trainer && p[1].grade == auditor, "%s, `%s`: %s (%s), %s (%s)", fault,
              l.key, vd_grade_name(p[0].grade), p[0].reason, vd_grade_name(p[1].grade),
              p[1].reason);
    cr_expect(d.outcome.result == result, "%s, `%s`: %s", fault, l.key,
              vd_result_name(d.outcome.result));
    test_dispute_close(&d);
    close_bench(&b);
}

static const vd_grade none = VD_GRADE_NONE, bad = VD_GRADE_BAD_PROOF, gone = VD_GRADE_TIMEOUT;

Test(dispute_rounding_lies, a_log_that_nobody_signed_is_no_evidence) {
    expect("two-logs@1", false, (lie){0, "", SILENT, 0}, none, gone, VD_RESULT_FORFEIT);
}

Test(dispute_rounding_lies, a_note_must_be_the_trainers_and_of_the_log_that_was_followed) {
    expect("two-logs@1", true, (lie){1, "note", SILENT, 0}, none, gone, VD_RESULT_FORFEIT);
    expect("two-logs@1", true, (lie){1, "note", REPLACED, 0}, none, bad, VD_RESULT_CONVICTED);
    expect("two-logs@1", true, (lie){1, "run", FLIPPED, 0}, none, bad, VD_RESULT_CONVICTED);
}

Test(dispute_rounding_lies, a_claim_of_another_run_is_not_accepted_and_convicts_nobody) {
    expect("two-logs@1", true, (lie){0, "run", FLIPPED, 0}, none, none, VD_RESULT_INCONCLUSIVE);
}

Test(dispute_rounding_lies, a_leaf_of_a_run_is_a_state_and_a_log) {
    expect(DROPPED, true, (lie){0, "leaves", SHORT, 0}, bad, none, VD_RESULT_CONVICTED);
    expect(DROPPED, true, (lie){1, "leaves", SHORT, 0}, none, bad, VD_RESULT_CONVICTED);
}

Test(dispute_rounding_lies, either_may_give_the_section) {
    const vd_grade incomplete = VD_GRADE_LOG_INCOMPLETE;
    expect(DROPPED, true, (lie){0, "", SILENT, 0}, incomplete, none, VD_RESULT_CONVICTED);
    expect(DROPPED, true, (lie){0, "section", SILENT, 0}, incomplete, none, VD_RESULT_CONVICTED);
    expect(DROPPED, true, (lie){2, "section", SILENT, 0}, gone, gone, VD_RESULT_INCONCLUSIVE);
}

Test(dispute_rounding_lies, a_section_leads_to_the_agreed_log) {
    static const char *const keys[] = {"tree", "section"};
    for (int i = 0; i < 2; i++)
        expect(DROPPED, true, (lie){0, keys[i], FLIPPED, 0}, bad, none, VD_RESULT_CONVICTED);
    expect(DROPPED, true, (lie){0, "section", REPLACED, 0}, bad, none, VD_RESULT_CONVICTED);
}

Test(dispute_rounding_lies, nobody_speaks_in_the_others_role) {
    bench b;
    open_bench(&b, DROPPED, true);
    test_dispute d = {.job = &b.job, .side = {&b.auditor.side, &b.trainer.side}};
    d.refused = true;
    test_settle(&d);
    cr_expect(d.outcome.result == VD_RESULT_INCONCLUSIVE && !d.outcome.accepted);
    test_dispute_close(&d);
    close_bench(&b);
}
