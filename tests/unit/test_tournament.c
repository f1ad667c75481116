/* More than two providers, any number of them dishonest: every honest one stands, its claim is
 * accepted, and every wrong one falls. */
#include "tests/support/tournament.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, EVERY = 2, MOST = 16 };

/* A job that several providers have run. */
typedef struct {
    test_job job;
    test_provider provider[MOST];
    test_tournament t;
} group;

/* faults[p] is that of provider p, or NULL if it is honest. */
static void gather(group *g, const char *const *faults, uint32_t count) {
    memset(g, 0, sizeof *g);
    test_job_open(&g->job, VD_MODEL_MLP, STEPS, EVERY);
    g->t = (test_tournament){.job = &g->job, .count = count};
    for (uint32_t p = 0; p < count; p++) {
        vd_fault fault = {0};
        if (faults[p])
            fault = test_fault(&g->job, faults[p]);
        test_provider_open(&g->provider[p], &g->job, (uint8_t)(p + 1), faults[p] ? &fault : NULL);
        g->t.side[p] = &g->provider[p].side;
    }
}

static void disperse(group *g) {
    test_tournament_close(&g->t);
    for (uint32_t p = 0; p < g->t.count; p++)
        test_provider_close(&g->provider[p]);
    test_job_close(&g->job);
}

static void expect_count(const group *g, vd_result result, uint32_t games, uint32_t levels,
                         const char *what) {
    const vd_outcome *o = &g->t.outcome;
    cr_expect(o->result == result, "%s: %s", what, vd_result_name(o->result));
    cr_expect(o->game_count == games, "%s: %u games", what, o->game_count);
    cr_expect(o->game_count == 0 || o->game[o->game_count - 1].level == levels, "%s: %u levels",
              what, o->game_count ? o->game[o->game_count - 1].level : 0);
}

/* ---- one honest among wrong ones of every kind ---- */

static const struct {
    const char *fault;
    vd_grade grade;
} kinds[] = {
    {"poison@0", VD_GRADE_WRONG_OUTPUT},  {"element@3", VD_GRADE_WRONG_OUTPUT},
    {"poison@1", VD_GRADE_WRONG_OUTPUT},  {"lr@2", VD_GRADE_WRONG_GRAPH},
    {"seed@0", VD_GRADE_WRONG_GRAPH},     {"lr@1", VD_GRADE_WRONG_GRAPH},
    {"skip@1", VD_GRADE_CONTRADICTION},   {"weights", VD_GRADE_WRONG_OUTPUT},
    {"history@1", VD_GRADE_BAD_PROOF},    {"lr@0", VD_GRADE_WRONG_GRAPH},
    {"skip@3", VD_GRADE_CONTRADICTION},   {"poison@3", VD_GRADE_WRONG_OUTPUT},
    {"element@1", VD_GRADE_WRONG_OUTPUT}, {"lr@3", VD_GRADE_WRONG_GRAPH},
    {"seed@2", VD_GRADE_WRONG_GRAPH},
};

/* Provider `honest` is honest. All others are wrong, each in another way. */
static void one_honest(uint32_t count, uint32_t honest, bool backwards) {
    const char *faults[MOST];
    char what[64];
    group g;
    for (uint32_t p = 0, kind = 0; p < count; p++)
        faults[p] = p == honest ? NULL : kinds[kind++].fault;
    gather(&g, faults, count);
    g.t.backwards = backwards;
    test_hold(&g.t);
    snprintf(what, sizeof what, "%u providers, number %u is honest", count, honest);
    test_expect_accepted(&g.t, honest, what);
    cr_expect(g.t.outcome.result == VD_RESULT_CONVICTED, "%s", what);
    cr_expect(g.t.outcome.game_count <= count - 1, "%s: %u games", what, g.t.outcome.game_count);
    for (uint32_t p = 0, kind = 0; p < count; p++)
        if (p != honest)
            test_expect_fallen(&g.t, p, kinds[kind++].grade, what);
    disperse(&g);
}

