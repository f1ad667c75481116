/* This file checks a signed request, chooses the run that it is about, and signs the answer. */
#include "verde/protocol/inquiry.h"

#include <stdlib.h>
#include <string.h>

static const char *const lie_names[] = {"none",    "proof",      "withhold",
                                        "silence", "contradict", "pad"};

static const char *lie_kinds(void) {
    return "proof, withhold, silence, contradict";
}

vd_status vd_lie_parse(const char *text, vd_lie *out, vd_err *err) {
    for (int i = 1; i <= VD_LIE_PAD; i++)
        if (strcmp(text, lie_names[i]) == 0) {
            *out = (vd_lie)i;
            return VD_OK;
        }
    return vd_fail(err, VD_ERR_USAGE, "fault of a server must be one of %s, got \"%s\"",
                   lie_kinds(), text);
}

static void tell(const vd_inquiry *r, const char *line) {
    if (r->provider->tell)
        r->provider->tell(line);
}

static bool is_enrolled(const vd_assignment *a, const vd_public_key *key) {
    for (uint32_t i = 0; i < a->provider_count; i++)
        if (memcmp(key, &a->provider[i], sizeof *key) == 0)
            return true;
    return false;
}

/* Returns true for questions outside the games: they are put to all providers at once. */
static bool of_no_game(const vd_question *q) {
    return q->kind <= VD_ASK_CHALLENGE;
}

/* Chooses the run to answer from: the second one if this provider is the challenger of a second
 * hearing. Statements about one run are never made about the other. */
static vd_status choose_run(vd_inquiry *r) {
    const vd_provider *p = r->provider;
    const vd_question *q = &r->question;
    vd_public_key key;
    const bool many = r->assignment.provider_count > 2;
    r->source = p->source;
    if (q->of_item) {
        vd_status status = p->item_source(p->items, q->item, &r->source, r->err);
        if (status != VD_OK)
            return status;
    }
    if (many != (q->game > 0) && !of_no_game(q))
        return vd_fail(r->err, VD_ERR_PEER, "request: the question is of %s",
                       many ? "no game" : "a game, and the assignment of none");
    if (q->draws && !r->assignment.audit)
        return vd_fail(r->err, VD_ERR_PEER,
                       "request: the question is of an audit, and the "
                       "assignment of a dispute");
    if (!q->challenged)
        return VD_OK;
    vd_key_public(p->key, &key);
    bool mine = memcmp(&key, &q->challenger, sizeof key) == 0;
    if (many && !mine)
        return vd_fail(r->err, VD_ERR_PEER,
                       "request: only the challenger's own second run is "
                       "asked for as such");
    if (!r->assignment.challenge || !is_enrolled(&r->assignment, &q->challenger))
        return vd_fail(r->err, VD_ERR_PEER, "request: the assignment provides for no such hearing");
    if (!mine && q->kind == VD_ASK_CHALLENGE)
        return vd_fail(r->err, VD_ERR_PEER, "request: another provider is the challenger");
    if (!mine)
        return VD_OK;
    if (!p->run_again)
        return vd_fail(r->err, VD_ERR_PEER, "this provider does not run again");
    vd_status status = p->run_again(p->again, &r->source, r->err);
    /* If the second run failed, the question is refused at once: a root will never come. */
    r->refused = status == VD_ERR_LOCAL && q->kind == VD_ASK_CHALLENGE;
    if (!r->refused)
        return status;
    tell(r, r->err->text);
    return VD_OK;
}

static bool withheld(vd_inquiry *r) {
    if (r->provider->lie == VD_LIE_SILENCE)
        return r->question.kind >= VD_ASK_SUBRUN;
    return r->provider->lie == VD_LIE_WITHHOLD && r->question.tree.kind == VD_TREE_TENSOR;
}

/* ---- requests ---- */

/* Opens a note that is an object inside the request. */
static vd_status open_note(const json_t *note, const char *type, const vd_public_key *key,
                           vd_buf *payload, vd_err *err) {
    vd_buf text = {0};
    vd_status status =
        json_is_object(note) && vd_json_dump(note, &text)
            ? vd_note_open(text.data, text.size, VD_QUESTION_BYTES_MAX, type, key, payload, err)
            : vd_fail(err, VD_ERR_PEER, "request: not a pair of notes");
    vd_buf_free(&text);
    return status;
}

static bool note_signer(const json_t *note, vd_public_key *key) {
    vd_buf text = {0};
    bool ok = json_is_object(note) && vd_json_dump(note, &text) &&
              vd_note_signer(text.data, text.size, VD_QUESTION_BYTES_MAX, key, NULL) == VD_OK;
    vd_buf_free(&text);
    return ok;
}

static bool enrolled(vd_inquiry *r) {
    vd_public_key key;
    vd_key_public(r->provider->key, &key);
    return is_enrolled(&r->assignment, &key);
}

