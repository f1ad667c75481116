/* A verdict of a later version gets no decision: neither that it holds, nor that it does not. Only
 * what the referee signed can lead to this. */
#include "tests/support/dispute.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static vd_buf make_verdict(void) {
    test_job job;
    test_provider honest, liar;
    test_dispute d;
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    test_provider_open(&honest, &job, 1, NULL);
    const vd_fault fault = test_fault(&job, "poison@1");
    test_provider_open(&liar, &job, 2, &fault);
    test_duel(&d, &job, &honest.side, &liar.side, 1);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    test_provider_close(&honest);
    test_provider_close(&liar);
    test_job_close(&job);
    return d.verdict;
}

/* Signs `root` as the referee. Steals it. */
static vd_buf sign(const char *type, json_t *root) {
    vd_key *referee = test_referee_key();
    vd_buf payload = test_dump(root), note = {0};
    cr_assert(vd_note_sign(referee, type, payload.data, payload.size, &note, NULL) == VD_OK);
    vd_buf_free(&payload);
    vd_key_destroy(referee);
    return note;
}

static json_t *member(json_t *root, const char *name) {
    return json_object_get(json_object_get(root, "predicate"), name);
}

/* ---- changes to an assignment or a statement; both are signed again ---- */

static void set(json_t *root, const char *name, json_t *value) {
    json_object_set_new(root, name, value);
}

static void version_3(json_t *note) {
    set(note, "verde", json_integer(3));
}
static void version_as_real(json_t *note) {
    set(note, "verde", json_real(1));
}
static void version_as_text(json_t *note) {
    set(note, "verde", json_string("1"));
}
static void version_as_true(json_t *note) {
    set(note, "verde", json_true());
}
static void more(json_t *note) {
    set(note, "more", json_null());
}
static void version_2(json_t *note) {
    set(note, "verde", json_integer(2));
}
static void version_3_and_more(json_t *note) {
    version_3(note);
    more(note);
}
static void later_referee(json_t *note) {
    set(note, "referee", json_string("ml-dsa-65:00"));
}
static void later_provider(json_t *note) {
    json_array_set_new(json_object_get(note, "providers"), 1, json_string("ml-dsa-65:00"));
}
static void no_provider(json_t *note) {
    json_array_set_new(json_object_get(note, "providers"), 1, json_string("ML-DSA-65:00"));
}
static void many_providers(json_t *note) {
    while (json_array_size(json_object_get(note, "providers")) <= VD_PARTIES_MAX)
        json_array_append_new(json_object_get(note, "providers"), json_string("x"));
}
static void many_commas(json_t *note) {
    while (json_array_size(json_object_get(note, "providers")) <= VD_ASSIGNMENT_ELEMENTS)
        json_array_append_new(json_object_get(note, "providers"), json_string("x"));
}

/* ---- changes to the note, and to the in-toto statement in it ---- */

static void predicate_3(json_t *root) {
    set(root, "predicateType", json_string("https://verde.invalid/verdict/v3"));
}
static void predicate_3_and_more(json_t *root) {
    predicate_3(root);
    more(root);
}
static void predicate_as_number(json_t *root) {
    set(root, "predicateType", json_integer(3));
}
static void another_statement(json_t *root) {
    set(root, "_type", json_string("https://in-toto.io/Statement/v2"));
}
static void more_in_predicate(json_t *root) {
    more(json_object_get(root, "predicate"));
}
static void more_in_cost(json_t *root) {
    more(member(root, "cost"));
}
static void more_in_evidence(json_t *root) {
    more(json_array_get(member(root, "evidence"), 2));
}
static void another_in_signature(json_t *root) {
    json_t *list = json_object_get(member(root, "assignment"), "signatures");
    json_object_del(json_array_get(list, 0), "sig");
    more(json_array_get(list, 0));
}
static void many_items(json_t *root) {
    json_t *predicate = json_object_get(root, "predicate");
    json_object_del(predicate, "program");
    set(predicate, "collection", json_pack("{si}", "count", VD_COLLECTION_ITEMS_MAX + 1));
}