Test(tournament, one_honest_provider_stands_against_any_number, .timeout = 300) {
    for (uint32_t count = 3; count <= MOST; count += count < 6 ? 1 : 5) {
        one_honest(count, 0, false);
        one_honest(count, count - 1, true);
        one_honest(count, count / 2, false);
    }
}

Test(tournament, of_all_honest_providers_agrees_without_a_game) {
    static const char *const faults[5] = {NULL};
    group g;
    gather(&g, faults, 5);
    test_hold(&g.t);
    test_expect_accepted(&g.t, 0, "all honest");
    expect_count(&g, VD_RESULT_AGREED, 0, 0, "all honest");
    cr_expect(g.t.outcome.rounds == 2);
    disperse(&g);
}

/* ---- groups ---- */

/* Each member of a wrong group must fall in a game of its own. The honest provider is asked nothing
 * twice. */
Test(tournament, fells_a_wrong_group_member_by_member) {
    static const char *const faults[] = {"poison@1", NULL, "poison@1", "poison@1", "poison@1"};
    group g;
    gather(&g, faults, 5);
    test_hold(&g.t);
    test_expect_accepted(&g.t, 1, "a wrong group");
    expect_count(&g, VD_RESULT_CONVICTED, 4, 4, "a wrong group");
    for (uint32_t p = 0; p < 5; p++)
        if (p != 1)
            test_expect_fallen(&g.t, p, VD_GRADE_WRONG_OUTPUT, "a wrong group");
    cr_expect(g.t.asked[1] == g.t.asked[0], "the honest one is asked %u times, the first liar %u",
              g.t.asked[1], g.t.asked[0]);
    disperse(&g);
}

Test(tournament, halves_the_groups_at_each_level) {
    static const char *const faults[] = {"poison@0",  "poison@1", "lr@2", "skip@3",
                                         "element@3", "seed@0",   "lr@3", NULL};
    group g;
    gather(&g, faults, 8);
    test_hold(&g.t);
    test_expect_accepted(&g.t, 7, "eight groups");
    cr_expect(g.t.outcome.game[g.t.outcome.game_count - 1].level <= 3);
    cr_expect(g.t.outcome.game[0].level == 1 && g.t.outcome.game[3].level == 1);
    disperse(&g);
}

/* ---- liars of other kinds ---- */

typedef struct {
    uint32_t provider;
    enum { SILENT, CONCEDES, REFUSES, COPIES, WRONG_REVEAL, NONSENSE } how;
    vd_ask_kind from; /* from questions of this kind on */
    vd_buf copied;    /* provider 0's last statement */
} liar;

static vd_ask_kind kind_of(const vd_outgoing *q) {
    static const char *const names[] = {"",      "commit", "reveal", "challenge", "subrun",
                                        "trace", "open",   "prove",  "note",      "section"};
    json_t *question = test_payload(q->note);
    const char *ask = json_string_value(json_object_get(question, "ask"));
    int kind = VD_ASK_SECTION;
    while (kind > 0 && strcmp(ask, names[kind]) != 0)
        kind--;
    json_decref(question);
    return (vd_ask_kind)kind;
}

static void copy(test_tournament *t, liar *l, const vd_outgoing *q, uint32_t provider,
                 vd_buf *note) {
    if (provider == 0) {
        l->copied.size = 0;
        vd_put(&l->copied, note->data, note->size);
    } else if (provider == l->provider && kind_of(q) <= VD_ASK_REVEAL) {
        json_t *body = test_answer_body(&l->copied);
        test_state(t, provider, q, body, note);
    }
}

static void lie(test_tournament *t, uint32_t provider, const vd_outgoing *q, vd_buf *note) {
    liar *l = t->user;
    if (l->how == COPIES)
        copy(t, l, q, provider, note);
    if (provider != l->provider || kind_of(q) < l->from)
        return;
    switch (l->how) {
    case SILENT: note->size = 0; break;
    case CONCEDES: test_state(t, provider, q, json_pack("{sb}", "concede", 1), note); break;
    case REFUSES: test_state(t, provider, q, json_pack("{ss}", "refusal", "no"), note); break;
    case NONSENSE: test_state(t, provider, q, json_pack("{ss}", "root", "none"), note); break;
    case WRONG_REVEAL:
        if (kind_of(q) == VD_ASK_REVEAL) {
            json_t *body = test_answer_body(note);
            json_object_set_new(body, "root", vd_hash_text(&(vd_hash){{7}}));
            test_state(t, provider, q, body, note);
        }
        break;
    case COPIES: break;
    }
}

