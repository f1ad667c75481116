#include "verde/protocol/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"

#define STATEMENT_TYPE "https://in-toto.io/Statement/v1"

/* ---- the outcome ---- */

static json_t *hex32(uint32_t bits) {
    char text[16];
    snprintf(text, sizeof text, "0x%08x", bits);
    return json_string(text);
}

static json_t *party_json(const vd_outcome *o, uint32_t p, const vd_public_key *key) {
    static const char *const standing[] = {"stands", "convicted", "forfeited", "dismissed"};
    const struct vd_party_outcome *party = &o->party[p];
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, hex);
    json_t *out = json_pack("{ss ss}", "key", hex, "standing", standing[party->standing]);
    if (party->standing != VD_STANDS) {
        json_object_set_new(out, "grade", json_string(vd_grade_name(party->grade)));
        json_object_set_new(out, "reason", json_string(party->reason));
    }
    if (party->claimed)
        json_object_set_new(out, "run_root", vd_json_hash(&party->run_root));
    if (o->place.element >= 0)
        json_object_set_new(out, "value", hex32(o->place.value[p]));
    return out;
}

/* NULL: the log was not read. */
static json_t *logged_json(const vd_place *place) {
    switch (place->logged_as) {
    case VD_LOGGED_UNREAD: return NULL;
    case VD_LOGGED_RANGE:
        return json_pack("[o, o]", hex32(place->logged[0]), hex32(place->logged[1]));
    case VD_LOGGED_NOTHING: return json_string("missing");
    case VD_LOGGED_OTHER: return json_string("none of them");
    }
    return NULL;
}

static void put_place(json_t *out, const vd_place *place) {
    if (place->step != VD_NO_STEP)
        json_object_set_new(out, "step", json_integer(place->step));
    if (place->node >= 0) {
        json_object_set_new(out, "node", json_integer(place->node));
        json_object_set_new(out, "node_name", json_string(place->node_name));
        json_object_set_new(out, "operator", json_string(place->operator_name));
    }
    if (place->element >= 0)
        json_object_set_new(out, "element", json_integer(place->element));
    if (place->part >= 0)
        json_object_set_new(out, "part", json_integer(place->part));
    if (place->computed)
        json_object_set_new(out, "expected", hex32(place->expected));
    if (place->rounded)
        json_object_set_new(
            out, "possible",
            json_pack("[o, o]", hex32(place->possible[0]), hex32(place->possible[1])));
    json_t *logged = logged_json(place);
    if (logged)
        json_object_set_new(out, "logged", logged);
}

static json_t *challenge_json(const vd_outcome *o) {
    const struct vd_challenge_outcome *c = &o->challenge;
    json_t *out =
        json_pack("{ss si}", "end", vd_challenge_name(c->end), "provider", (int)c->challenger);
    if (c->claimed)
        json_object_set_new(out, "run_root", vd_json_hash(&c->run_root));
    if (c->end < VD_CHALLENGE_FAILED)
        return out;
    if (c->grade != VD_GRADE_NONE) {
        json_object_set_new(out, "grade", json_string(vd_grade_name(c->grade)));
        json_object_set_new(out, "reason", json_string(c->reason));
    }
    put_place(out, &c->place);
    if (c->place.element >= 0)
        json_object_set_new(
            out, "values", json_pack("[o, o]", hex32(c->place.value[0]), hex32(c->place.value[1])));
    return out;
}

json_t *vd_outcome_json(const vd_outcome *o, const vd_assignment *assignment) {
    json_t *parties = json_array();
    for (uint32_t p = 0; p < o->party_count; p++)
        json_array_append_new(parties, party_json(o, p, &assignment->provider[p]));
    json_t *out = json_pack("{ss so sb sI}", "result", vd_result_name(o->result), "providers",
                            parties, "accepted", o->accepted, "rounds", (json_int_t)o->rounds);
    if (o->accepted)
        json_object_set_new(out, "run_root", vd_json_hash(&o->run_root));
    put_place(out, &o->place);
    if (o->challenge.end != VD_CHALLENGE_NONE)
        json_object_set_new(out, "challenge", challenge_json(o));
    return out;
}

/* ---- writing ---- */

