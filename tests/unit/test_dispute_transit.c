/* Answers changed in transit, and a liar who signs arbitrary things. An honest provider is never
 * convicted for what others say, or do to its answers. */
#include "forged_parts.h"
#include "repops/op_optimizer.h"
#include "repops/op_product.h"

typedef struct {
    test_job job;
    test_provider honest, liar;
    uint32_t first, rounds; /* the first round to fuzz, and how many */
    forger forger;          /* forges the liar's parts of a long sum */
} bench;

static void bench_open(bench *b) {
    *b = (bench){.first = 1, .rounds = 14};
    test_job_open(&b->job, VD_MODEL_MLP, 3, 3);
    vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&b->job, 1, RO_OP_ADAMW_M), 5, 20};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &fault);
}

/* A dispute over a sum of 20 parts that is wrong from the sixth on. The rounds about its parts are
 * the last ones before those about inputs. */
static void bench_open_folds(bench *b) {
    *b = (bench){.first = 10, .rounds = 9};
    test_job_open_folds(&b->job, 2, 5000, 2);
    vd_fault fault = {VD_FAULT_ELEMENT, 1, test_node(&b->job, 1, RO_OP_MATMUL), 5, 20};
    test_provider_open(&b->honest, &b->job, 1, NULL);
    test_provider_open(&b->liar, &b->job, 2, &fault);
    parts_forge(&b->forger, &b->liar, &b->job, fault.node);
    b->forger.what = FROM_ONE_ON;
    b->forger.at = 5;
}

static void bench_close(bench *b) {
    parts_forget(&b->forger);
    test_provider_close(&b->honest);
    test_provider_close(&b->liar);
    test_job_close(&b->job);
}

static void expect_honest_not_convicted(const test_dispute *d, uint32_t honest, const char *what) {
    const struct vd_party_outcome *party = &d->outcome.party[honest];
    cr_assert(d->status == VD_OK, "%s: %s", what, d->err.text);
    cr_expect(party->standing != VD_CONVICTED, "%s: %s: %s", what, vd_grade_name(party->grade),
              party->reason);
    cr_expect(d->outcome.rounds <= VD_ROUNDS_MAX);
}

/* ---- somebody in the middle ---- */

typedef struct {
    const char *name;
    void (*change)(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random);
} mutation;

typedef struct {
    const mutation *mutation;
    uint32_t honest, round; /* the provider whose answer is changed, and in which round */
    vd_buf earlier, rival;  /* the last note of each */
    uint64_t random;
    bool changed;
} middle;

static void put_note(vd_buf *to, const vd_buf *from) {
    to->size = 0;
    vd_put(to, from->data, from->size);
}

static void flip_bit(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    (void)earlier, (void)rival;
    note->data[test_random(random) % note->size] ^= (uint8_t)(1u << test_random(random) % 7);
}

static void truncate_note(vd_buf *note, const vd_buf *earlier, const vd_buf *rival,
                          uint64_t *random) {
    (void)earlier, (void)rival;
    note->size = test_random(random) % note->size;
}

static void use_rivals(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    (void)earlier, (void)random;
    put_note(note, rival);
}

static void use_earlier(vd_buf *note, const vd_buf *earlier, const vd_buf *rival,
                        uint64_t *random) {
    (void)rival, (void)random;
    put_note(note, earlier);
}

static void empty(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    (void)earlier, (void)rival, (void)random;
    note->size = 0;
}

static void garbage(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    (void)earlier, (void)rival;
    note->size = 0;
    for (int i = 0; i < 1 << 17; i++)
        vd_put_u64(note, test_random(random));
}

static void deep_json(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    (void)earlier, (void)rival, (void)random;
    note->size = 0;
    vd_printf(note, "{\"payload\":");
    for (int i = 0; i < 100000; i++)
        vd_put_u8(note, '[');
}

static void doubled(vd_buf *note, const vd_buf *earlier, const vd_buf *rival, uint64_t *random) {
    vd_buf once = {0};
    (void)earlier, (void)rival, (void)random;
    put_note(&once, note);
    vd_put(note, once.data, once.size);
    vd_buf_free(&once);
}

static const mutation mutations[] = {
    {"flip a bit", flip_bit},
    {"truncate", truncate_note},
    {"the rival's note", use_rivals},
    {"an earlier answer", use_earlier},
    {"nothing", empty},
    {"a megabyte of garbage", garbage},
    {"100,000 brackets", deep_json},
    {"the note twice", doubled},
};

