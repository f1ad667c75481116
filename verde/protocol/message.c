/* This file writes and reads assignments and answers. PROTOCOL.md sections 3 and 4. */
#include "verde/protocol/message.h"

#include <stdlib.h>
#include <string.h>

/* ---- assignments ---- */

bool vd_json_to_key(const json_t *value, vd_public_key *out) {
    const char *hex = json_string_value(value);
    return hex && vd_public_key_read(hex, out, NULL) == VD_OK;
}

static json_t *assignment_json(const vd_assignment *a) {
    vd_hash nonce;
    memcpy(nonce.b, a->nonce, sizeof nonce.b);
    json_t *providers = json_array();
    for (uint32_t i = 0; i < a->provider_count; i++)
        json_array_append_new(providers, vd_json_key(&a->provider[i]));
    json_t *root = json_pack("{si so so so so}", "verde", 1, "program", vd_hash_text(&a->program),
                             "nonce", vd_hash_text(&nonce), "referee", vd_json_key(&a->referee),
                             "providers", providers);
    if (a->challenge)
        json_object_set_new(root, "challenge", json_true());
    if (a->rounded)
        json_object_set_new(root, "trainer", vd_json_key(&a->provider[0]));
    return root;
}

vd_status vd_assignment_write(const vd_assignment *a, vd_buf *payload, vd_err *err) {
    vd_json_start();
    json_t *root = a->audit ? vd_audit_assignment_json(a) : assignment_json(a);
    bool ok = vd_json_dump(root, payload) && !vd_json_failed();
    json_decref(root);
    return ok ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "assignment: out of memory");
}

vd_status vd_assignment_sign(const vd_key *key, const vd_assignment *a, vd_buf *payload,
                             vd_buf *note, vd_err *err) {
    const vd_status status = vd_assignment_write(a, payload, err);
    return status == VD_OK
               ? vd_note_sign(key, VD_TYPE_ASSIGNMENT, payload->data, payload->size, note, err)
               : status;
}

static vd_status bad_assignment(vd_err *err, const char *expected) {
    return vd_fail(err, VD_ERR_PEER, "assignment: %s", expected);
}

static vd_status take_key(const json_t *value, const char *what, vd_public_key *out, vd_err *err) {
    vd_err why = {0};
    const char *text = json_string_value(value);
    vd_status status = text ? vd_public_key_read(text, out, &why)
                            : vd_fail(&why, VD_ERR_PEER, "expected a string");
    return status == VD_OK ? VD_OK : vd_fail(err, status, "assignment: %s: %s", what, why.text);
}

static vd_status take_providers(const json_t *providers, vd_assignment *out, vd_err *err) {
    const size_t count = json_array_size(providers);
    if (count > VD_PARTIES_MAX)
        return vd_fail_limit(err, "assignment", count, "providers", VD_PARTIES_MAX);
    if (count < 2)
        return bad_assignment(err, "`providers` must be a list of 2 keys or more");
    for (size_t i = 0; i < count; i++, out->provider_count++) {
        vd_status status =
            take_key(json_array_get(providers, i), "providers", &out->provider[i], err);
        if (status != VD_OK)
            return status;
        for (size_t k = 0; k < i; k++)
            if (memcmp(&out->provider[i], &out->provider[k], sizeof out->provider[i]) == 0)
                return bad_assignment(err, "`providers` has a key twice: one identity, one voice");
    }
    return VD_OK;
}

static vd_status take_trainer(const json_t *trainer, vd_assignment *out, vd_err *err) {
    vd_public_key key;
    out->rounded = trainer != NULL;
    if (!trainer)
        return VD_OK;
    vd_status status = take_key(trainer, "trainer", &key, err);
    if (status == VD_OK && (memcmp(&key, &out->provider[0], sizeof key) != 0 || out->challenge))
        status = bad_assignment(err, "`trainer` must be provider 0, without `challenge`");
    return status;
}

static vd_status read_assignment(const json_t *root, vd_assignment *out, vd_err *err) {
    static const char *const names[] = {"verde",     "program",   "nonce",   "referee",
                                        "providers", "challenge", "trainer", NULL};
    const json_t *challenge = json_object_get(root, "challenge");
    vd_hash nonce;
    vd_err why = {0};
    vd_status status = vd_json_begin_to(root, "verde", "an assignment", 2, names, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "assignment: %s", why.text);
    if (!vd_json_get_hash(root, "program", &out->program) ||
        !vd_json_get_hash(root, "nonce", &nonce) || (challenge && !json_is_true(challenge)))
        return bad_assignment(err, "`program` and `nonce` must be hashes, and `challenge` true");
    memcpy(out->nonce, nonce.b, sizeof out->nonce);
    out->challenge = challenge != NULL;
    status = take_key(json_object_get(root, "referee"), "referee", &out->referee, err);
    if (status == VD_OK)
        status = take_providers(json_object_get(root, "providers"), out, err);
    return status == VD_OK ? take_trainer(json_object_get(root, "trainer"), out, err) : status;
}