static json_t *note_object(const vd_buf *note) {
    json_t *out;
    return vd_json_read(note->data, note->size, VD_SMALL_ELEMENTS, &out, NULL) == VD_OK ? out
                                                                                        : NULL;
}

static json_t *evidence(const vd_referee *dispute) {
    size_t count;
    const vd_statement *s = vd_referee_statements(dispute, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_pack("{si so}", "provider", (int)s[i].party, "question",
                                 vd_json_hash(&s[i].question));
        if (s[i].note.size)
            json_object_set_new(item, "statement", note_object(&s[i].note));
        else
            json_object_set_new(item, "absent", json_string(s[i].why));
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *cost_json(const vd_cost *cost) {
    return json_pack("{sI sI sf sf sI}", "bytes_in", (json_int_t)cost->bytes_in, "bytes_out",
                     (json_int_t)cost->bytes_out, "seconds", cost->seconds, "cpu_seconds",
                     cost->cpu_seconds, "peak_bytes", (json_int_t)cost->peak_bytes);
}

static json_t *program_json(const vd_program *program) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    char *text = vd_buf_ok(&bytes) ? vd_base64(bytes.data, bytes.size) : NULL;
    json_t *out = text ? json_string(text) : NULL;
    free(text);
    vd_buf_free(&bytes);
    return out;
}

static vd_status open_assignment(const vd_buf *note, vd_buf *payload, vd_assignment *out,
                                 vd_err *err) {
    vd_public_key signer;
    vd_status status = vd_note_signer(note->data, note->size, VD_QUESTION_BYTES_MAX, &signer, err);
    if (status == VD_OK)
        status = vd_note_open(note->data, note->size, VD_QUESTION_BYTES_MAX, VD_TYPE_ASSIGNMENT,
                              &signer, payload, err);
    if (status == VD_OK)
        status = vd_assignment_read(payload->data, payload->size, out, err);
    if (status == VD_OK && memcmp(&signer, &out->referee, sizeof signer) != 0)
        status = vd_fail(err, VD_ERR_PEER, "assignment is not signed by its referee");
    return status;
}

static json_t *statement_json(const vd_program *program, const vd_assignment *a,
                              const vd_buf *assignment_note, const vd_referee *dispute,
                              const vd_cost *cost) {
    json_t *subject =
        json_pack("[{ss s{so}}]", "name", "program", "digest", "sha256", vd_json_hash(&a->program));
    json_t *predicate =
        json_pack("{so so so so so}", "assignment", note_object(assignment_note), "program",
                  program_json(program), "outcome", vd_outcome_json(vd_referee_outcome(dispute), a),
                  "evidence", evidence(dispute), "cost", cost_json(cost));
    return json_pack("{ss so ss so}", "_type", STATEMENT_TYPE, "subject", subject, "predicateType",
                     VD_PREDICATE, "predicate", predicate);
}

vd_status vd_verdict_write(const vd_key *referee, const vd_program *program,
                           const vd_buf *assignment_note, const vd_referee *dispute,
                           const vd_cost *cost, vd_buf *out, vd_err *err) {
    vd_assignment a;
    vd_buf payload = {0}, text = {0};
    json_t *root = NULL;
    vd_status status = open_assignment(assignment_note, &payload, &a, err);
    if (status != VD_OK)
        goto out;
    vd_json_start();
    root = statement_json(program, &a, assignment_note, dispute, cost);
    status = VD_ERR_LOCAL;
    if (!vd_json_dump(root, &text) || vd_json_failed())
        vd_fail(err, VD_ERR_LOCAL, "verdict: out of memory");
    else
        status = vd_note_sign(referee, VD_TYPE_VERDICT, text.data, text.size, out, err);
    if (status == VD_OK && out->size > VD_VERDICT_BYTES_MAX)
        status =
            vd_fail(err, VD_ERR_LOCAL, "verdict: %zu bytes, more than a verifier reads", out->size);
out:
    json_decref(root);
    vd_buf_free(&payload);
    vd_buf_free(&text);
    return status;
}

/* ---- verifying ---- */

typedef struct {
    json_t *root;      /* the in-toto statement */
    vd_buf assignment; /* payload */
    vd_program program;
    const json_t *evidence;
    size_t used;
    vd_err *err;
} replay;

static void replay_free(replay *v) {
    json_decref(v->root);
    vd_buf_free(&v->assignment);
    vd_program_free(&v->program);
}

static vd_status open_verdict(replay *v, const void *note, size_t size,
                              const vd_public_key *referee, vd_verdict *out) {
    vd_buf payload = {0};
    vd_status status = vd_note_signer(note, size, VD_VERDICT_BYTES_MAX, &out->referee, v->err);
    if (status == VD_OK && referee && memcmp(referee, &out->referee, sizeof *referee) != 0)
        status = vd_fail(v->err, VD_ERR_PEER, "verdict is signed by another referee");
    if (status == VD_OK)
        status = vd_note_open(note, size, VD_VERDICT_BYTES_MAX, VD_TYPE_VERDICT, &out->referee,
                              &payload, v->err);
    if (status == VD_OK) {
        status =
            vd_json_read(payload.data, payload.size, VD_VERDICT_ELEMENTS_MAX, &v->root, v->err);
    }
    vd_buf_free(&payload);
    return status;
}

static vd_status read_program(replay *v, const json_t *predicate) {
    const char *text = json_string_value(json_object_get(predicate, "program"));
    vd_buf bytes = {0};
    vd_status status = text ? vd_unbase64(text, strlen(text), &bytes, v->err)
                            : vd_fail(v->err, VD_ERR_PEER, "verdict: no program");
    if (status == VD_OK)
        status = vd_program_decode(bytes.data, bytes.size, &v->program, v->err);
    vd_buf_free(&bytes);
    return status;
}

static bool read_cost(const json_t *cost, vd_cost *out) {
    static const char *const keys[] = {"bytes_in",    "bytes_out",  "seconds",
                                       "cpu_seconds", "peak_bytes", NULL};
    if (!vd_json_has_only(cost, keys))
        return false;
    for (int i = 0; keys[i]; i++)
        if (!json_is_number(json_object_get(cost, keys[i])))
            return false;
    out->bytes_in = (uint64_t)json_integer_value(json_object_get(cost, "bytes_in"));
    out->bytes_out = (uint64_t)json_integer_value(json_object_get(cost, "bytes_out"));
    out->peak_bytes = (uint64_t)json_integer_value(json_object_get(cost, "peak_bytes"));
    out->seconds = json_number_value(json_object_get(cost, "seconds"));
    out->cpu_seconds = json_number_value(json_object_get(cost, "cpu_seconds"));
    return true;
}

static bool is_text(const json_t *object, const char *key, const char *expected) {
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, expected) == 0;
}

