/* Disputes over jobs of many programs. PROTOCOL.md sections 1.4 and 5.2. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "many_programs.h"

/* The first provider answers through a desk, the second directly. */
static test_dispute settle(const many *m) {
    test_dispute d = {.collection = &m->collection, .side = {&m->side[0].side, &m->side[1].side}};
    cr_assert(vd_desk_create(d.side[0], &d.desk[0], NULL) == VD_OK);
    test_settle(&d);
    vd_desk_destroy(d.desk[0]);
    d.desk[0] = NULL;
    return d;
}

Test(collection, equal_runs_of_all_items_agree) {
    static many m;
    many_open(&m, -1, NULL);
    test_dispute d = settle(&m);
    cr_expect(d.outcome.result == VD_RESULT_AGREED && d.outcome.accepted);
    cr_expect(d.outcome.place.item == -1);
    test_dispute_close(&d);
    many_close(&m);
}

Test(collection, the_liar_of_one_item_is_convicted_there) {
    static const int wrong[] = {0, 3, ITEMS - 1};
    static const char *const fault[] = {"element@1", "skip@2", "seed@-1"};
    for (int i = 0; i < 3; i++) {
        static many m;
        many_open(&m, wrong[i], fault[i]);
        test_dispute d = settle(&m);
        cr_expect(d.outcome.result == VD_RESULT_CONVICTED && d.outcome.accepted);
        cr_expect(d.outcome.party[1].standing == VD_CONVICTED &&
                  d.outcome.party[0].standing == VD_STANDS);
        cr_expect(d.outcome.place.item == wrong[i], "item %lld", (long long)d.outcome.place.item);
        test_dispute_close(&d);
        many_close(&m);
    }
}

/* The same run is used for other items' programs. */
static void swap_items(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    (void)question;
    json_t *body = test_answer_body(note);
    json_t *root = json_object_get(body, "root");
    if (root && strstr(question->text, "prove items"))
        json_object_set_new(body, "root", json_string("00"));
    if (party == 1)
        test_resign(d, party, question, body, note);
    else
        json_decref(body);
}

Test(collection, a_malformed_proof_of_an_item_convicts) {
    static many m;
    many_open(&m, 2, "skip@1");
    test_dispute d = {.collection = &m.collection,
                      .side = {&m.side[0].side, &m.side[1].side},
                      .transit = swap_items};
    test_settle(&d);
    cr_expect(d.outcome.party[1].grade == VD_GRADE_BAD_PROOF, "%s", d.outcome.party[1].reason);
    cr_expect(d.outcome.accepted);
    test_dispute_close(&d);
    many_close(&m);
}

/* ---- questions ---- */

static vd_status read_changed(const many *m, vd_question q, const vd_job_programs *job) {
    const vd_hash assignment = {{1}};
    vd_buf payload = {0};
    vd_question again;
    vd_program item;
    cr_assert(vd_question_write(&q, &assignment, &payload, NULL) == VD_OK);
    vd_status status =
        vd_question_read(payload.data, payload.size, job, &assignment, &again, &item, NULL);
    if (status == VD_OK) {
        cr_expect(again.of_item == q.of_item && again.item == q.item);
        vd_question_free(&again);
        vd_program_free(&item);
    }
    vd_buf_free(&payload);
    (void)m;
    return status;
}

Test(collection, questions_name_an_item_where_there_is_one) {
    static many m;
    many_open(&m, -1, NULL);
    const vd_job_programs all = {.collection = &m.collection}, one = {.program = &m.job[0].program};
    const vd_question items = {.kind = VD_ASK_OPEN,
                               .tree = {.kind = VD_TREE_ITEMS},
                               .hi = ITEMS,
                               .depth = 2},
                      run = {.kind = VD_ASK_OPEN,
                             .tree = {.kind = VD_TREE_RUN},
                             .hi = (uint64_t)vd_run_leaves(&m.job[0].program),
                             .depth = 2},
                      commit = {.kind = VD_ASK_COMMIT};
    vd_question q = run;
    cr_expect(read_changed(&m, items, &all) == VD_OK);
    cr_expect(read_changed(&m, items, &one) == VD_ERR_PEER);
    cr_expect(read_changed(&m, run, &one) == VD_OK);
    cr_expect(read_changed(&m, run, &all) == VD_ERR_PEER, "of no item");
    cr_expect(read_changed(&m, commit, &all) == VD_OK);
    q.of_item = true, q.item = ITEMS - 1;
    cr_expect(read_changed(&m, q, &all) == VD_OK);
    cr_expect(read_changed(&m, q, &one) == VD_ERR_PEER);
    q.item = ITEMS;
    cr_expect(read_changed(&m, q, &all) == VD_ERR_PEER, "of an item that is not there");
    q = items, q.of_item = true;
    cr_expect(read_changed(&m, q, &all) == VD_ERR_PEER, "of one item, and of all");
    q = commit, q.of_item = true;
    cr_expect(read_changed(&m, q, &all) == VD_ERR_PEER);
    many_close(&m);
}

/* ---- verdicts ---- */

static vd_status verify(json_t *statement) {
    vd_buf payload = test_dump(statement), note = {0};
    vd_key *key = test_referee_key();
    vd_verdict verdict;
    vd_err err = {0};
    cr_assert(vd_note_sign(key, VD_TYPE_VERDICT, payload.data, payload.size, &note, NULL) == VD_OK);
    vd_status status =
        vd_verdict_verify(note.data, note.size, NULL, vd_leaf_element, NULL, NULL, &verdict, &err);
    vd_verdict_free(&verdict);
    vd_key_destroy(key);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    return status;
}

Test(collection, a_verdict_is_about_the_item_of_its_program) {
    static many m;
    many_open(&m, 3, "skip@1");
    test_dispute d = settle(&m);
    for (int i = 0; i < 8; i++) {
        json_t *statement = test_payload(&d.verdict);
        json_t *collection = json_object_get(json_object_get(statement, "predicate"), "collection");
        json_t *items = json_object_get(collection, "items"), *item = json_array_get(items, 0);
        if (i == 1)
            json_object_set_new(item, "item", json_integer(2));
        if (i == 2)
            json_object_set_new(collection, "count", json_integer(ITEMS + 1));
        if (i == 3)
            json_array_clear(items);
        if (i == 4)
            json_array_append_new(items, json_deep_copy(item));
        if (i == 5)
            json_object_set_new(item, "item", json_string("3"));
        if (i == 6)
            json_object_set_new(item, "item", json_real(3));
        if (i == 7)
            json_object_set_new(collection, "count", json_real(ITEMS));
        cr_expect((verify(statement) == VD_OK) == (i == 0), "change %d", i);
    }
    test_dispute_close(&d);
    many_close(&m);
}