/* Holds a tournament of four providers with these faults, in which `l` changes the statements of
 * its provider. */
static void with_liar(group *g, const char *const *faults, liar *l) {
    gather(g, faults, 4);
    g->t.gate = lie;
    g->t.user = l;
    test_hold(&g->t);
}

static const struct {
    liar l;
    vd_result result; /* if an honest run takes part */
    vd_grade grade;
    const char *what;
} others[] = {
    {{1, SILENT, VD_ASK_COMMIT, {0}}, VD_RESULT_AGREED, VD_GRADE_TIMEOUT, "silent from the start"},
    {{1, SILENT, VD_ASK_REVEAL, {0}}, VD_RESULT_AGREED, VD_GRADE_TIMEOUT, "silent at the reveal"},
    {{1, REFUSES, VD_ASK_COMMIT, {0}}, VD_RESULT_AGREED, VD_GRADE_TIMEOUT, "refuses to commit"},
    {{1, CONCEDES, VD_ASK_REVEAL, {0}}, VD_RESULT_CONVICTED, VD_GRADE_CONCEDED, "concedes"},
    {{1, COPIES, VD_ASK_COMMIT, {0}},
     VD_RESULT_CONVICTED,
     VD_GRADE_CONTRADICTION,
     "hands in and reveals what another did"},
    {{1, WRONG_REVEAL, VD_ASK_COMMIT, {0}},
     VD_RESULT_CONVICTED,
     VD_GRADE_CONTRADICTION,
     "reveals another root"},
    {{1, NONSENSE, VD_ASK_COMMIT, {0}}, VD_RESULT_CONVICTED, VD_GRADE_BAD_PROOF, "nonsense"},
};

Test(tournament, is_not_disturbed_by_who_falls_before_the_games) {
    static const char *const honest[4] = {NULL};
    static const char *const wrong[4] = {NULL, NULL, "poison@1", NULL};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        liar l = others[i].l;
        group g;
        with_liar(&g, honest, &l);
        test_expect_accepted(&g.t, 0, others[i].what);
        test_expect_fallen(&g.t, 1, others[i].grade, others[i].what);
        expect_count(&g, others[i].result, 0, 0, others[i].what);
        disperse(&g);
        vd_buf_free(&l.copied);
        l = others[i].l;
        with_liar(&g, wrong, &l);
        test_expect_accepted(&g.t, 3, others[i].what);
        test_expect_fallen(&g.t, 1, others[i].grade, others[i].what);
        test_expect_fallen(&g.t, 2, VD_GRADE_WRONG_OUTPUT, others[i].what);
        expect_count(&g, VD_RESULT_CONVICTED, 1, 1, others[i].what);
        disperse(&g);
        vd_buf_free(&l.copied);
    }
}

/* A liar with the honest root speaks first for it, and falls on purpose. Then the next member
 * speaks. */
Test(tournament, loses_no_claim_by_a_liar_who_joins_its_group) {
    static const char *const faults[4] = {NULL, NULL, "poison@1", NULL};
    static const struct {
        liar l;
        vd_grade grade;
    } joins[] = {
        {{0, SILENT, VD_ASK_SUBRUN, {0}}, VD_GRADE_TIMEOUT},
        {{0, CONCEDES, VD_ASK_SUBRUN, {0}}, VD_GRADE_CONCEDED},
        {{0, NONSENSE, VD_ASK_SUBRUN, {0}}, VD_GRADE_BAD_PROOF},
        {{0, REFUSES, VD_ASK_PROVE, {0}}, VD_GRADE_TIMEOUT},
    };
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        liar l = joins[i].l;
        group g;
        with_liar(&g, faults, &l);
        test_expect_accepted(&g.t, 1, "joined");
        test_expect_accepted(&g.t, 3, "joined");
        test_expect_fallen(&g.t, 0, joins[i].grade, "joined");
        test_expect_fallen(&g.t, 2, VD_GRADE_WRONG_OUTPUT, "joined");
        expect_count(&g, VD_RESULT_CONVICTED, 2, 2, "joined");
        disperse(&g);
    }
}