static vd_status read_predicate(replay *v, vd_verdict *out) {
    static const char *const root_keys[] = {"_type", "subject", "predicateType", "predicate", NULL};
    static const char *const keys[] = {"assignment", "program", "outcome",
                                       "evidence",   "cost",    NULL};
    const json_t *predicate = json_object_get(v->root, "predicate");
    vd_buf note = {0};
    if (!vd_json_has_only(v->root, root_keys) || !is_text(v->root, "_type", STATEMENT_TYPE) ||
        !is_text(v->root, "predicateType", VD_PREDICATE) || !vd_json_has_only(predicate, keys) ||
        !read_cost(json_object_get(predicate, "cost"), &out->cost))
        return vd_fail(v->err, VD_ERR_PEER, "verdict: not a statement of this kind and version");
    vd_status status = vd_json_dump(json_object_get(predicate, "assignment"), &note)
                           ? open_assignment(&note, &v->assignment, &out->assignment, v->err)
                           : vd_fail(v->err, VD_ERR_PEER, "verdict: no assignment");
    vd_buf_free(&note);
    if (status == VD_OK &&
        memcmp(&out->assignment.referee, &out->referee, sizeof out->referee) != 0)
        status = vd_fail(v->err, VD_ERR_PEER, "verdict is not signed by the assignment's referee");
    if (status == VD_OK)
        status = read_program(v, predicate);
    v->evidence = json_object_get(predicate, "evidence");
    out->statements = json_array_size(v->evidence);
    return status;
}

static bool answers(const json_t *item, const vd_outgoing *q) {
    static const char *const stated[] = {"provider", "question", "statement", NULL};
    static const char *const absent[] = {"provider", "question", "absent", NULL};
    const json_t *provider = json_object_get(item, "provider");
    vd_hash question;
    return (vd_json_has_only(item, stated) || vd_json_has_only(item, absent)) &&
           json_is_integer(provider) && json_integer_value(provider) == (json_int_t)q->party &&
           vd_json_get_hash(item, "question", &question) && vd_hash_equal(&question, &q->question);
}