typedef enum { VERDICT, ASSIGNMENT, STATEMENT } place;
#define EDIT(place, function) place, #function, function

static const struct {
    place of;
    const char *name;
    void (*edit)(json_t *payload);
    vd_status status;
    const char *says;
} edits[] = {
    {EDIT(VERDICT, predicate_3), VD_ERR_VERSION,
     "`predicateType` is https://verde.invalid/verdict/"
     "v3; this verde reads https://verde.invalid/verdict/v1, https://verde.invalid/verdict/v2 and "
     "https://verde.invalid/fraud/v1"},
    {EDIT(VERDICT, predicate_3_and_more), VD_ERR_VERSION, "verdict/v3; this verde reads"},
    {EDIT(VERDICT, another_statement), VD_ERR_VERSION,
     "`_type` is https://in-toto.io/Statement/v2; this verde reads "
     "https://in-toto.io/Statement/v1"},
    {EDIT(VERDICT, many_items), VD_ERR_VERSION, "1048577 items; this verde reads at most 1048576"},
    {EDIT(VERDICT, predicate_as_number), VD_ERR_PEER, "`predicateType` must be a string"},
    {EDIT(VERDICT, more), VD_ERR_PEER, "unknown member `more` in the statement"},
    {EDIT(VERDICT, more_in_predicate), VD_ERR_PEER, "unknown member `more` in predicate"},
    {EDIT(VERDICT, more_in_cost), VD_ERR_PEER, "unknown member `more` in cost"},
    {EDIT(VERDICT, more_in_evidence), VD_ERR_PEER, "unknown member `more` in evidence[2]"},
    {EDIT(VERDICT, another_in_signature), VD_ERR_PEER, "unknown member `more` in signatures[0]"},
    {EDIT(ASSIGNMENT, version_3), VD_ERR_VERSION,
     "version 3 of an assignment; this verde reads versions 1 and 2"},
    {EDIT(ASSIGNMENT, version_3_and_more), VD_ERR_VERSION, "version 3 of an assignment"},
    {EDIT(ASSIGNMENT, version_2), VD_ERR_PEER, "unknown member"},
    {EDIT(ASSIGNMENT, later_referee), VD_ERR_VERSION, "referee: a key of type ml-dsa-65"},
    {EDIT(ASSIGNMENT, later_provider), VD_ERR_VERSION, "providers: a key of type ml-dsa-65"},
    {EDIT(ASSIGNMENT, many_providers), VD_ERR_VERSION, "65 providers; this verde reads at most 64"},
    {EDIT(ASSIGNMENT, many_commas), VD_ERR_VERSION, "the 128 that this verde reads"},
    {EDIT(ASSIGNMENT, version_as_real), VD_ERR_PEER, "`verde` must be an integer"},
    {EDIT(ASSIGNMENT, version_as_text), VD_ERR_PEER, "`verde` must be an integer"},
    {EDIT(ASSIGNMENT, version_as_true), VD_ERR_PEER, "`verde` must be an integer"},
    {EDIT(ASSIGNMENT, more), VD_ERR_PEER, "unknown member `more`"},
    {EDIT(ASSIGNMENT, no_provider), VD_ERR_PEER, "64 lower-case hexadecimal digits"},
    {EDIT(STATEMENT, version_2), VD_ERR_PEER, "version 2 of a statement"},
    {EDIT(STATEMENT, version_3_and_more), VD_ERR_PEER, "version 3 of a statement"},
    {EDIT(STATEMENT, version_as_real), VD_ERR_PEER, "`verde` must be an integer"},
    {EDIT(STATEMENT, more), VD_ERR_PEER, "unknown member `more`"},
};