Test(tournament, accepts_by_forfeit_where_a_claim_falls_by_silence_alone) {
    static const char *const faults[4] = {NULL, "poison@1", "skip@1", NULL};
    liar l = {1, SILENT, VD_ASK_SUBRUN, {0}};
    group g;
    with_liar(&g, faults, &l);
    test_expect_accepted(&g.t, 0, "silence");
    test_expect_fallen(&g.t, 1, VD_GRADE_TIMEOUT, "silence");
    test_expect_fallen(&g.t, 2, VD_GRADE_CONTRADICTION, "silence");
    expect_count(&g, VD_RESULT_FORFEIT, 2, 2, "silence");
    disperse(&g);
}

static void nobody(test_tournament *t, uint32_t provider, const vd_outgoing *q, vd_buf *note) {
    (void)t, (void)provider, (void)q;
    note->size = 0;
}

Test(tournament, accepts_nothing_if_nobody_answers) {
    static const char *const faults[3] = {NULL};
    group g;
    gather(&g, faults, 3);
    g.t.gate = nobody;
    test_hold(&g.t);
    cr_expect(g.t.outcome.result == VD_RESULT_INCONCLUSIVE && !g.t.outcome.accepted);
    disperse(&g);
}

/* ---- statements of earlier games ---- */

/* From its second game on, provider 0 states another root for its sub-run. */
static void change_story(test_tournament *t, uint32_t provider, const vd_outgoing *q,
                         vd_buf *note) {
    json_t *question = test_payload(q->note);
    const json_int_t game = json_integer_value(json_object_get(question, "game"));
    const char *of = json_string_value(json_object_get(json_object_get(question, "tree"), "of"));
    if (provider == 0 && game > 1 && of && strcmp(of, "subrun") == 0) {
        json_t *body = test_answer_body(note);
        json_object_set_new(body, "root", vd_hash_text(&(vd_hash){{9}}));
        test_state(t, provider, q, body, note);
        *(int *)t->user += 1;
    }
    json_decref(question);
}

/* Both disputes are in one checkpoint interval, at different steps. A provider is held in the
 * second game to what it said about the interval in the first. */
Test(tournament, holds_everybody_to_what_it_said_in_earlier_games) {
    static const char *const faults[] = {NULL, "poison@0", "skip@1"};
    int changed = 0;
    group g;
    gather(&g, faults, 3);
    g.t.gate = change_story;
    g.t.user = &changed;
    test_hold(&g.t);
    cr_assert(g.t.status == VD_OK);
    cr_expect(changed > 0, "the second game asks nothing new of the sub-run");
    test_expect_fallen(&g.t, 0, VD_GRADE_CONTRADICTION, "another root");
    cr_expect(g.t.outcome.party[0].game == 2);
    disperse(&g);
}

/* ---- large answers ---- */

/* Pads the answer to its largest allowed size, with a member that nobody reads. */
static void pad(test_tournament *t, uint32_t provider, const vd_outgoing *q, vd_buf *note) {
    if (provider == 0)
        return;
    test_pad(t->side[provider]->key, &t->assignment, q, 0, note);
    *(uint64_t *)t->user += q->answer_max;
}

/* However many providers pad their answers, the verdict stays almost as small as without
 * padding. */
