/* This file signs requests, and judges whether one is fresh, whole and meant for us. */
#include "verde/protocol/signed_request.h"

#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"

enum { MEMBERS = 8, ASK_MEMBERS = 7 };

/* Returns true if the target needs no escapes in JSON and HTTP. */
static bool is_target(const char *text) {
    const size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return size && size <= VD_REQUEST_TARGET_MAX && text[0] == '/';
}

static json_t *hex_text(const uint8_t *bytes, size_t size) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(bytes, size, hex);
    return json_string(hex);
}

/* Writes the members that make a request unique among its signer's: count, or time and nonce. */
static void put_turn(json_t *root, const vd_request_claim *claim) {
    if (claim->count) {
        json_object_set_new(root, "count", json_integer((json_int_t)claim->count));
        return;
    }
    json_object_set_new(root, "time", json_integer((json_int_t)claim->time));
    json_object_set_new(root, "nonce", hex_text(claim->nonce, VD_NONCE_SIZE));
}

static vd_status write_payload(const vd_request_claim *claim, const vd_public_key *provider,
                               const vd_request_head *head, vd_buf *out, vd_err *err) {
    vd_json_start();
    json_t *root = json_pack("{si ss ss sI so so}", "verde", 1, "method", head->method, "path",
                             head->target, "length", (json_int_t)head->length, "provider",
                             hex_text(provider->b, VD_KEY_SIZE), "body",
                             hex_text(claim->body.b, VD_HASH_SIZE));
    put_turn(root, claim);
    const bool written = vd_json_dump(root, out);
    json_decref(root);
    return written && !vd_json_failed() ? VD_OK
                                        : vd_fail(err, VD_ERR_LOCAL, "request: out of memory");
}

static vd_status put_note(const vd_buf *note, vd_buf *out, vd_err *err) {
    char *text = vd_base64(note->data, note->size);
    if (text)
        vd_put(out, text, strlen(text));
    const bool whole = text && vd_buf_ok(out);
    free(text);
    return whole ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "request: out of memory");
}

static vd_status sign_claim(const vd_key *key, const vd_public_key *provider,
                            const vd_request_head *head, const void *body, vd_request_claim *claim,
                            vd_buf *out, vd_err *err) {
    vd_buf payload = {0}, note = {0};
    if (!is_target(head->target))
        return vd_fail(err, VD_ERR_USAGE,
                       "request: a path begins with `/`, is plain ASCII without spaces, and has at "
                       "most %d bytes",
                       VD_REQUEST_TARGET_MAX);
    if (!vd_hash_tagged(NULL, body, head->length, &claim->body))
        return vd_fail(err, VD_ERR_LOCAL, "request: its body could not be hashed");
    vd_status status = write_payload(claim, provider, head, &payload, err);
    if (status == VD_OK)
        status = vd_note_sign(key, VD_TYPE_REQUEST, payload.data, payload.size, &note, err);
    if (status == VD_OK)
        status = put_note(&note, out, err);
    vd_buf_free(&note);
    vd_buf_free(&payload);
    return status;
}

vd_status vd_request_sign(const vd_key *key, const vd_public_key *provider,
                          const vd_request_head *head, const void *body, int64_t time,
                          const uint8_t nonce[VD_NONCE_SIZE], vd_buf *out, vd_err *err) {
    vd_request_claim claim = {.time = time};
    memcpy(claim.nonce, nonce, VD_NONCE_SIZE);
    return sign_claim(key, provider, head, body, &claim, out, err);
}

static vd_request_head ask_head(size_t size) {
    return (vd_request_head){"POST", VD_ASK_PATH, size};
}

vd_status vd_ask_sign(const vd_key *referee, const vd_public_key *provider, const void *body,
                      size_t size, int64_t count, vd_buf *out, vd_err *err) {
    vd_request_claim claim = {.count = count};
    const vd_request_head head = ask_head(size);
    if (count < 1 || count > VD_ASK_COUNT_MAX)
        return vd_fail(err, VD_ERR_LOCAL, "request: its count is not from 1 to 2^53");
    return sign_claim(referee, provider, &head, body, &claim, out, err);
}

/* ---- judging ---- */

static bool get_hex(const json_t *root, const char *name, uint8_t *out, size_t size) {
    const char *hex = json_string_value(json_object_get(root, name));
    return hex && vd_unhex(hex, out, size);
}

static bool has_text(const json_t *root, const char *name, const char *expected) {
    const char *text = json_string_value(json_object_get(root, name));
    return text && strcmp(text, expected) == 0;
}

