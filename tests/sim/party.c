#include "tests/sim/party.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/keys.h"
#include "tests/sim/memo.h"

enum { STRANGER = 127 }; /* number of a key that no assignment names */

const char *sim_way_name(sim_way way) {
    static const char *const names[SIM_WAYS] = {
        "consistent",  "honest-looking", "another root", "wrong proof",     "one hash less",
        "nonsense",    "concession",     "refusal",      "silence",         "garbage",
        "another key", "bad signature",  "replay",       "copy of a rival", "more members"};
    return names[way];
}

uint64_t sim_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t sim_below(uint64_t *state, uint32_t bound) {
    return (uint32_t)((sim_random(state) >> 32) * bound >> 32);
}

/* ---- opening and closing ---- */

static vd_provider side_of(const toy_job *job, const vd_key *key, toy_run *run) {
    return (vd_provider){
        .program = &job->program, .program_hash = job->hash, .key = key, .source = toy_source(run)};
}

void sim_party_open(sim_party *p, const toy_job *job, toy_run *run, toy_run *other,
                    uint32_t number) {
    *p = (sim_party){.key = sim_key(number), .random = number};
    p->side[0] = side_of(job, p->key, run);
    p->side[1] = side_of(job, p->key, other ? other : run);
    p->to = UINT32_MAX;
}

void sim_party_close(sim_party *p) {
    sim_party_renew(p);
    vd_key_destroy(p->key);
}

static vd_status second_run(void *user, vd_source *out, vd_err *err) {
    const sim_again *again = user;
    if (again->fails)
        return vd_fail(err, VD_ERR_LOCAL, "no space left on device");
    *out = toy_source(again->run);
    return VD_OK;
}

void sim_party_runs_again(sim_party *p, sim_again again) {
    p->again = again;
    for (int i = 0; i < 2; i++) {
        p->side[i].run_again = again.run ? second_run : NULL;
        p->side[i].again = &p->again;
    }
}

void sim_party_renew(sim_party *p) {
    vd_buf_free(&p->last);
    p->last = (vd_buf){0};
    p->name = (vd_hash){{0}};
    p->asked = 0;
}

/* ---- reading notes ---- */

static json_t *parse(const void *text, size_t size) {
    json_t *root = json_loadb(text, size, 0, NULL);
    sim_need(root != NULL, "an answer is no JSON");
    return root;
}

static vd_buf text_of(const json_t *root) {
    vd_buf out = {0};
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    sim_need(text != NULL, "out of memory");
    vd_put(&out, text, strlen(text));
    free(text);
    return out;
}

static json_t *payload_of(const vd_buf *note) {
    vd_buf payload = {0};
    json_t *envelope = parse(note->data, note->size);
    const char *text = json_string_value(json_object_get(envelope, "payload"));
    sim_need(text && vd_unbase64(text, strlen(text), &payload, NULL) == VD_OK, "no payload");
    json_t *root = parse(payload.data, payload.size);
    json_decref(envelope);
    vd_buf_free(&payload);
    return root;
}

/* Signs a statement again as this key's own. Steals the payload. */
static void state_by(const vd_key *key, json_t *payload, vd_buf *note) {
    vd_buf text = text_of(payload);
    note->size = 0;
    sim_need(vd_note_sign(key, VD_TYPE_ANSWER, text.data, text.size, note, NULL) == VD_OK,
             "no signature");
    vd_buf_free(&text);
    json_decref(payload);
}

/* ---- changing statements ---- */

/* Changes one digit of a text, or all of them, but not the last two, within the same alphabet. */
static json_t *changed_text(const json_t *value, uint64_t *random) {
    char *copy = strdup(json_string_value(value));
    sim_need(copy != NULL, "out of memory");
    const size_t size = strlen(copy), end = size > 2 ? size - 2 : size;
    const bool all = sim_below(random, 2) == 0;
    const size_t at = end ? sim_below(random, (uint32_t)end) : 0;
    for (size_t i = all ? 0 : at; i < (all ? end : at + (end > 0)); i++)
        copy[i] = copy[i] == '0' ? '1' : '0';
    json_t *out = json_string(copy);
    free(copy);
    return out;
}

static size_t count_texts(const json_t *value) {
    const char *name;
    json_t *each;
    size_t count = json_is_string(value), i;
    json_object_foreach((json_t *)value, name, each) count +=
        strcmp(name, "root") == 0 ? 0 : count_texts(each);
    json_array_foreach(value, i, each) count += count_texts(each);
    return count;
}

