/* Reads a client's submission of a job. */
#include <stdlib.h>
#include <string.h>

#include "verde/commit/json.h"
#include "verde/exec/store.h"
#include "verde/provide/submission.h"

_Static_assert(VD_SUBMISSION_MAX >= (2 * VD_HASH_SIZE + 3) * (VD_DATA_MAX + VD_REFEREES_MAX) + 4096,
               "a submission of the most data has no room");

static bool is_hash(const char *text) {
    uint8_t bytes[32];
    return text && vd_unhex(text, bytes, sizeof bytes);
}

static bool is_key(const char *text) {
    vd_public_key key;
    return text && vd_public_key_read(text, &key, NULL) == VD_OK;
}

static bool take_names(vd_submission *s) {
    const char *name = json_string_value(json_object_get(s->root, "name"));
    const json_t *keep = json_object_get(s->root, "keep");
    if (!name || strlen(name) >= sizeof s->job.name || (keep && !json_is_integer(keep)))
        return false;
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    snprintf(s->job.name, sizeof s->job.name, "%s", name);
    s->job.keep = json_integer_value(keep);
    return !keep || (!json_object_get(s->root, "pack") && s->job.keep >= VD_KEEP_MIN &&
                     s->job.keep <= INT32_MAX);
}

static bool take_referees(vd_submission *s) {
    const json_t *list = json_object_get(s->root, "referees");
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > VD_REFEREES_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!is_key(s->referee[i] = json_string_value(json_array_get(list, i))))
            return vd_fail(&s->err, VD_ERR_PEER, "referee %zu is no public key", i) == VD_OK;
    return true;
}

static bool take_blobs(vd_submission *s) {
    s->data = json_object_get(s->root, "data");
    const size_t count = json_array_size(s->data);
    s->blob = calloc(count + 2, sizeof *s->blob);
    if (!json_is_array(s->data) || !s->blob)
        return false;
    s->packed = json_object_get(s->root, "pack") != NULL;
    s->blob[0] = json_string_value(json_object_get(s->root, s->packed ? "pack" : "program"));
    for (size_t i = 0; i < count; i++)
        if (!is_hash(s->blob[i + 1] = json_string_value(json_array_get(s->data, i))))
            return false;
    snprintf(s->job.program, VD_ID_SIZE, "%s", s->blob[0] ? s->blob[0] : "");
    return is_hash(s->blob[0]);
}

/* Returns true if the bytes are the canonical spelling, so that a job has one id. */
static bool is_canonical(const vd_submission *s, const vd_request *request) {
    vd_buf again = {0};
    const bool same = vd_json_dump(s->root, &again) && again.size == request->body_size &&
                      memcmp(again.data, request->body, again.size) == 0;
    vd_buf_free(&again);
    return same;
}

static bool take_members(vd_submission *s, const vd_request *request) {
    static const char *const names[] = {"verde", "name", "program",  "pack",
                                        "data",  "keep", "referees", NULL};
    if (vd_json_read(request->body, request->body_size, VD_DATA_MAX + 64, &s->root, &s->err) !=
        VD_OK) {
        vd_reply_error(s->response, 400, "submission: %s", s->err.text);
        return false;
    }
    const size_t members = 5 + (json_object_get(s->root, "keep") != NULL);
    if (vd_json_begin(s->root, "verde", "a submission", names, &s->err) == VD_OK &&
        json_object_size(s->root) == members && take_names(s) && take_referees(s) &&
        take_blobs(s) && is_canonical(s, request))
        return true;
    vd_reply_error(
        s->response, 400,
        s->err.text[0]
            ? "submission: %s"
            : "submission: expected canonical JSON of data, keep (or none), name, program, "
              "referees and verde, or of data, name, pack, referees and verde",
        s->err.text);
    return false;
}

/* Computes the job's id from the client's key and the submission. */
static bool name_job(vd_submission *s, const vd_request *request) {
    vd_buf bytes = {0};
    vd_hash id;
    uint8_t key[VD_KEY_SIZE];
    const bool named = vd_unhex(s->client, key, sizeof key);
    vd_put(&bytes, key, sizeof key);
    vd_put(&bytes, request->body, request->body_size);
    const bool hashed =
        named && vd_buf_ok(&bytes) && vd_hash_tagged("verde/job/1", bytes.data, bytes.size, &id);
    vd_buf_free(&bytes);
    if (hashed)
        vd_hex(id.b, VD_HASH_SIZE, s->job.id);
    else
        vd_reply_error(s->response, 503, "out of memory");
    snprintf(s->job.client, VD_ID_SIZE, "%s", s->client);
    return hashed;
}

void vd_serve_submission(vd_daemon *daemon, const char *client, const vd_request *request,
                         vd_response *response) {
    vd_submission s = {.daemon = daemon, .client = client, .response = response};
    if (take_members(&s, request) && name_job(&s, request))
        vd_submission_accept(&s);
    vd_judgement_free(&s.program);
    free(s.blob);
    json_decref(s.root);
}
