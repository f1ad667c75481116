/* Answers with unknown members at every level: these are ignored, and a provider that adds them
 * wins or loses as it would without them. PROTOCOL.md section 5. */
#include "forged_parts.h"
#include "repops/op_product.h"

/* Adds members to each object of an answer, some with names that answers use elsewhere. */
static void add_members(json_t *value) {
    const char *key;
    json_t *member;
    size_t index;
    if (json_is_array(value))
        json_array_foreach(value, index, member) add_members(member);
    if (!json_is_object(value))
        return;
    json_object_foreach(value, key, member) add_members(member);
    json_object_set_new(value, "index", json_integer(7));
    json_object_set_new(value, "comment", json_string("of no meaning"));
    json_object_set_new(value, "more",
                        json_pack("{ss s[s] sn}", "data", "AAAA", "path", "00", "root"));
}

/* The kinds of answers that were changed, as the first two words of their questions. */
typedef struct {
    char seen[64][32];
    int count;
} record;

static void remember(record *r, const char *question) {
    char what[32];
    snprintf(what, sizeof what, "%.31s", question);
    for (char *c = what, spaces = 0; *c; c++)
        if (*c == ' ' && spaces++)
            *c-- = 0;
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->seen[i], what) == 0)
            return;
    cr_assert(r->count < 64);
    memcpy(r->seen[r->count++], what, sizeof what);
}

static void add_to_answer(test_dispute *d, uint32_t party, const vd_outgoing *question,
                          vd_buf *note) {
    if (!note->size)
        return;
    json_t *body = test_answer_body(note);
    add_members(body);
    test_resign(d, party, question, body, note);
    remember(d->user, question->text);
}

/* Both providers add members. test_settle verifies the verdict, which holds these answers. */
static void expect_same(record *r, const test_job *job, const vd_provider *first,
                        const vd_provider *second, bool challenge, const char *what) {
    test_dispute plain = {.job = job, .side = {first, second}, .challenge = challenge};
    test_settle(&plain);
    test_dispute d = {.job = job,
                      .side = {first, second},
                      .challenge = challenge,
                      .transit = add_to_answer,
                      .user = r};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s: %s", what, d.err.text);
    cr_expect(d.outcome.result == plain.outcome.result, "%s: %s, expected %s", what,
              vd_result_name(d.outcome.result), vd_result_name(plain.outcome.result));
    for (int p = 0; p < 2; p++)
        cr_expect(d.outcome.party[p].grade == plain.outcome.party[p].grade,
                  "%s, provider %d: %s: %s", what, p, vd_grade_name(d.outcome.party[p].grade),
                  d.outcome.party[p].reason);
    cr_expect(d.outcome.challenge.end == plain.outcome.challenge.end, "%s: %s", what,
              vd_challenge_name(d.outcome.challenge.end));
    test_dispute_close(&plain);
    test_dispute_close(&d);
}

/* ---- sizes ---- */

typedef struct {
    record *seen;
    uint32_t party; /* the provider whose answers are padded */
    size_t more;    /* bytes beyond what the question allows */
    uint32_t round; /* pad only in this round; 0: in all */
} padding;

static void pad_answer(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    const padding *x = d->user;
    if (party != x->party || !note->size || (x->round && d->rounds != x->round))
        return;
    test_pad(d->side[party]->key, &d->assignment, question, x->more, note);
    remember(x->seen, question->text);
}

static test_dispute settle_padded(const test_job *job, const vd_provider *first,
                                  const vd_provider *second, padding *x) {
    test_dispute d = {.job = job, .side = {first, second}, .transit = pad_answer, .user = x};
    test_settle(&d);
    cr_assert(d.status == VD_OK, "%s", d.err.text);
    return d;
}

/* An answer may be padded up to its limit. With one byte more it does not count, in any round. If
 * it holds inputs, which only one provider is asked for, the other one is asked instead. */
