/* A note that is not the provider's statement on the question is kept out of the evidence, since
 * anybody could have sent it. A verdict with such a note does not hold, even if the provider gave
 * no answer and the outcome is that of `absent`. PROTOCOL.md section 3.4. */
#include "tests/support/tournament.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- verdicts in which answers are missing ---- */

/* This party's answer in this round does not arrive. */
typedef struct {
    uint32_t party, round;
} lost;

static void lose(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    const lost *what = d->user;
    (void)question;
    if (party == what->party && d->rounds == what->round)
        note->size = 0;
}

typedef struct {
    test_job job;
    test_provider honest, liar;
} pair;

static void open_pair(pair *x, vd_model_kind kind, const char *fault) {
    test_job_open(&x->job, kind, 3, 3);
    const vd_fault f = test_fault(&x->job, fault);
    test_provider_open(&x->honest, &x->job, 1, NULL);
    test_provider_open(&x->liar, &x->job, 2, &f);
}

static void close_pair(pair *x) {
    test_provider_close(&x->honest);
    test_provider_close(&x->liar);
    test_job_close(&x->job);
}

/* ---- forged statements ---- */

static vd_key *key_of(uint8_t name) {
    uint8_t seed[32];
    vd_key *key;
    memset(seed, name, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    return key;
}

/* A forged answer: its body, and whose keys it names, is signed with, and has in the note. */
typedef struct {
    const char *what;
    const char *answer; /* JSON */
    uint8_t names, signs, keyid;
    const char *type;
    bool other_question, other_assignment;
} forgery;

enum { OWN, RIVAL, STRANGER };

static const forgery forgeries[] = {
    {"signed by a stranger in its name", "{\"concede\":true}", OWN, STRANGER, OWN, VD_TYPE_ANSWER,
     false, false},
    {"signed by a stranger", "{\"concede\":true}", OWN, STRANGER, STRANGER, VD_TYPE_ANSWER, false,
     false},
    {"of a stranger", "{\"concede\":true}", STRANGER, STRANGER, STRANGER, VD_TYPE_ANSWER, false,
     false},
    {"of its rival", "{\"refusal\":\"no\"}", RIVAL, RIVAL, RIVAL, VD_TYPE_ANSWER, false, false},
    {"that names its rival", "{\"refusal\":\"no\"}", RIVAL, OWN, OWN, VD_TYPE_ANSWER, false, false},
    {"of another type", "{\"refusal\":\"no\"}", OWN, OWN, OWN, VD_TYPE_QUESTION, false, false},
    {"on another question", "{\"refusal\":\"no\"}", OWN, OWN, OWN, VD_TYPE_ANSWER, true, false},
    {"in another dispute", "{\"refusal\":\"no\"}", OWN, OWN, OWN, VD_TYPE_ANSWER, false, true},
};

/* In these disputes, the seed of provider `number` consists of bytes number + 1. */
static uint8_t name_of(uint8_t who, json_int_t number) {
    return who == OWN ? (uint8_t)(number + 1) : who == RIVAL ? (uint8_t)(2 - number % 2) : 0x77;
}

static json_t *member(const char *name, const char *value) {
    return json_pack("{ss}", name, value);
}

/* Returns a forged note to be put in place of an absent answer. */
static json_t *forge(const forgery *f, const json_t *item, const vd_hash *assignment) {
    const json_int_t number = json_integer_value(json_object_get(item, "provider"));
    const vd_hash other = {{7}};
    vd_key *named = key_of(name_of(f->names, number)), *signer = key_of(name_of(f->signs, number)),
           *claimed = key_of(name_of(f->keyid, number));
    vd_public_key key, keyid;
    vd_buf note = {0};
    char hex[2 * VD_KEY_SIZE + 1];
    vd_key_public(named, &key);
    vd_key_public(claimed, &keyid);
    json_t *answer = test_parse(f->answer, strlen(f->answer));
    json_t *payload = json_pack("{si so so so so}", "verde", 1, "answer", answer, "assignment",
                                vd_hash_text(f->other_assignment ? &other : assignment), "key",
                                vd_json_key(&key), "question",
                                f->other_question ? vd_hash_text(&other)
                                                  : json_incref(json_object_get(item, "question")));
    vd_buf bytes = test_dump(payload);
    cr_assert(vd_note_sign(signer, f->type, bytes.data, bytes.size, &note, NULL) == VD_OK);
    json_t *out = test_parse(note.data, note.size);
    vd_hex(keyid.b, VD_KEY_SIZE, hex);
    json_t *signature = json_array_get(json_object_get(out, "signatures"), 0);
    json_object_set_new(signature, "keyid", json_string(hex));
    vd_buf_free(&bytes);
    vd_buf_free(&note);
    vd_key_destroy(named);
    vd_key_destroy(signer);
    vd_key_destroy(claimed);
    return out;
}

/* ---- verdicts with forged statements ---- */

static vd_status verify(json_t *statement, vd_err *err) {
    vd_key *referee = test_referee_key();
    vd_buf payload = test_dump(json_incref(statement)), note = {0};
    vd_verdict v;
    cr_assert(vd_note_sign(referee, VD_TYPE_VERDICT, payload.data, payload.size, &note, NULL) ==
              VD_OK);
    vd_status status =
        vd_verdict_verify(note.data, note.size, NULL, vd_leaf_element, NULL, NULL, &v, err);
    if (status == VD_OK)
        vd_verdict_free(&v);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    vd_key_destroy(referee);
    return status;
}

static void expect_refused(json_t *root, json_t *item, json_t *statement, const char *what) {
    vd_err err = {0};
    json_object_set_new(item, "statement", statement);
    cr_expect(verify(root, &err) == VD_ERR_PEER, "%s: %s", what, err.text);
    cr_expect(strstr(err.text, "verdict: "), "%s: %s", what, err.text);
}

/* Puts each forged statement in place of each absent answer of a verdict. Returns the number of
 * absent answers. */
static size_t try_absences(const vd_buf *verdict, const vd_hash *assignment) {
    json_t *root = test_payload(verdict), *item;
    json_t *list = json_object_get(json_object_get(root, "predicate"), "evidence");
    size_t at, absent = 0;
    vd_err err = {0};
    cr_expect(verify(root, &err) == VD_OK, "%s", err.text);
    json_array_foreach(list, at, item) {
        json_t *why = json_incref(json_object_get(item, "absent"));
        if (!why)
            continue;
        absent++;
        json_object_del(item, "absent");
        for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++)
            expect_refused(root, item, forge(&forgeries[i], item, assignment), forgeries[i].what);
        expect_refused(root, item, json_null(), "null");
        expect_refused(root, item, json_string("x"), "a string");
        expect_refused(root, item, json_array(), "a list");
        expect_refused(root, item, json_object(), "an empty object");
        expect_refused(root, item, member("payload", "e30="), "a part of a note");
        json_object_del(item, "statement");
        json_object_set_new(item, "absent", why);
    }
    json_decref(root);
    return absent;
}

