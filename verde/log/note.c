/* This file signs, reads and keeps a trainer's notes on its log. */
#include "verde/log/note.h"

#include <string.h>

#include "verde/commit/json.h"

vd_status vd_log_note_sign(const vd_key *key, const vd_log_claim *claim, vd_buf *out, vd_err *err) {
    vd_buf payload = {0};
    vd_json_start();
    json_t *root = json_pack("{si ss so so so sI}", "verde", 1, "claim", "log", "program",
                             vd_hash_text(&claim->program), "run", vd_hash_text(&claim->run),
                             "logs", vd_hash_text(&claim->logs), "step", (json_int_t)claim->step);
    vd_status status = vd_json_dump(root, &payload) && !vd_json_failed()
                           ? vd_note_sign(key, VD_TYPE_LOG, payload.data, payload.size, out, err)
                           : vd_fail(err, VD_ERR_LOCAL, "note of a log: out of memory");
    json_decref(root);
    vd_buf_free(&payload);
    return status;
}

static vd_status read_claim(const json_t *root, vd_log_claim *out, vd_err *err) {
    static const char *const names[] = {"verde", "claim", "program", "run", "logs", "step", NULL};
    const json_t *step = json_object_get(root, "step");
    const char *claim = json_string_value(json_object_get(root, "claim"));
    vd_status status = vd_json_begin(root, "verde", "a note of a log", names, err);
    if (status != VD_OK)
        return status;
    out->step = json_integer_value(step);
    return json_is_integer(step) && claim && strcmp(claim, "log") == 0 &&
                   vd_json_get_hash(root, "program", &out->program) &&
                   vd_json_get_hash(root, "run", &out->run) &&
                   vd_json_get_hash(root, "logs", &out->logs)
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "a note that says nothing of a log");
}

vd_status vd_log_note_open(const void *note, size_t size, const vd_public_key *key,
                           vd_log_claim *out, vd_err *err) {
    vd_buf payload = {0};
    json_t *root = NULL;
    *out = (vd_log_claim){.step = 0};
    vd_status status = vd_note_open(note, size, VD_LOG_NOTE_MAX, VD_TYPE_LOG, key, &payload, err);
    if (status == VD_OK)
        status = vd_json_read(payload.data, payload.size, 16, &root, err);
    if (status == VD_OK)
        status = read_claim(root, out, err);
    json_decref(root);
    vd_buf_free(&payload);
    return vd_of_peer(status, err);
}

static vd_status path_of(const char *dir, int64_t step, char *path, size_t size, vd_err *err) {
    const int length = snprintf(path, size, "%s/log/note-%08lld.json", dir, (long long)step);
    return length > 0 && (size_t)length < size
               ? VD_OK
               : vd_fail(err, VD_ERR_USAGE, "%.60s...: the path is too long", dir);
}

vd_status vd_log_note_save(const char *dir, int64_t step, const vd_buf *note, vd_err *err) {
    char path[1024];
    vd_status status = path_of(dir, step, path, sizeof path, err);
    return status == VD_OK ? vd_write_file(path, note->data, note->size, 0644, err) : status;
}

vd_status vd_log_note_load(const char *dir, int64_t step, vd_buf *out, vd_err *err) {
    char path[1024];
    vd_status status = path_of(dir, step, path, sizeof path, err);
    if (status == VD_OK)
        status = vd_read_file(path, VD_LOG_NOTE_MAX, out, err);
    return status == VD_OK || status == VD_ERR_LOCAL ? status : VD_ERR_IO;
}