/* Rejects a question for the other role: provider 0 trained, all others followed its log. */
static vd_status check_role(vd_inquiry *r) {
    const vd_emitted_source *served = r->provider->source.served;
    const vd_role role = served ? served->role : 0;
    vd_public_key key;
    vd_key_public(r->provider->key, &key);
    const bool first = memcmp(&key, &r->assignment.provider[0], sizeof key) == 0;
    if (r->assignment.rounded != (role != 0))
        return vd_fail(r->err, VD_ERR_PEER, "request: the run is %s",
                       role ? "one with a rounding log" : "in fixed order");
    if (role && first != (role == VD_TRAINER))
        return vd_fail(r->err, VD_ERR_PEER, "request: the run is the %s's, which is provider %d",
                       role == VD_TRAINER ? "trainer" : "auditor", role == VD_TRAINER ? 1 : 2);
    return VD_OK;
}

static vd_status other_program(vd_inquiry *r) {
    char ours[2 * VD_HASH_SIZE + 1], asked[2 * VD_HASH_SIZE + 1];
    vd_hex(r->provider->program_hash.b, VD_HASH_SIZE, ours);
    vd_hex(r->assignment.program.b, VD_HASH_SIZE, asked);
    return vd_fail(r->err, VD_ERR_PEER, "the job served is program %.8s..., asked for is %.8s...",
                   ours, asked);
}

/* Opens an assignment signed by its referee, and hashes it. */
static vd_status open_assignment(const json_t *note, const vd_public_key *only, vd_assignment *out,
                                 vd_hash *hash, vd_err *err) {
    vd_public_key referee;
    vd_buf payload = {0};
    if (!note_signer(note, &referee))
        return vd_fail(err, VD_ERR_PEER, "request: assignment is not a signed note");
    if (only && memcmp(&referee, only, sizeof referee) != 0)
        return vd_fail(err, VD_ERR_PEER, "request: from another referee than the one served");
    vd_status status = open_note(note, VD_TYPE_ASSIGNMENT, &referee, &payload, err);
    if (status == VD_OK)
        status = vd_assignment_read(payload.data, payload.size, out, err);
    if (status == VD_OK && !vd_assignment_hash(payload.data, payload.size, hash))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&payload);
    if (status == VD_OK && memcmp(&referee, &out->referee, sizeof referee) != 0)
        status = vd_fail(err, VD_ERR_PEER, "request: assignment is not signed by its referee");
    return status;
}

static vd_status read_assignment(vd_inquiry *r, const json_t *note) {
    vd_status status =
        open_assignment(note, r->provider->referee, &r->assignment, &r->assignment_hash, r->err);
    if (status != VD_OK)
        return status;
    if (!vd_hash_equal(&r->assignment.program, &r->provider->program_hash))
        return other_program(r);
    if (!enrolled(r))
        return vd_fail(r->err, VD_ERR_PEER, "request: the assignment names other providers' keys");
    return check_role(r);
}

static vd_status hash_program(vd_inquiry *r) {
    r->program_hash = r->provider->program_hash;
    return r->question.of_item ? vd_program_hash(&r->item_program, &r->program_hash, r->err)
                               : VD_OK;
}

static vd_status read_question(vd_inquiry *r, const json_t *note) {
    const vd_job_programs job = {r->provider->program, r->provider->collection};
    vd_buf payload = {0};
    vd_status status = open_note(note, VD_TYPE_QUESTION, &r->assignment.referee, &payload, r->err);
    if (status == VD_OK)
        status = vd_question_read(payload.data, payload.size, &job, &r->assignment_hash,
                                  &r->question, &r->item_program, r->err);
    if (status == VD_OK)
        status = hash_program(r);
    if (status == VD_OK &&
        !vd_hash_tagged("verde/question/1", payload.data, payload.size, &r->question_hash))
        status = vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&payload);
    return status;
}

/* Builds the body of an answer. NULL: it would be incomplete, and must not be signed. */
static json_t *build(vd_inquiry *r) {
    *r->err = (vd_err){0};
    r->mismatch = false;
    vd_json_start();
    json_t *body = vd_inquiry_body(r);
    if (!vd_json_failed() && r->err->status == VD_OK)
        return body;
    json_decref(body);
    return NULL;
}

/* Lies: adds a member that no document names, as long as the limits allow. The JSON around the body
 * has less than ENVELOPE bytes. */
static void pad(const vd_inquiry *r, json_t *body) {
    enum { ENVELOPE = 400 };
    const vd_job_programs job = {vd_inquiry_program(r), r->provider->collection};
    const size_t most = vd_answer_most_of(&r->question, &job).payload - ENVELOPE;
    vd_buf text = {0};
    if (vd_json_dump(body, &text) && text.size < most) {
        const size_t left = most - text.size;
        text.size = 0;
        for (size_t i = 0; i < left; i++)
            vd_put_u8(&text, 'x');
        vd_put_u8(&text, 0);
        if (vd_buf_ok(&text))
            json_object_set_new(body, "padding", json_string((const char *)text.data));
    }
    vd_buf_free(&text);
}