/* Returns true if the dispute ended before this round. */
static bool try_dispute(test_dispute *d, uint32_t round) {
    test_settle(d);
    cr_assert(d->status == VD_OK, "%s", d->err.text);
    const bool over = d->rounds < round;
    cr_expect(over || try_absences(&d->verdict, &d->assignment) > 0, "no answer is missing");
    test_dispute_close(d);
    return over;
}

/* Provider 0 is silent in each round, including that of the inputs, for which it alone is asked.
 * Provider 1 is silent in the rounds before that. */
Test(verdict_forged, statement_is_no_silence_in_any_round_of_two, .timeout = 300) {
    pair x;
    open_pair(&x, VD_MODEL_MLP, "element@1");
    for (lost what = {0, 1}; what.party < 2; what.party++)
        for (what.round = 1; what.round <= (what.party ? 8u : 64u); what.round++) {
            test_dispute d = {.job = &x.job,
                              .side = {&x.honest.side, &x.liar.side},
                              .transit = lose,
                              .user = &what};
            if (try_dispute(&d, what.round))
                break;
        }
    close_pair(&x);
}

Test(verdict_forged, statement_is_no_silence_of_a_challenger) {
    pair x;
    open_pair(&x, VD_MODEL_MLP, "lr@1");
    test_dispute d = {.job = &x.job, .side = {&x.honest.side, &x.liar.side}, .challenge = true};
    try_dispute(&d, 1); /* the challenger has no second run */
    close_pair(&x);
}

/* Silences providers in the opening, in a game, and when asked for a second run. */
static void silence(test_tournament *t, uint32_t provider, const vd_outgoing *question,
                    vd_buf *note) {
    (void)t;
    if (provider == 3 || (provider == 2 && strncmp(question->text, "prove", 5) == 0))
        note->size = 0;
}

Test(verdict_forged, statement_is_no_silence_among_many) {
    static const char *const faults[] = {NULL, "lr@1", "poison@2", NULL};
    test_job job;
    test_provider side[4];
    test_job_open(&job, VD_MODEL_MLP, 3, 3);
    test_tournament t = {.job = &job, .count = 4, .challenge = true, .gate = silence};
    for (uint32_t p = 0; p < 4; p++) {
        vd_fault fault = {0};
        if (faults[p])
            fault = test_fault(&job, faults[p]);
        test_provider_open(&side[p], &job, (uint8_t)(p + 1), faults[p] ? &fault : NULL);
        t.side[p] = &side[p].side;
    }
    test_hold(&t);
    cr_assert(t.status == VD_OK, "%s", t.err.text);
    cr_expect(try_absences(&t.verdict, &t.assignment) >= 3);
    test_tournament_close(&t);
    for (uint32_t p = 0; p < 4; p++)
        test_provider_close(&side[p]);
    test_job_close(&job);
}