vd_status vd_assignment_read(const void *payload, size_t size, vd_assignment *out, vd_err *err) {
    *out = (vd_assignment){0};
    json_t *root;
    if (!vd_json_is_small(payload, size, VD_ASSIGNMENT_ELEMENTS))
        return vd_fail(err, VD_ERR_VERSION,
                       "assignment: more lists and commas than the %d that this verde reads",
                       VD_ASSIGNMENT_ELEMENTS);
    vd_status status = vd_json_read(payload, size, VD_ASSIGNMENT_ELEMENTS, &root, err);
    if (status == VD_OK)
        status = vd_is_audit_assignment(root) ? vd_audit_assignment_read(root, out, err)
                                              : read_assignment(root, out, err);
    json_decref(root);
    return status;
}

bool vd_assignment_hash(const void *payload, size_t size, vd_hash *out) {
    return vd_hash_tagged("verde/assignment/1", payload, size, out);
}

/* ---- answers ---- */

json_t *vd_speaks(void) {
    return json_pack("{s[ii] s[i] s[i]}", "assignment", 1, 2, "program", VD_ENCODING_VERSION,
                     "spec", RO_SPEC_VERSION);
}

vd_status vd_answer_write(const vd_key *key, const vd_hash *assignment, const vd_hash *question,
                          json_t *body, vd_buf *note, vd_err *err) {
    vd_public_key public;
    vd_buf payload = {0};
    vd_key_public(key, &public);
    json_t *root =
        json_pack("{si so so so sO}", "verde", 1, "assignment", vd_hash_text(assignment), "key",
                  vd_json_key(&public), "question", vd_hash_text(question), "answer", body);
    vd_status status =
        vd_json_dump(root, &payload) && !vd_json_failed()
            ? vd_note_sign(key, VD_TYPE_ANSWER, payload.data, payload.size, note, err)
            : vd_fail(err, VD_ERR_LOCAL, "answer: out of memory");
    json_decref(root);
    vd_buf_free(&payload);
    return status;
}

static bool answer_matches(const json_t *root, const vd_answer_to *asked) {
    const char *signer = json_string_value(json_object_get(root, "key"));
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hash a, q;
    vd_hex(asked->key->b, VD_KEY_SIZE, hex);
    return json_object_get(root, "answer") && vd_json_get_hash(root, "assignment", &a) &&
           vd_hash_equal(&a, asked->assignment) && vd_json_get_hash(root, "question", &q) &&
           vd_hash_equal(&q, asked->question) && signer && strcmp(signer, hex) == 0;
}

static vd_status read_payload(const vd_buf *payload, const vd_answer_to *asked, json_t **root,
                              vd_err *err) {
    static const char *const names[] = {"verde", "assignment", "key", "question", "answer", NULL};
    if (payload->size > asked->most.payload)
        return vd_fail(err, VD_ERR_PEER, "an answer of %zu bytes; this one has at most %zu",
                       payload->size, asked->most.payload);
    vd_status status = vd_json_read(payload->data, payload->size, asked->most.elements, root, err);
    if (status == VD_OK)
        status = vd_json_begin(*root, "verde", "a statement", names, err);
    if (status == VD_OK && !answer_matches(*root, asked))
        status = vd_fail(err, VD_ERR_PEER, "answer to another question");
    return status;
}

vd_status vd_answer_read(const void *note, size_t size, const vd_answer_to *asked, vd_stated *out,
                         json_t **body, vd_err *err) {
    json_t *root = NULL;
    *out = (vd_stated){.payload = {0}};
    *body = NULL;
    vd_status status = vd_note_split(note, size, asked->most.note, VD_TYPE_ANSWER, asked->key,
                                     &out->payload, out->signature, err);
    if (status == VD_OK)
        status = read_payload(&out->payload, asked, &root, err);
    if (status == VD_OK)
        *body = json_incref(json_object_get(root, "answer"));
    else
        vd_buf_free(&out->payload);
    json_decref(root);
    return vd_of_peer(status, err); /* a note by a provider is bound to the assignment's version */
}

vd_status vd_answer_body(const vd_buf *payload, size_t elements, json_t **body, vd_err *err) {
    json_t *root;
    vd_status status = vd_json_read(payload->data, payload->size, elements, &root, err);
    *body = json_incref(json_object_get(root, "answer"));
    json_decref(root);
    return status;
}

bool vd_commitment(const vd_hash *salt, const vd_public_key *key, const vd_hash *root,
                   vd_hash *out) {
    uint8_t bytes[VD_HASH_SIZE + VD_KEY_SIZE + VD_HASH_SIZE];
    memcpy(bytes, salt->b, VD_HASH_SIZE);
    memcpy(bytes + VD_HASH_SIZE, key->b, VD_KEY_SIZE);
    memcpy(bytes + VD_HASH_SIZE + VD_KEY_SIZE, root->b, VD_HASH_SIZE);
    return vd_hash_tagged("verde/commit/1", bytes, sizeof bytes, out);
}