static void meddle(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    middle *m = d->user;
    (void)question;
    if (party != m->honest) {
        put_note(&m->rival, note);
        return;
    }
    if (d->rounds == m->round && note->size && m->rival.size && m->earlier.size) {
        m->mutation->change(note, &m->earlier, &m->rival, &m->random);
        m->changed = true;
        return;
    }
    put_note(&m->earlier, note);
}

/* Returns false if the dispute ended before that round. */
static bool try_meddling(const bench *b, const mutation *how, uint32_t honest, uint32_t round) {
    char what[96];
    middle m = {.mutation = how, .honest = honest, .round = round, .random = round};
    test_dispute d = {.job = &b->job, .transit = meddle, .user = &m};
    vd_put(&m.earlier, "{}", 2);
    vd_put(&m.rival, "{}", 2);
    d.side[honest] = &b->honest.side;
    d.side[1 - honest] = &b->liar.side;
    test_settle(&d);
    snprintf(what, sizeof what, "%s in round %u, honest one at place %u", how->name, round, honest);
    expect_honest_not_convicted(&d, honest, what);
    /* in the last rounds the rival can give agreed inputs instead, and is still convicted */
    if (m.changed && d.outcome.party[honest].standing == VD_STANDS)
        test_expect_convicted(&d, 1 - honest, VD_GRADE_WRONG_OUTPUT, what);
    test_dispute_close(&d);
    vd_buf_free(&m.earlier);
    vd_buf_free(&m.rival);
    return d.rounds >= round;
}

/* Tries all rounds, up to one more than there are. */
static uint32_t try_rounds(const bench *b) {
    uint32_t round = b->first;
    for (bool reached = true; reached; round++) {
        reached = false;
        for (size_t i = 0; i < sizeof mutations / sizeof mutations[0]; i++)
            reached |= try_meddling(b, &mutations[i], (round + i) % 2, round);
    }
    return round;
}

Test(transit, nothing_done_to_an_honest_answer_convicts, .timeout = 120) {
    bench b;
    bench_open(&b);
    const uint32_t round = try_rounds(&b);
    cr_expect(round > 12, "only %u rounds", round);
    bench_close(&b);
    bench_open_folds(&b);
    const uint32_t of_folds = try_rounds(&b);
    cr_expect(of_folds > b.first + b.rounds, "only %u rounds", of_folds);
    bench_close(&b);
}

/* ---- a liar signs anything ---- */

/* A position in a JSON value: a member or an element. */
typedef struct {
    json_t *in;
    const char *key; /* NULL: an array */
    size_t index;
} slot;

enum { SLOTS_MAX = 512 };

static void collect(json_t *value, slot *slots, size_t *count) {
    const char *key;
    size_t index;
    json_t *child;
    json_object_foreach(value, key, child) {
        if (*count < SLOTS_MAX)
            slots[(*count)++] = (slot){value, key, 0};
        collect(child, slots, count);
    }
    json_array_foreach(value, index, child) {
        if (*count < SLOTS_MAX)
            slots[(*count)++] = (slot){value, NULL, index};
        collect(child, slots, count);
    }
}

static json_t *get_slot(const slot *s) {
    return s->key ? json_object_get(s->in, s->key) : json_array_get(s->in, s->index);
}

static void set_slot(const slot *s, json_t *value) {
    if (s->key)
        json_object_set_new(s->in, s->key, value);
    else
        json_array_set_new(s->in, s->index, value);
}

static json_t *nested(uint64_t depth) {
    json_t *out = json_array();
    while (depth-- > 0)
        out = json_pack("[o]", out);
    return out;
}

static json_t *long_string(void) {
    char *text = calloc(1, 100001);
    memset(text, 'a', 100000);
    json_t *out = json_string(text);
    free(text);
    return out;
}

/* Changes a character, or the length. */
static json_t *changed_string(const json_t *value, uint64_t *random) {
    char *text = strdup(json_string_value(value));
    size_t length = strlen(text);
    if (length && test_random(random) % 4)
        text[test_random(random) % length] = "0123456789abcdefAF+/=z"[test_random(random) % 22];
    else if (length)
        text[test_random(random) % length] = 0;
    json_t *out = json_string(text);
    free(text);
    return out;
}

static json_t *anything(const json_t *value, uint64_t *random) {
    if (json_is_string(value) && test_random(random) % 2)
        return changed_string(value, random);
    switch (test_random(random) % 9) {
    case 0: return json_null();
    case 1: return json_integer((json_int_t)test_random(random));
    case 2: return json_real(1e300);
    case 3: return json_true();
    case 4: return json_object();
    case 5: return nested(test_random(random) % 4000); /* some nest deeper than a parser accepts */
    case 6: return long_string();
    case 7: return json_string("");
    default: return json_array();
    }
}