static void expect(const vd_buf *note, const vd_public_key *referee, vd_status status,
                   const char *says, const char *what) {
    vd_verdict v;
    vd_err err = {0};
    const vd_status found =
        vd_verdict_verify(note->data, note->size, referee, vd_leaf_element, NULL, NULL, &v, &err);
    cr_expect(found == status && strstr(err.text, says), "%s: %d, %s", what, found, err.text);
    if (found == VD_OK)
        vd_verdict_free(&v);
}

/* Edits a note of the predicate: the assignment, or the first statement, which is signed again with
 * its provider's key. */
static void edit_note(json_t *root, size_t i) {
    const bool assignment = edits[i].of == ASSIGNMENT;
    json_t *at = assignment ? json_object_get(root, "predicate")
                            : json_array_get(member(root, "evidence"), 0);
    const char *name = assignment ? "assignment" : "statement";
    vd_buf note = test_dump(json_incref(json_object_get(at, name))), changed = {0};
    json_t *payload = test_payload(&note);
    edits[i].edit(payload);
    if (assignment) {
        changed = sign(VD_TYPE_ASSIGNMENT, payload);
    } else {
        const uint8_t seed[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        vd_key *key = NULL;
        vd_buf bytes = test_dump(payload);
        cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
        cr_assert(vd_note_sign(key, VD_TYPE_ANSWER, bytes.data, bytes.size, &changed, NULL) ==
                  VD_OK);
        vd_key_destroy(key);
        vd_buf_free(&bytes);
    }
    json_object_set_new(at, name, test_parse(changed.data, changed.size));
    vd_buf_free(&changed);
    vd_buf_free(&note);
}

/* ---- programs ---- */

static size_t behind(const vd_buf *bytes, const char *name) {
    const uint8_t *found = memmem(bytes->data, bytes->size, name, strlen(name));
    cr_assert(found);
    return (size_t)(found - bytes->data) + strlen(name);
}

static void encoding_2(vd_buf *bytes) {
    bytes->data[15] = 2;
}
static void specification_2(vd_buf *bytes) {
    bytes->data[17] = 2;
}
static void operator_300(vd_buf *bytes) {
    const size_t at = behind(bytes, "adamw.layer.1.bias.m");
    bytes->data[at] = 300 & 255;
    bytes->data[at + 1] = 300 >> 8;
}
static void experimental_operator(vd_buf *bytes) {
    bytes->data[behind(bytes, "adamw.layer.1.bias.m") + 1] = 0xf0;
}
static void type_8(vd_buf *bytes) { /* of the first data tensor, after its name */
    bytes->data[49 + bytes->data[47]] = 8;
}
static void part_200(vd_buf *bytes) {
    vd_put_u8(bytes, 200);
    vd_put(bytes, "later", 5);
}
static void cut_off(vd_buf *bytes) {
    bytes->size--;
}

static const struct {
    const char *name;
    void (*edit)(vd_buf *bytes);
    vd_status status;
    const char *says;
} programs[] = {
    {"encoding 2", encoding_2, VD_ERR_VERSION,
     "version 2 of a program; this verde reads version 1"},
    {"SPEC.md 2", specification_2, VD_ERR_VERSION,
     "version 2 of the specification; this verde reads"},
    {"operator", operator_300, VD_ERR_VERSION, "operator 300 is not known"},
    {"experimental", experimental_operator, VD_ERR_PEER, "is experimental"},
    {"type", type_8, VD_ERR_VERSION, "element type 8 is not known"},
    {"part", part_200, VD_ERR_VERSION, "part 200 is not known"},
    {"cut off", cut_off, VD_ERR_PEER, "malformed"},
};

Test(verdict_unknown, programs_with_what_is_not_known_decide_nothing) {
    vd_buf note = make_verdict();
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        json_t *root = test_payload(&note);
        const json_t *program = member(root, "program");
        vd_buf bytes = {0};
        cr_assert(vd_unbase64(json_string_value(program), json_string_length(program), &bytes,
                              NULL) == VD_OK);
        programs[i].edit(&bytes);
        char *text = vd_base64(bytes.data, bytes.size);
        set(json_object_get(root, "predicate"), "program", json_string(text));
        vd_buf changed = sign(VD_TYPE_VERDICT, root);
        expect(&changed, NULL, programs[i].status, programs[i].says, programs[i].name);
        vd_buf_free(&changed);
        vd_buf_free(&bytes);
        free(text);
    }
    vd_buf_free(&note);
}