/* Changes the *left-th of all texts below a value, not counting roots. */
static json_t *with_text_changed(json_t *value, size_t *left, uint64_t *random) {
    const char *name;
    json_t *each;
    size_t i;
    if (json_is_string(value))
        return (*left)-- == 0 ? changed_text(value, random) : json_incref(value);
    json_object_foreach(value, name, each) if (strcmp(name, "root") != 0)
        json_object_set_new(value, name, with_text_changed(each, left, random));
    json_array_foreach(value, i, each)
        json_array_set_new(value, i, with_text_changed(each, left, random));
    return json_incref(value);
}

static void change_proof(json_t *body, uint64_t *random) {
    const size_t count = count_texts(body);
    size_t left = count ? sim_below(random, (uint32_t)count) : 0;
    if (count)
        json_decref(with_text_changed(body, &left, random));
}

static void change_root(json_t *body, uint64_t *random) {
    const char *name = json_object_get(body, "root") ? "root" : "commit";
    json_t *old = json_object_get(body, name);
    if (json_is_string(old))
        json_object_set_new(body, name, changed_text(old, random));
}

static void take_one_away(json_t *body) {
    static const char *const lists[] = {"hashes", "leaves"};
    bool taken = false;
    for (int i = 0; i < 2; i++) {
        json_t *list = json_object_get(body, lists[i]);
        taken |=
            json_array_size(list) > 0 && json_array_remove(list, json_array_size(list) - 1) == 0;
    }
    if (!taken)
        json_object_clear(body);
}

static void add_members(json_t *body) {
    json_object_set_new(body, "more", json_pack("[is{}]", 1, "two"));
}

static void change_body(sim_way way, json_t *payload, uint64_t *random) {
    json_t *body = json_object_get(payload, "answer");
    switch (way) {
    case SIM_OTHER_ROOT: change_root(body, random); break;
    case SIM_WRONG_PROOF: change_proof(body, random); break;
    case SIM_LESS: take_one_away(body); break;
    case SIM_NONSENSE:
        json_object_set_new(payload, "answer", json_pack("{ss}", "root", "none"));
        break;
    case SIM_CONCEDES:
        json_object_set_new(payload, "answer", json_pack("{sb}", "concede", 1));
        break;
    case SIM_REFUSES:
        json_object_set_new(payload, "answer", json_pack("{ss}", "refusal", "no"));
        break;
    case SIM_ADDS: add_members(body); break;
    default: break;
    }
}

static void sign_otherwise(vd_buf *note) {
    vd_key *stranger = sim_key(STRANGER);
    state_by(stranger, payload_of(note), note);
    vd_key_destroy(stranger);
}

static void break_signature(vd_buf *note, uint64_t *random) {
    json_t *envelope = parse(note->data, note->size);
    json_t *signature = json_array_get(json_object_get(envelope, "signatures"), 0);
    json_t *text = json_object_get(signature, "sig");
    json_object_set_new(signature, "sig", changed_text(text, random));
    vd_buf out = text_of(envelope);
    json_decref(envelope);
    vd_buf_free(note);
    *note = out;
}

static void take_copy(const vd_buf *from, vd_buf *note) {
    note->size = 0;
    if (from)
        vd_put(note, from->data, from->size);
}

static void tell_otherwise(sim_party *p, vd_buf *note, uint64_t *random) {
    switch (p->way) {
    case SIM_TELLS:
    case SIM_OTHER_RUN: break;
    case SIM_SILENT: note->size = 0; break;
    case SIM_GARBAGE: note->size = sim_below(random, (uint32_t)note->size + 1); break;
    case SIM_OTHER_KEY: sign_otherwise(note); break;
    case SIM_BAD_SIGNATURE: break_signature(note, random); break;
    case SIM_REPLAYS: take_copy(&p->last, note); break;
    case SIM_COPIES: take_copy(p->rivals, note); break;
    default: {
        json_t *payload = payload_of(note);
        change_body(p->way, payload, random);
        state_by(p->key, payload, note);
    }
    }
}

static bool lies_to(sim_party *p, const vd_hash *name, const char *text) {
    p->asked += !vd_hash_equal(&p->name, name);
    p->name = *name;
    const uint32_t number = p->asked - 1;
    const bool fits = !p->topic || strncmp(text, p->topic, strlen(p->topic)) == 0;
    return p->way != SIM_TELLS && fits && number >= p->from && number < p->to;
}

vd_buf sim_party_answer(sim_party *p, const vd_buf *request, const vd_hash *name,
                        const char *text) {
    const bool lies = lies_to(p, name, text);
    vd_buf note = {0};
    uint64_t chance;
    sim_memo_answer(&p->side[lies && p->way == SIM_OTHER_RUN], request, name, &note);
    memcpy(&chance, name->b, sizeof chance);
    chance ^= p->random;
    if (note.size && lies)
        tell_otherwise(p, &note, &chance);
    take_copy(&note, &p->last);
    return note;
}