static void change_body(json_t *body, uint64_t *random) {
    slot slots[SLOTS_MAX];
    size_t count = 0;
    collect(body, slots, &count);
    if (count == 0)
        return;
    const slot *at = &slots[test_random(random) % count];
    const slot *other = &slots[test_random(random) % count];
    switch (test_random(random) % 6) {
    case 0:
        if (at->key)
            json_object_del(at->in, at->key);
        else
            json_array_remove(at->in, at->index);
        break;
    case 1: set_slot(at, json_deep_copy(get_slot(other))); break;
    case 2:
        if (at->key)
            json_object_set_new(at->in, "more", anything(NULL, random));
        else
            json_array_append_new(at->in, json_deep_copy(get_slot(at)));
        break;
    default: set_slot(at, anything(get_slot(at), random)); break;
    }
}

typedef struct {
    uint32_t liar, round; /* counted within the hearing */
    uint64_t random;
    bool second; /* changes the second hearing, which begins after round `challenge` */
    uint32_t challenge;
} fuzzer;

/* Signs bytes that may be no JSON at all. */
static void change_bytes(test_dispute *d, uint32_t party, vd_buf *note, uint64_t *random) {
    vd_buf payload = test_dump(test_payload(note));
    for (uint64_t i = 0; i <= test_random(random) % 3; i++)
        payload.data[test_random(random) % payload.size] ^=
            (uint8_t)(1u << test_random(random) % 8);
    note->size = 0;
    cr_assert(vd_note_sign(d->side[party]->key, VD_TYPE_ANSWER, payload.data, payload.size, note,
                           NULL) == VD_OK);
    vd_buf_free(&payload);
}

/* Changes the answer of the chosen round, and about one in four of the later ones. */
static void fuzz(test_dispute *d, uint32_t party, const vd_outgoing *question, vd_buf *note) {
    fuzzer *f = d->user;
    uint32_t round = d->rounds - f->challenge;
    if (question->whole_run)
        f->challenge = d->rounds;
    if (party != f->liar || !note->size || question->whole_run || (f->second && !f->challenge) ||
        round < f->round || (round > f->round && test_random(&f->random) % 4))
        return;
    if (test_random(&f->random) % 4 == 0) {
        change_bytes(d, party, note, &f->random);
        return;
    }
    json_t *body = test_answer_body(note);
    for (uint64_t i = 0; i <= test_random(&f->random) % 3; i++)
        change_body(body, &f->random);
    test_resign(d, party, question, body, note);
}

static void try_fuzz(const bench *b, uint64_t seed, bool second) {
    char what[64];
    fuzzer f = {.liar = seed % 2,
                .round = b->first + (uint32_t)(seed / 2 % b->rounds),
                .random = seed,
                .second = second};
    test_dispute d = {.job = &b->job, .transit = fuzz, .user = &f, .challenge = second};
    d.side[f.liar] = &b->liar.side;
    d.side[1 - f.liar] = &b->honest.side;
    test_settle(&d);
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    cr_expect(!second || d.outcome.challenge.end >= VD_CHALLENGE_FAILED, "%s: no second hearing",
              what);
    expect_honest_not_convicted(&d, 1 - f.liar, what);
    cr_expect(d.outcome.party[1 - f.liar].standing == VD_STANDS, "%s: honest one forfeited", what);
    cr_expect(d.outcome.party[f.liar].standing != VD_STANDS, "%s: the liar stands", what);
    cr_expect(d.outcome.accepted && vd_hash_equal(&d.outcome.run_root, &b->honest.run.run_root),
              "%s: the honest claim is not accepted", what);
    test_dispute_close(&d);
}

Test(transit, a_liar_that_signs_anything_never_wins, .timeout = 300) {
    bench b;
    bench_open(&b);
    for (uint64_t seed = 0; seed < 400; seed++)
        try_fuzz(&b, seed, false);
    bench_close(&b);
    bench_open_folds(&b);
    for (uint64_t seed = 1000; seed < 1300; seed++)
        try_fuzz(&b, seed, false);
    bench_close(&b);
}

/* The liar signs arbitrary things as the challenger in the second hearing: having lost the first
 * one, it has nothing left to lose. */
Test(transit, a_challenger_that_signs_anything_never_wins, .timeout = 300) {
    bench b;
    bench_open(&b);
    vd_fault second = test_fault(&b.job, "poison@2");
    test_provider_runs_again(&b.liar, &second);
    for (uint64_t seed = 0; seed < 200; seed++)
        try_fuzz(&b, seed, true);
    bench_close(&b);
}