Test(tournament, costs_little_more_if_liars_make_their_answers_as_large_as_they_may_be) {
    const char *faults[8] = {NULL};
    uint64_t most = 0, plain = 0;
    for (int padded = 0; padded < 2; padded++) {
        group g;
        for (uint32_t p = 1; p < 8; p++)
            faults[p] = kinds[p - 1].fault;
        gather(&g, faults, 8);
        g.t.gate = padded ? pad : NULL;
        g.t.user = &most;
        test_hold(&g.t);
        test_expect_accepted(&g.t, 0, "large answers");
        for (uint32_t p = 1; p < 8; p++)
            test_expect_fallen(&g.t, p, kinds[p - 1].grade, "large answers");
        if (!padded)
            plain = g.t.bytes;
        cr_expect(g.t.bytes < plain + ((uint64_t)2 << 20), "%llu bytes, %llu without padding",
                  (unsigned long long)g.t.bytes, (unsigned long long)plain);
        disperse(&g);
    }
    cr_expect(most < 4 << 20, "answers of %llu bytes would be taken", (unsigned long long)most);
}

/* ---- the rules of a tournament ---- */

Test(tournament, needs_more_than_two_providers) {
    static const char *const faults[] = {NULL, NULL, NULL};
    group g;
    vd_tournament *tournament;
    vd_referee *referee;
    vd_buf payload = {0};
    vd_err err = {0};
    gather(&g, faults, 3);
    vd_assignment a = {.program = g.job.hash};
    vd_key *key = test_referee_key();
    vd_key_public(key, &a.referee);
    for (uint32_t p = 0; p < 3; p++)
        vd_key_public(g.provider[p].key, &a.provider[p]);
    const vd_referee_options options = {
        .program = &g.job.program, .assignment = &payload, .leaf = vd_leaf_element};
    a.provider_count = 2;
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    cr_expect(vd_tournament_create(&options, &tournament, &err) == VD_ERR_USAGE);
    payload.size = 0;
    a.provider_count = 3;
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    cr_expect(vd_referee_create(&options, &referee, &err) == VD_ERR_USAGE);
    vd_buf_free(&payload);
    vd_key_destroy(key);
    disperse(&g);
}

static bool is_assignment(const vd_public_key *keys, uint32_t count) {
    vd_assignment a = {.provider_count = count}, again;
    vd_buf payload = {0};
    vd_key *key = test_referee_key();
    vd_key_public(key, &a.referee);
    memcpy(a.provider, keys, count * sizeof *keys);
    cr_assert(vd_assignment_write(&a, &payload, NULL) == VD_OK);
    const bool is = vd_assignment_read(payload.data, payload.size, &again, NULL) == VD_OK;
    vd_buf_free(&payload);
    vd_key_destroy(key);
    return is;
}

Test(tournament, is_of_64_providers_at_most_and_of_none_twice) {
    vd_public_key keys[VD_PARTIES_MAX];
    for (uint32_t i = 0; i < VD_PARTIES_MAX; i++) {
        uint8_t seed[32];
        vd_key *key;
        memset(seed, (int)i + 1, sizeof seed);
        cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
        vd_key_public(key, &keys[i]);
        vd_key_destroy(key);
    }
    cr_expect(is_assignment(keys, VD_PARTIES_MAX));
    keys[63] = keys[17];
    cr_expect(!is_assignment(keys, VD_PARTIES_MAX));
    cr_expect(is_assignment(keys, 63));
    cr_expect(!is_assignment(keys, 1));
}

/* ---- an honest provider's work ---- */

static uint64_t ask_interval(const vd_source *source, const test_provider *p, int64_t interval) {
    vd_hash states[EVERY + 1], leaf[64];
    const vd_records *trace;
    vd_err err = {0};
    const int64_t first = interval * EVERY;
    cr_assert(source->states(source->user, first, first + EVERY, states, &err) == VD_OK, "%s",
              err.text);
    cr_assert(source->trace(source->user, first + 1, &trace, &err) == VD_OK, "%s", err.text);
    cr_assert(source->leaves(source->user, first + 1, leaf, &err) == VD_OK, "%s", err.text);
    return vd_replay_executed(p->replay);
}