/* The recorded statement that answers this question, in order: nothing may be left out or added. */
static vd_status feed(replay *v, vd_referee *dispute, const vd_outgoing *q) {
    const json_t *item = json_array_get(v->evidence, v->used++);
    const char *absent = json_string_value(json_object_get(item, "absent"));
    if (!answers(item, q))
        return vd_fail(v->err, VD_ERR_PEER, "verdict: evidence lacks an answer to \"%s\"", q->text);
    if (absent) {
        vd_referee_no_answer(dispute, q->party, absent);
        return VD_OK;
    }
    vd_buf note = {0};
    bool ok = vd_json_dump(json_object_get(item, "statement"), &note);
    if (ok)
        vd_referee_answer(dispute, q->party, note.data, note.size);
    vd_status status = ok ? VD_OK
                          : vd_fail(v->err, note.failed ? VD_ERR_LOCAL : VD_ERR_PEER,
                                    "verdict: a statement is missing");
    vd_buf_free(&note);
    return status;
}

static vd_status replay_dispute(replay *v, vd_referee *dispute) {
    vd_outgoing out[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    while ((status = vd_referee_next(dispute, out, &count, v->err)) == VD_OK && count > 0)
        for (size_t i = 0; i < count && status == VD_OK; i++) {
            status = feed(v, dispute, &out[i]);
            if (status != VD_OK)
                return status;
        }
    if (status == VD_OK && v->used != json_array_size(v->evidence))
        status = vd_fail(v->err, VD_ERR_PEER, "verdict: evidence that no question asked for");
    return status;
}

/* They are sentences for people: another referee has others. */
static void drop_reasons(json_t *outcome) {
    json_t *party;
    size_t p;
    json_array_foreach(json_object_get(outcome, "providers"), p, party)
        json_object_del(party, "reason");
    json_object_del(json_object_get(outcome, "challenge"), "reason");
}

/* Compares the decision made again with the one that is written, member for member. */
static vd_status compare(replay *v, const vd_referee *dispute, vd_verdict *out) {
    const json_t *predicate = json_object_get(v->root, "predicate");
    out->outcome = *vd_referee_outcome(dispute);
    json_t *again = vd_outcome_json(&out->outcome, &out->assignment);
    drop_reasons(again);
    drop_reasons(json_object_get(predicate, "outcome"));
    bool same = json_equal(again, json_object_get(predicate, "outcome"));
    json_decref(again);
    if (!same)
        return vd_fail(v->err, VD_ERR_PEER,
                       "verdict: the evidence leads to another outcome than the one stated");
    json_t *subject = json_pack("[{ss s{so}}]", "name", "program", "digest", "sha256",
                                vd_json_hash(&out->assignment.program));
    same = json_equal(subject, json_object_get(v->root, "subject"));
    json_decref(subject);
    out->program = out->assignment.program;
    return same ? VD_OK : vd_fail(v->err, VD_ERR_PEER, "verdict: of another subject");
}

vd_status vd_verdict_verify(const void *note, size_t size, const vd_public_key *referee,
                            vd_leaf_fn leaf, void (*story)(void *user, const char *line),
                            void *user, vd_verdict *out, vd_err *err) {
    replay v = {.err = err};
    vd_referee *dispute = NULL;
    *out = (vd_verdict){0};
    vd_status status = open_verdict(&v, note, size, referee, out);
    if (status == VD_OK)
        status = read_predicate(&v, out);
    if (status == VD_OK) {
        vd_referee_options options = {.program = &v.program,
                                      .assignment = &v.assignment,
                                      .leaf = leaf,
                                      .story = story,
                                      .user = user};
        status = vd_referee_create(&options, &dispute, err);
    }
    if (status == VD_OK)
        status = replay_dispute(&v, dispute);
    if (status == VD_OK)
        status = compare(&v, dispute, out);
    vd_referee_destroy(dispute);
    replay_free(&v);
    return status == VD_ERR_USAGE ? vd_fail(err, VD_ERR_PEER, "%s", err->text) : status;
}