static void try_sizes(record *r, const test_job *job, const vd_provider *honest,
                      const vd_provider *liar, vd_grade grade) {
    padding x = {.seen = r, .party = 1};
    test_dispute d = settle_padded(job, honest, liar, &x);
    test_expect_convicted(&d, 1, grade, "filled up");
    const uint32_t rounds = d.rounds;
    test_dispute_close(&d);
    for (x = (padding){r, 1, 1, 1}; x.round <= rounds; x.round++) {
        d = settle_padded(job, honest, liar, &x);
        if (d.outcome.result == VD_RESULT_FORFEIT) {
            test_expect_forfeited(&d, 1, "a byte too many");
            cr_expect(strstr(d.outcome.party[1].reason, "at most"), "%s",
                      d.outcome.party[1].reason);
        } else { /* was asked nothing in that round */
            test_expect_convicted(&d, 1, grade, "a byte too many");
            cr_expect(x.round > 14, "round %u", x.round);
        }
        test_dispute_close(&d);
    }
}

Test(members, of_an_answer_that_make_it_larger_than_its_question_allows_make_it_none,
     .timeout = 300) {
    record r = {.count = 0};
    test_job job;
    test_provider honest, liar;
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    const vd_fault f = test_fault(&job, "element@4:adamw.layer.1.bias.m");
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &f);
    try_sizes(&r, &job, &honest.side, &liar.side, VD_GRADE_WRONG_OUTPUT);
    cr_expect(r.count >= 12, "%d kinds of answers", r.count);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}

/* ---- all kinds ---- */

static void try_model(record *r, const char *fault) {
    test_job job;
    test_provider honest, liar;
    test_job_open(&job, VD_MODEL_MLP, 6, 3);
    const vd_fault f = test_fault(&job, fault), again = test_fault(&job, "poison@5");
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &f);
    expect_same(r, &job, &honest.side, &liar.side, false, fault);
    test_provider_runs_again(&liar, &again);
    expect_same(r, &job, &liar.side, &honest.side, true, fault);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}

static void try_fold(record *r) {
    test_job job;
    test_provider honest, liar;
    forger f;
    test_job_open_folds(&job, 2, 5000, 2);
    const vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&job, 1, RO_OP_MATMUL), 5, 20};
    test_provider_open(&honest, &job, 1, NULL);
    test_provider_open(&liar, &job, 2, &fault);
    parts_forge(&f, &liar, &job, fault.node);
    f.what = FROM_ONE_ON;
    f.at = 5;
    expect_same(r, &job, &honest.side, &liar.side, false, "a long sum");
    parts_forget(&f);
    test_provider_close(&liar);
    test_provider_close(&honest);
    test_job_close(&job);
}

static void try_rounding(record *r, const char *fault) {
    test_job job;
    test_provider trainer, auditor;
    vd_public_key key;
    vd_err err = {0};
    test_job_open(&job, VD_MODEL_GPT2, 4, 2);
    test_job_round(&job, 32, VD_LOG_CALLS);
    const vd_fault f = test_fault(&job, fault);
    test_party party = {.profile = "sim-wide"};
    cr_assert(test_party_open(&trainer, &job, 1, &party, &f, &err) == VD_OK, "%s", err.text);
    vd_key_public(trainer.key, &key);
    party = (test_party){"sim-deep", &trainer, &key, .contest = true};
    cr_assert(test_party_open(&auditor, &job, 2, &party, NULL, &err) == VD_OK, "%s", err.text);
    expect_same(r, &job, &trainer.side, &auditor.side, false, fault);
    test_provider_close(&auditor);
    test_provider_close(&trainer);
    test_job_close(&job);
}

Test(members, that_no_document_names_change_nothing_at_any_level_of_any_answer, .timeout = 300) {
    static const char *const kinds[] = {
        "commit",       "reveal",      "open run",   "prove run",   "subrun states", "open states",
        "prove states", "trace trace", "open trace", "prove trace", "prove state",   "prove tensor",
        "open tensor",  "prove fold",  "open fold",  "challenge",   "note run",      "section log",
    };
    record r = {.count = 0};
    try_model(&r, "poison@4");
    try_model(&r, "element@4:adamw.layer.1.bias.m");
    try_model(&r, "lr@1");
    try_model(&r, "skip@4");
    try_model(&r, "weights");
    try_fold(&r);
    try_rounding(&r, "drop-record@1");
    try_rounding(&r, "two-logs@2");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bool seen = false;
        for (int k = 0; k < r.count; k++)
            seen |= strcmp(r.seen[k], kinds[i]) == 0;
        cr_expect(seen, "no answer of the kind \"%s\" was changed", kinds[i]);
    }
}