vd_status vd_inquiry_answer(vd_inquiry *r, vd_buf *note) {
    if (withheld(r))
        return vd_fail(r->err, VD_ERR_TIMEOUT, "silent on purpose");
    json_t *body = build(r);
    if (!body && r->mismatch &&
        r->source.forget) { /* maybe a bit flipped: empties the cache, tries again */
        tell(r, r->err->text);
        r->source.forget(r->source.user);
        body = build(r);
    }
    if (!body && r->mismatch)
        return vd_fail(r->err, VD_ERR_LOCAL,
                       "%.150s: was the run made by another build or on another machine, or is "
                       "memory or a disk of this one broken?",
                       r->err->text);
    if (!body)
        return r->err->status != VD_OK ? r->err->status
                                       : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (r->provider->lie == VD_LIE_PAD)
        pad(r, body);
    vd_status status = vd_answer_write(r->provider->key, &r->assignment_hash, &r->question_hash,
                                       body, note, r->err);
    json_decref(body);
    return status;
}

bool vd_inquiry_is_quick(const vd_inquiry *r) {
    switch (r->question.kind) {
    case VD_ASK_COMMIT:
    case VD_ASK_REVEAL:
    case VD_ASK_CHALLENGE:
    case VD_ASK_NOTE: return true;
    default: return r->question.tree.kind == VD_TREE_RUN || r->question.tree.kind == VD_TREE_ITEMS;
    }
}

static vd_status read_pair(const void *bytes, size_t size, json_t **root, vd_err *err) {
    static const char *const keys[] = {"assignment", "question", NULL};
    vd_status status = vd_json_read(bytes, size < 2 * VD_QUESTION_BYTES_MAX ? size : 0,
                                    VD_SMALL_ELEMENTS, root, err);
    return status == VD_OK && !vd_json_has_only(*root, keys)
               ? vd_fail(err, VD_ERR_PEER, "request: not a pair of notes")
               : status;
}

vd_status vd_request_assignment(const void *request, size_t size, vd_assignment *out, vd_err *err) {
    json_t *root;
    vd_hash hash;
    vd_status status = read_pair(request, size, &root, err);
    if (status == VD_OK)
        status = open_assignment(json_object_get(root, "assignment"), NULL, out, &hash, err);
    json_decref(root);
    return vd_of_peer(status, err);
}

static vd_status read_request(vd_inquiry *r, const void *bytes, size_t size) {
    json_t *root;
    vd_status status = read_pair(bytes, size, &root, r->err);
    if (status == VD_OK)
        status = read_assignment(r, json_object_get(root, "assignment"));
    if (status == VD_OK)
        status = read_question(r, json_object_get(root, "question"));
    json_decref(root);
    return vd_of_peer(status, r->err);
}

vd_status vd_inquiry_open(const vd_provider *provider, const void *bytes, size_t size,
                          vd_inquiry *r, vd_err *err) {
    *r = (vd_inquiry){.provider = provider, .err = err};
    vd_status status = read_request(r, bytes, size);
    return status == VD_OK ? choose_run(r) : status;
}

void vd_inquiry_free(vd_inquiry *r) {
    vd_question_free(&r->question);
    vd_program_free(&r->item_program);
}

vd_status vd_provider_screen(const vd_provider *provider, const void *bytes, size_t size,
                             vd_public_key *referee, vd_err *err) {
    vd_err local = {0};
    vd_inquiry r = {.provider = provider, .source = provider->source, .err = err ? err : &local};
    vd_status status = read_request(&r, bytes, size);
    if (status == VD_OK)
        *referee = r.assignment.referee;
    vd_inquiry_free(&r);
    return status;
}

vd_status vd_provider_answer(const vd_provider *provider, const void *request, size_t size,
                             vd_buf *out, vd_err *err) {
    vd_err local = {0};
    vd_inquiry r = {0};
    vd_status status = vd_inquiry_open(provider, request, size, &r, err ? err : &local);
    if (status == VD_OK)
        status = vd_inquiry_answer(&r, out);
    vd_inquiry_free(&r);
    return status;
}

vd_status vd_request_write(const vd_buf *assignment_note, const vd_buf *question_note, vd_buf *out,
                           vd_err *err) {
    vd_printf(out, "{\"assignment\":");
    vd_put(out, assignment_note->data, assignment_note->size);
    vd_printf(out, ",\"question\":");
    vd_put(out, question_note->data, question_note->size);
    vd_printf(out, "}");
    return vd_buf_ok(out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory");
}
