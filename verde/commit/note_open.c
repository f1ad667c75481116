/* This file opens signed notes that anybody may have written. */
#include "verde/commit/internal.h"

#include <string.h>

#include "verde/commit/json.h"

/* An envelope with one signature; strings are borrowed from `root`. */
typedef struct {
    json_t *root; /* owned */
    const json_t *payload, *type, *sig;
    vd_public_key key; /* claimed; verified with the signature */
} envelope;

/* An envelope has 3 brackets and 3 commas outside of its strings. */
enum { ELEMENTS = 3 };

static vd_status parse_json(const char *text, size_t size, json_t **out, vd_err *err) {
    vd_err inner = {0};
    vd_status status = vd_json_read(text, size, ELEMENTS, out, &inner);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "note: %s", inner.text);
}

/* Returns the member if it is a string, or NULL. */
static const json_t *get_string(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? value : NULL;
}

/* Reads the members; exactly these must exist, with the right types. */
static vd_status get_members(envelope *note, const json_t **keyid, vd_err *err) {
    static const char *const names[] = {"payload", "payloadType", "signatures", NULL};
    static const char *const of_signature[] = {"keyid", "sig", NULL};
    const json_t *list = json_object_get(note->root, "signatures");
    const json_t *signature = json_is_array(list) ? json_array_get(list, 0) : NULL;
    vd_err why = {0};
    vd_status status = vd_json_known(note->root, NULL, names, &why);
    if (status == VD_OK && signature)
        status = vd_json_known(signature, "signatures[0]", of_signature, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "note: %s", why.text);
    note->payload = get_string(note->root, "payload");
    note->type = get_string(note->root, "payloadType");
    note->sig = get_string(signature, "sig");
    *keyid = get_string(signature, "keyid");
    return note->payload && note->type && note->sig && *keyid && json_array_size(list) == 1
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER,
                         "note: expected payload, payloadType and signatures of one keyid and sig");
}

/* Reads the key's digits; vd_signature_verify later checks the key itself. */
static vd_status read_keyid(const char *keyid, vd_public_key *out, vd_err *err) {
    vd_err why = {0};
    if (vd_unhex(keyid, out->b, VD_KEY_SIZE))
        return VD_OK;
    return vd_public_key_read(keyid, out, &why) == VD_ERR_VERSION
               ? vd_fail(err, VD_ERR_VERSION, "note: signed by %s", why.text)
               : vd_fail(err, VD_ERR_PEER, "note: keyid must be a key in 64 lower-case digits");
}

static vd_status parse(const void *text, size_t size, size_t limit, envelope *note, vd_err *err) {
    *note = (envelope){0};
    if (size > limit)
        return vd_fail(err, VD_ERR_PEER, "note of %zu bytes; at most %zu are allowed", size, limit);
    vd_status status = parse_json(text, size, &note->root, err);
    if (status != VD_OK)
        return status;
    const json_t *keyid = NULL;
    status = get_members(note, &keyid, err);
    if (status != VD_OK)
        return status;
    return read_keyid(json_string_value(keyid), &note->key, err);
}

static vd_status decode(const json_t *value, const char *what, vd_buf *out, vd_err *err) {
    vd_err inner = {0};
    vd_status status =
        vd_unbase64(json_string_value(value), json_string_length(value), out, &inner);
    return status == VD_OK ? VD_OK : vd_fail(err, status, "note: %s: %s", what, inner.text);
}

static vd_status check_signature(const envelope *note, const char *type, const uint8_t *payload,
                                 size_t size, uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    vd_buf stated = {0}, message = {0};
    vd_status status = decode(note->sig, "sig", &stated, err);
    if (status == VD_OK && stated.size != VD_SIGNATURE_SIZE)
        status = vd_fail(err, VD_ERR_PEER, "note: sig has %zu bytes, expected 64", stated.size);
    if (status == VD_OK) {
        memcpy(signature, stated.data, VD_SIGNATURE_SIZE);
        vd_note_encode(type, payload, size, &message);
        status = vd_buf_ok(&message)
                     ? vd_signature_verify(&note->key, message.data, message.size, signature, err)
                     : vd_fail(err, VD_ERR_LOCAL, "out of memory in checking a note");
    }
    vd_buf_free(&message);
    vd_buf_free(&stated);
    return status;
}

static bool is_known(const char *type) {
    static const char *const types[] = {VD_TYPE_ASSIGNMENT, VD_TYPE_QUESTION, VD_TYPE_ANSWER,
                                        VD_TYPE_LOG,        VD_TYPE_REQUEST,  VD_TYPE_VERDICT,
                                        VD_TYPE_RELEASE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

static vd_status check_claims(const envelope *note, const char *type, const vd_public_key *key,
                              vd_err *err) {
    if (is_known(json_string_value(note->type)) && strcmp(json_string_value(note->type), type) != 0)
        return vd_fail(err, VD_ERR_PEER, "note: payloadType is %s, expected %s",
                       json_string_value(note->type), type);
    if (memcmp(note->key.b, key->b, VD_KEY_SIZE) != 0) {
        char claimed[2 * VD_KEY_SIZE + 1], expected[2 * VD_KEY_SIZE + 1];
        vd_hex(note->key.b, VD_KEY_SIZE, claimed);
        vd_hex(key->b, VD_KEY_SIZE, expected);
        return vd_fail(err, VD_ERR_PEER, "note: signed by %s, expected %s", claimed, expected);
    }
    return VD_OK;
}

vd_status vd_note_split(const void *text, size_t size, size_t limit, const char *type,
                        const vd_public_key *key, vd_buf *payload,
                        uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    envelope note;
    size_t before = payload->size;
    vd_status status = parse(text, size, limit, &note, err);
    if (status == VD_OK)
        status = check_claims(&note, type, key, err);
    if (status == VD_OK)
        status = decode(note.payload, "payload", payload, err);
    if (status == VD_OK)
        status = check_signature(&note, json_string_value(note.type), payload->data + before,
                                 payload->size - before, signature, err);
    if (status == VD_OK && strcmp(json_string_value(note.type), type) != 0)
        status = vd_fail(err, VD_ERR_VERSION, "note: payloadType is %.200s; this verde reads %s",
                         json_string_value(note.type), type);
    if (status != VD_OK)
        payload->size = before;
    json_decref(note.root);
    return status;
}

vd_status vd_note_open(const void *text, size_t size, size_t limit, const char *type,
                       const vd_public_key *key, vd_buf *payload, vd_err *err) {
    uint8_t signature[VD_SIGNATURE_SIZE];
    return vd_note_split(text, size, limit, type, key, payload, signature, err);
}

vd_status vd_note_signer(const void *text, size_t size, size_t limit, vd_public_key *key,
                         vd_err *err) {
    envelope note;
    vd_status status = parse(text, size, limit, &note, err);
    *key = note.key;
    if (status == VD_OK)
        status = vd_public_key_check(key, err);
    json_decref(note.root);
    return status;
}