/* ---- all of them ---- */

Test(verdict_unknown, only_what_the_referee_signed_leads_to_no_decision) {
    vd_buf note = make_verdict();
    expect(&note, NULL, VD_OK, "", "unchanged");
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        json_t *root = test_payload(&note);
        if (edits[i].of == VERDICT)
            edits[i].edit(root);
        else
            edit_note(root, i);
        vd_buf changed = sign(VD_TYPE_VERDICT, root);
        expect(&changed, NULL, edits[i].status, edits[i].says, edits[i].name);
        vd_buf_free(&changed);
    }
    vd_buf_free(&note);
}

/* Sets a string in the verdict's note, or in the note of the assignment or first statement
 * within. */
static vd_buf with_string(const vd_buf *note, place of, const char *name, const char *value) {
    json_t *root = of == VERDICT ? test_parse(note->data, note->size) : test_payload(note);
    json_t *at = root;
    if (of == ASSIGNMENT)
        at = member(root, "assignment");
    if (of == STATEMENT)
        at = json_object_get(json_array_get(member(root, "evidence"), 0), "statement");
    if (strcmp(name, "keyid") == 0)
        at = json_array_get(json_object_get(at, "signatures"), 0);
    set(at, name, json_string(value));
    return of == VERDICT ? test_dump(root) : sign(VD_TYPE_VERDICT, root);
}

Test(verdict_unknown, keys_of_a_later_type_are_named_and_decide_nothing) {
    static const struct {
        place of;
        vd_status status;
        const char *says;
    } keys[] = {
        {VERDICT, VD_ERR_VERSION, "signed by a key of type ml-dsa-65; this verde reads keys of"},
        {ASSIGNMENT, VD_ERR_VERSION, "signed by a key of type ml-dsa-65; this verde reads keys of"},
        {STATEMENT, VD_ERR_PEER, "signed by a key of type ml-dsa-65"},
    };
    vd_key *key = test_referee_key();
    vd_public_key referee;
    vd_key_public(key, &referee);
    vd_buf note = make_verdict();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        vd_buf changed = with_string(&note, keys[i].of, "keyid", "ml-dsa-65:00ff");
        expect(&changed, NULL, keys[i].status, keys[i].says, "a later key");
        vd_buf_free(&changed);
    }
    vd_buf changed = with_string(&note, VERDICT, "keyid", "ml-dsa-65:00ff");
    expect(&changed, &referee, VD_ERR_PEER, "signed by another referee", "of a known referee");
    vd_buf_free(&changed);
    vd_buf_free(&note);
    vd_key_destroy(key);
}

Test(verdict_unknown, types_of_notes_are_believed_if_they_are_signed) {
    vd_buf note = make_verdict();
    vd_buf later = sign("application/vnd.verde.verdict+cbor", test_payload(&note));
    expect(&later, NULL, VD_ERR_VERSION, "payloadType is application/vnd.verde.verdict+cbor",
           "a later type");
    vd_buf known = sign(VD_TYPE_QUESTION, test_payload(&note));
    expect(&known, NULL, VD_ERR_PEER, "payloadType is " VD_TYPE_QUESTION, "a question");
    vd_buf unsigned_type = with_string(&note, VERDICT, "payloadType", "application/later");
    expect(&unsigned_type, NULL, VD_ERR_PEER, "signature", "a type that nobody signed");
    vd_buf_free(&unsigned_type);
    vd_buf_free(&known);
    vd_buf_free(&later);
    vd_buf_free(&note);
}
