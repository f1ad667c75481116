/* This file reads foreign JSON within limits, writes our own, and reports where a text is wrong. */
#include "verde/commit/json.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local bool failed;

static void *allocate(size_t size) {
    void *block = malloc(size);
    failed |= block == NULL;
    return block;
}

/* Makes jansson count failed allocations. Earlier blocks stay valid: all are malloc's. */
static void install(void) {
    json_set_alloc_funcs(allocate, free);
}

void vd_json_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    failed = false;
}

bool vd_json_failed(void) {
    return failed;
}

bool vd_json_is_small(const void *bytes, size_t size, size_t limit) {
    const char *text = bytes;
    size_t open = 0, commas = 0;
    bool inside = false;
    for (size_t i = 0; i < size && open <= limit && commas <= limit; i++) {
        char c = text[i];
        if (inside && c == '\\')
            i++;
        else if (c == '"')
            inside = !inside;
        else if (!inside && (c == '{' || c == '['))
            open++;
        else if (!inside && c == ',')
            commas++;
    }
    return open <= limit && commas <= limit;
}

/* The length of the string, with quotes, that ends where the reader stopped; 0: none ends there. */
static int length_of_last(const char *text, size_t size, int end) {
    int length = 2;
    if (end < 2 || (size_t)end > size || text[end - 1] != '"')
        return 0;
    while (length < end && text[end - length] != '"')
        length++;
    return length;
}

static vd_status tell_place(const char *text, size_t size, const json_error_t *error, vd_err *err) {
    const int length = length_of_last(text, size, error->position);
    return vd_fail(err, VD_ERR_PEER, "byte %d: %s%s%.*s", error->position, error->text,
                   length ? ": " : "", length < 200 ? length : 200,
                   length ? text + error->position - length : "");
}

/* Reports a text of fewer than two bytes, or a wrong first or last byte. */
static vd_status tell_edges(const char *text, size_t size, vd_err *err) {
    const bool first = size > 0 && text[0] != '{';
    if (size < 2)
        return vd_fail(err, VD_ERR_PEER, "expected a JSON object without bytes around it, got %s",
                       size ? "one byte" : "nothing");
    return vd_fail(err, VD_ERR_PEER,
                   "expected a JSON object without bytes around it: its %s byte is 0x%02x, not %c",
                   first ? "first" : "last", (uint8_t)(first ? text[0] : text[size - 1]),
                   first ? '{' : '}');
}

vd_status vd_json_read(const void *bytes, size_t size, size_t elements, json_t **out, vd_err *err) {
    const char *text = bytes;
    json_error_t error;
    *out = NULL;
    if (size < 2 || text[0] != '{' || text[size - 1] != '}')
        return tell_edges(text, size, err);
    if (!vd_json_is_small(text, size, elements))
        return vd_fail(err, VD_ERR_PEER, "more than %zu elements of JSON", elements);
    bool earlier = failed;
    vd_json_start();
    *out = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    bool now = failed;
    failed |= earlier; /* reading while something is built must not hide a failure of building */
    if (*out && !now)
        return VD_OK;
    json_decref(*out);
    *out = NULL;
    if (now)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory in reading JSON");
    return tell_place(text, size, &error, err);
}

vd_status vd_json_load(const char *path, size_t limit, size_t element_bytes, json_t **out,
                       vd_err *err) {
    vd_buf text = {0};
    vd_err why = {0};
    *out = NULL;
    vd_status status = vd_read_file(path, limit, &text, err);
    if (status == VD_OK) {
        text.size -= text.size > 0 && text.data[text.size - 1] == '\n';
        status = vd_json_read(text.data, text.size, 64 + text.size / element_bytes, out, &why);
        if (status != VD_OK)
            status = vd_fail(err, status, "%s: %.300s", path, why.text);
    }
    vd_buf_free(&text);
    return status;
}

/* Checks the version, which must be an integer; `1.0`, "1" and true are none. */
static vd_status check_version(const json_t *object, const char *member, const char *what,
                               int64_t last, vd_err *err) {
    const json_t *version = json_object_get(object, member);
    const int64_t found = json_integer_value(version);
    if (!json_is_integer(version))
        return vd_fail(err, VD_ERR_PEER, "`%s` must be an integer, the version of %s", member,
                       what);
    return found >= 1 && found <= last ? VD_OK : vd_fail_version(err, NULL, found, what, 1, last);
}

static bool is_among(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* Returns the length, at most `most`, of the whole UTF-8 characters at the beginning of a text. */
static int whole_characters(const char *text, int most) {
    int size = (int)strnlen(text, (size_t)most + 1);
    if (size <= most)
        return size;
    for (size = most; size > 0 && ((uint8_t)text[size] & 0xc0) == 0x80; size--)
        ;
    return size;
}

vd_status vd_json_known(const json_t *object, const char *place, const char *const *names,
                        vd_err *err) {
    const char *name;
    json_t *value;
    if (!json_is_object(object))
        return vd_fail(err, VD_ERR_PEER, "%s must be an object", place && *place ? place : "this");
    json_object_foreach((json_t *)object, name, value) {
        if (!is_among(name, names))
            return vd_fail(err, VD_ERR_PEER, "unknown member `%.*s`%s%s",
                           whole_characters(name, 80), name, place && *place ? " in " : "",
                           place ? place : "");
    }
    return VD_OK;
}

vd_status vd_json_begin_to(const json_t *object, const char *version, const char *what,
                           int64_t last, const char *const *names, vd_err *err) {
    vd_status status = check_version(object, version, what, last, err);
    return status == VD_OK ? vd_json_known(object, NULL, names, err) : status;
}

vd_status vd_json_begin(const json_t *object, const char *version, const char *what,
                        const char *const *names, vd_err *err) {
    return vd_json_begin_to(object, version, what, 1, names, err);
}

static int append(const char *bytes, size_t size, void *out) {
    vd_put(out, bytes, size);
    return 0;
}

bool vd_json_dump(const json_t *value, vd_buf *out) {
    return value && json_dump_callback(value, append, out, JSON_COMPACT | JSON_SORT_KEYS) == 0 &&
           vd_buf_ok(out);
}

json_t *vd_hash_text(const vd_hash *hash) {
    char hex[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, hex);
    return json_string(hex);
}

bool vd_json_to_hash(const json_t *value, vd_hash *out) {
    const char *hex = json_string_value(value);
    return hex && vd_unhex(hex, out->b, VD_HASH_SIZE);
}

bool vd_json_get_hash(const json_t *object, const char *key, vd_hash *out) {
    return vd_json_to_hash(json_object_get(object, key), out);
}

bool vd_json_get_integer(const json_t *object, const char *key, int64_t most, int64_t *out) {
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value) && *out >= 0 && *out <= most;
}

bool vd_json_get_number(const json_t *object, const char *key, int32_t *out) {
    int64_t value;
    const bool good = vd_json_get_integer(object, key, INT32_MAX, &value);
    *out = good ? (int32_t)value : 0;
    return good;
}