static bool get_integer(const json_t *root, const char *name, int64_t *out) {
    const json_t *value = json_object_get(root, name);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

/* Reads the count of a referee's question, or time and nonce of a client's request. */
static bool get_turn(const json_t *root, bool asks, vd_request_claim *out) {
    if (asks)
        return json_object_size(root) == ASK_MEMBERS && get_integer(root, "count", &out->count) &&
               out->count >= 1 && out->count <= VD_ASK_COUNT_MAX;
    return json_object_size(root) == MEMBERS && get_integer(root, "time", &out->time) &&
           get_hex(root, "nonce", out->nonce, VD_NONCE_SIZE);
}

static vd_status read_members(const json_t *root, const vd_public_key *provider,
                              const vd_request_head *head, bool asks, vd_request_claim *out,
                              vd_err *err) {
    static const char *const names[] = {"verde", "provider", "method", "path",  "length",
                                        "body",  "time",     "nonce",  "count", NULL};
    vd_public_key to;
    vd_err why = {0};
    int64_t length;
    vd_status status = vd_json_begin(root, "verde", "a signed request", names, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "request: %s", why.text);
    if (!get_integer(root, "length", &length) || !get_hex(root, "provider", to.b, VD_KEY_SIZE) ||
        !get_hex(root, "body", out->body.b, VD_HASH_SIZE) || !get_turn(root, asks, out))
        return vd_fail(
            err, VD_ERR_PEER, "request: expected body, %slength, method, %spath, provider%s",
            asks ? "count, " : "", asks ? "" : "nonce, ", asks ? " and verde" : ", time and verde");
    if (memcmp(to.b, provider->b, VD_KEY_SIZE) != 0)
        return vd_fail(err, VD_ERR_PEER, "request: it was signed for another provider");
    if (!has_text(root, "method", head->method) || !has_text(root, "path", head->target))
        return vd_fail(err, VD_ERR_PEER, "request: another method or path was signed");
    if (length < 0 || (uint64_t)length != head->length)
        return vd_fail(err, VD_ERR_PEER,
                       "request: a body of %lld bytes was signed, and the request has %llu",
                       (long long)length, (unsigned long long)head->length);
    return VD_OK;
}

/* Rejects a payload that we would write otherwise, so that a request has exactly one payload. */
static vd_status check_spelling(const json_t *root, const vd_buf *payload, vd_err *err) {
    vd_buf again = {0};
    vd_status status = VD_OK;
    if (!vd_json_dump(root, &again))
        status = vd_fail(err, VD_ERR_LOCAL, "request: out of memory");
    else if (again.size != payload->size || memcmp(again.data, payload->data, again.size) != 0)
        status = vd_fail(err, VD_ERR_PEER, "request: what was signed is not canonical JSON");
    vd_buf_free(&again);
    return status;
}

/* Compares the clocks, without a subtraction that could overflow. */
static vd_status check_clock(int64_t time, int64_t now, vd_err *err) {
    const bool ahead = time > now;
    const uint64_t by = ahead ? (uint64_t)time - (uint64_t)now : (uint64_t)now - (uint64_t)time;
    return by <= VD_REQUEST_CLOCK_S
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER,
                         "request: your clock is %llu s %s this provider's; at most %d s are "
                         "allowed",
                         (unsigned long long)by, ahead ? "ahead of" : "behind", VD_REQUEST_CLOCK_S);
}

static vd_status judge_payload(const vd_buf *payload, const vd_public_key *provider,
                               const vd_request_head *head, bool asks, vd_request_claim *out,
                               vd_err *err) {
    json_t *root = NULL;
    vd_status status = vd_json_read(payload->data, payload->size, MEMBERS, &root, err);
    if (status == VD_OK)
        status = check_spelling(root, payload, err);
    if (status == VD_OK)
        status = read_members(root, provider, head, asks, out, err);
    json_decref(root);
    return status;
}

static vd_status judge_note(const char *header, size_t size, const vd_public_key *provider,
                            const vd_request_head *head, bool asks, vd_request_claim *out,
                            vd_err *err) {
    vd_buf note = {0}, payload = {0};
    *out = (vd_request_claim){.time = 0};
    if (size > VD_REQUEST_HEADER_MAX)
        return vd_fail(err, VD_ERR_PEER, "request: a note has at most %d bytes",
                       VD_REQUEST_NOTE_MAX);
    vd_status status = vd_unbase64(header, size, &note, err);
    if (status == VD_OK)
        status = vd_note_signer(note.data, note.size, VD_REQUEST_NOTE_MAX, &out->client, err);
    if (status == VD_OK)
        status = vd_note_open(note.data, note.size, VD_REQUEST_NOTE_MAX, VD_TYPE_REQUEST,
                              &out->client, &payload, err);
    if (status == VD_OK)
        status = judge_payload(&payload, provider, head, asks, out, err);
    vd_buf_free(&payload);
    vd_buf_free(&note);
    return vd_of_peer(status, err);
}

vd_status vd_request_judge(const char *header, size_t size, const vd_public_key *provider,
                           const vd_request_head *head, int64_t now, vd_request_claim *out,
                           vd_err *err) {
    const vd_status status = judge_note(header, size, provider, head, false, out, err);
    return status == VD_OK ? check_clock(out->time, now, err) : status;
}

vd_status vd_ask_judge(const char *header, const vd_public_key *provider,
                       const vd_public_key *referee, const void *body, size_t size, int64_t *count,
                       vd_err *err) {
    const vd_request_head head = ask_head(size);
    vd_request_claim claim;
    if (!header)
        return vd_fail(err, VD_ERR_PEER,
                       "the request has no header " VD_REQUEST_HEADER
                       " (PROTOCOL.md section 8.1): is the referee's program older than this one?");
    vd_status status = judge_note(header, strlen(header), provider, &head, true, &claim, err);
    if (status == VD_OK && memcmp(&claim.client, referee, sizeof *referee) != 0)
        status = vd_fail(err, VD_ERR_PEER, "request: it is not signed by its referee");
    *count = claim.count;
    return status == VD_OK ? vd_request_judge_body(&claim, body, size, err) : status;
}

vd_status vd_request_judge_body(const vd_request_claim *claim, const void *body, size_t size,
                                vd_err *err) {
    vd_hash hash;
    if (!vd_hash_tagged(NULL, body, size, &hash))
        return vd_fail(err, VD_ERR_LOCAL, "request: its body could not be hashed");
    return vd_hash_equal(&hash, &claim->body)
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "request: its body is not the one that was signed");
}
