/* A verdict over a long fold depends on every word that both providers signed about its parts: none
 * can be exchanged, even if its signer and the referee sign again. */
#include "forged_parts.h"
#include "repops/op_product.h"

enum { STEPS = 2, ROWS = 5000, COLUMNS = 4, AT = 1, ELEMENT = 1, PART = 5 };
/* Both providers open the parts twice and prove them twice, which makes eight statements; then one
 * provider gives both inputs. */
enum { OF_PARTS = 8, OF_INPUTS = 2 };

typedef struct {
    test_job job;
    test_provider honest, liar;
    forger forger;
    test_dispute d;
} bench;

static void bench_open(bench *b) {
    test_job_open_folds(&b->job, STEPS, ROWS, COLUMNS);
    const vd_fault fault = {VD_FAULT_ELEMENT, AT, test_node(&b->job, AT, RO_OP_MATMUL), ELEMENT,
                            20};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &fault);
    parts_forge(&b->forger, &b->liar, &b->job, fault.node);
    b->forger.what = FROM_ONE_ON;
    b->forger.at = PART;
    test_duel(&b->d, &b->job, &b->honest.side, &b->liar.side, 1);
    test_expect_convicted(&b->d, 1, VD_GRADE_WRONG_OUTPUT, "the verdict to forge");
    cr_assert(b->d.outcome.place.part == PART);
}

static void bench_close(bench *b) {
    test_dispute_close(&b->d);
    test_provider_close(&b->honest);
    parts_forget(&b->forger);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

static json_t *evidence_of(json_t *verdict) {
    return json_object_get(json_object_get(verdict, "predicate"), "evidence");
}

/* Verifies `verdict`, signed again by the referee. Steals it. */
static vd_status verify(json_t *verdict) {
    vd_key *key = test_referee_key();
    vd_public_key referee;
    vd_buf payload = test_dump(verdict), note = {0};
    vd_verdict out;
    vd_err err = {0};
    vd_key_public(key, &referee);
    cr_assert(vd_note_sign(key, VD_TYPE_VERDICT, payload.data, payload.size, &note, NULL) == VD_OK);
    const vd_status status =
        vd_verdict_verify(note.data, note.size, &referee, vd_leaf_element, NULL, NULL, &out, &err);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(key);
    return status;
}

/* ---- one word of an answer changed ---- */

/* Changes string number *at among those below `value`, and decrements *at for each earlier one.
 * Returns false if there are fewer. */
static bool alter(json_t *value, size_t *at) {
    const char *key;
    json_t *below;
    size_t i;
    if (json_is_string(value) && (*at)-- == 0) {
        char *text = strdup(json_string_value(value));
        text[0] = text[0] == '1' ? '2' : '1'; /* changes a digit of a hash, or six bits of a leaf */
        json_string_set(value, text);
        free(text);
        return true;
    }
    json_object_foreach(value, key, below) if (alter(below, at)) return true;
    json_array_foreach(value, i, below) if (alter(below, at)) return true;
    return false;
}

/* Changes string number `at` in the statement of evidence `item`, and signs it again with its
 * signer's key. Returns false if there is no such string. */
static bool forge_statement(const bench *b, json_t *item, size_t at) {
    const bool liars = json_integer_value(json_object_get(item, "provider")) == 1;
    vd_buf note = test_dump(json_incref(json_object_get(item, "statement")));
    json_t *body = test_answer_body(&note);
    vd_hash question;
    cr_assert(vd_json_get_hash(item, "question", &question));
    const bool altered = alter(body, &at);
    note.size = 0;
    cr_assert(vd_answer_write(liars ? b->liar.key : b->honest.key, &b->d.assignment, &question,
                              body, &note, NULL) == VD_OK);
    json_object_set_new(item, "statement", test_parse(note.data, note.size));
    json_decref(body);
    vd_buf_free(&note);
    return altered;
}

/* Forges one string after another, up to `most`. Returns how many there were. */
static size_t forge_item(const bench *b, size_t index, size_t most) {
    size_t at = 0;
    for (; at < most; at++) {
        json_t *verdict = test_payload(&b->d.verdict);
        if (!forge_statement(b, json_array_get(evidence_of(verdict), index), at)) {
            cr_expect(verify(verdict) == VD_OK, "signed again, and the same");
            break;
        }
        cr_expect(verify(verdict) == VD_ERR_PEER, "item %zu, text %zu", index, at);
    }
    return at;
}

Test(folds_evidence, every_hash_leaf_and_root_binds) {
    bench b;
    size_t texts = 0;
    bench_open(&b);
    json_t *verdict = test_payload(&b.d.verdict);
    const size_t count = json_array_size(evidence_of(verdict));
    json_decref(verdict);
    for (size_t i = count - OF_PARTS - OF_INPUTS; i < count; i++)
        texts += forge_item(&b, i, 40);
    cr_expect(texts > 100, "only %zu texts", texts);
    bench_close(&b);
}

/* ---- one statement in place of another ---- */

Test(folds_evidence, no_statement_stands_for_another) {
    bench b;
    bench_open(&b);
    json_t *verdict = test_payload(&b.d.verdict);
    const size_t count = json_array_size(evidence_of(verdict));
    json_decref(verdict);
    for (size_t i = count - OF_PARTS - OF_INPUTS; i < count; i++)
        for (size_t k = i - 3; k < i; k++) {
            verdict = test_payload(&b.d.verdict);
            json_t *list = evidence_of(verdict);
            json_object_set(json_array_get(list, i), "statement",
                            json_object_get(json_array_get(list, k), "statement"));
            cr_expect(verify(verdict) == VD_ERR_PEER, "%zu in place of %zu", k, i);
        }
    bench_close(&b);
}