/* Games may leave an interval and come back to it. */
Test(tournament, executes_no_interval_and_no_trace_twice) {
    static const char *const faults[] = {NULL, NULL, NULL};
    group g;
    gather(&g, faults, 3);
    const test_provider *p = &g.provider[0];
    cr_assert(g.job.program.leaf_count <= 64);
    const uint64_t first = ask_interval(&p->side.source, p, 0);
    const uint64_t second = ask_interval(&p->side.source, p, 1);
    cr_expect(first > 0 && second > first);
    cr_expect(ask_interval(&p->side.source, p, 0) == second,
              "the first interval is executed again");
    cr_expect(ask_interval(&p->side.source, p, 1) == second, "the second one is");
    p->side.source.forget(p->side.source.user);
    cr_expect(ask_interval(&p->side.source, p, 0) > second, "what was forgotten is still known");
    disperse(&g);
}

/* ---- the example of PROTOCOL.md, appendix A ---- */

/* Six steps, a checkpoint after every third. The fault is one bit of one element of AdamW's first
 * moment. */
static void gather_example(group *g) {
    static const int64_t step[] = {-1, 4, 4, 1};
    memset(g, 0, sizeof *g);
    test_job_open(&g->job, VD_MODEL_MLP, 6, 3);
    g->t = (test_tournament){.job = &g->job, .count = 4, .challenge = true};
    for (uint32_t p = 0; p < 4; p++) {
        const vd_fault fault = {VD_FAULT_ELEMENT, step[p], 76, 255, 12};
        test_provider_open(&g->provider[p], &g->job, (uint8_t)(p + 1), p ? &fault : NULL);
        g->t.side[p] = &g->provider[p].side;
    }
}

static void expect_hex(const vd_hash *hash, const char *expected, const char *what) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, hex);
    cr_expect(strcmp(hex, expected) == 0, "%s: %s", what, hex);
}

/* Expects that item `index` of the evidence belongs to this provider and question. */
static void expect_item(const test_tournament *t, size_t index, int provider,
                        const char *question) {
    json_t *payload = test_payload(&t->verdict);
    const json_t *list = json_object_get(json_object_get(payload, "predicate"), "evidence");
    const json_t *item = json_array_get(list, index);
    const char *hex = json_string_value(json_object_get(item, "question"));
    cr_expect(json_integer_value(json_object_get(item, "provider")) == provider, "item %zu", index);
    cr_expect(hex && strcmp(hex, question) == 0, "item %zu: %s", index, hex);
    json_decref(payload);
}

static size_t count_items(const test_tournament *t) {
    json_t *payload = test_payload(&t->verdict);
    const size_t count =
        json_array_size(json_object_get(json_object_get(payload, "predicate"), "evidence"));
    json_decref(payload);
    return count;
}

Test(tournament, has_the_hashes_of_the_document) {
    static const uint32_t rounds[] = {15, 12, 14};
    group g;
    gather_example(&g);
    test_hold(&g.t);
    const vd_outcome *o = &g.t.outcome;
    cr_assert(g.t.status == VD_OK && o->game_count == 3);
    expect_hex(&g.t.assignment, "46665e43dd3e6321818dbcc31fc511e42eae11af4305b9805e98966b578870d1",
               "assignment");
    for (uint32_t i = 0; i < 3; i++)
        cr_expect(o->game[i].rounds == rounds[i] && o->game[i].level == i + 1 &&
                      o->game[i].provider[0] == 0 && o->game[i].provider[1] == i + 1,
                  "game %u: %u rounds", i + 1, o->game[i].rounds);
    expect_item(&g.t, 0, 0, "412236b1c361b220936031c618d97d7cc77d1f0ed2e7f2df83774e4d27aca110");
    expect_item(&g.t, 4, 0, "b6aa1d14c2322255fef913399ee35c7fe98f7982330eaac8525863c8ebf8f771");
    expect_item(&g.t, 8, 0, "9546057172f31d2ed60d011e9012dcc2b1965026c8f501b151902a7fb2642a0a");
    expect_item(&g.t, 35, 2, "61ffc93dbbdce7d2c507a35c44d8cf4323afaaa34065d0cbfe53222b48703677");
    expect_item(&g.t, 73, 1, "6b303d4ee6d6c5e7e9fed805a957b327a31d781f8d3fb1883d0ba72968235155");
    cr_expect(count_items(&g.t) == 76, "%zu items", count_items(&g.t));
    disperse(&g);
}
