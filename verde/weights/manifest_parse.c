/* This file reads manifests, perhaps hostile ones: they have one spelling, and numbers have
 * limits. */
#include "verde/weights/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at, *end, *name; /* current position, end of the text, name of the file */
    uint32_t line;
    vd_err *err;
} text;

static vd_status manifest_bad(const text *t, const char *expected) {
    return vd_fail(t->err, VD_ERR_USAGE, "%s:%u: %s", t->name, t->line, expected);
}

/* Takes the next line, without its line feed. Returns false at the end, or without a line feed. */
static bool next_line(text *t, const char **line, size_t *size) {
    const char *feed = t->at < t->end ? memchr(t->at, '\n', (size_t)(t->end - t->at)) : NULL;
    t->line++;
    if (!feed)
        return false;
    *line = t->at;
    *size = (size_t)(feed - t->at);
    t->at = feed + 1;
    return memchr(*line, 0, *size) == NULL;
}

static bool starts_with(const char **line, size_t *size, const char *start) {
    const size_t length = strlen(start);
    if (*size < length || memcmp(*line, start, length) != 0)
        return false;
    *line += length;
    *size -= length;
    return true;
}

/* Reads a decimal number in 1..limit without leading zeros, up to the first other character. */
static bool take_number(const char **at, const char *end, int64_t limit, int64_t *out) {
    const char *start = *at;
    *out = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        *out = *out * 10 + (**at - '0');
        if (*out > limit)
            return false;
    }
    return *at > start && *start != '0';
}

/* ---- a tensor's line: NAME DTYPE [DIM,DIM] COMMITMENT ---- */

static bool take_word(const char **at, const char *end, char *word, size_t size) {
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    const size_t length = space ? (size_t)(space - *at) : 0;
    if (!space || length >= size)
        return false;
    memcpy(word, *at, length);
    word[length] = 0;
    *at = space + 1;
    return true;
}

static bool take_dims(const char **at, const char *end, vd_weight_form *form) {
    if (*at == end || *(*at)++ != '[')
        return false;
    while (*at < end && **at != ']') {
        if (form->ndim == RO_MAX_DIMS || (form->ndim > 0 && *(*at)++ != ','))
            return false;
        if (!take_number(at, end, RO_MAX_NUMEL, &form->dim[form->ndim++]))
            return false;
    }
    return *at < end && *(*at)++ == ']' && vd_weight_bytes(form) > 0;
}

static bool take_hash(const char **at, const char *end, vd_hash *out) {
    char hex[2 * VD_HASH_SIZE + 1];
    if (*at == end || *(*at)++ != ' ' || end - *at != 2 * VD_HASH_SIZE)
        return false;
    memcpy(hex, *at, 2 * VD_HASH_SIZE);
    hex[2 * VD_HASH_SIZE] = 0;
    return vd_unhex(hex, out->b, VD_HASH_SIZE);
}

static bool take_tensor(const char *line, size_t size, vd_manifest_tensor *out) {
    const char *end = line + size;
    char type[16];
    *out = (vd_manifest_tensor){0};
    return take_word(&line, end, out->form.name, sizeof out->form.name) &&
           vd_weight_name_valid(out->form.name) && take_word(&line, end, type, sizeof type) &&
           vd_weight_type_of(type, &out->form.type) && take_dims(&line, end, &out->form) &&
           take_hash(&line, end, &out->commitment);
}

static vd_status read_tensors(text *t, vd_manifest *out) {
    const char *line;
    size_t size;
    for (uint32_t i = 0; i < out->count; i++) {
        if (!next_line(t, &line, &size) || !take_tensor(line, size, &out->tensor[i]))
            return manifest_bad(t, "expected a tensor: NAME DTYPE [DIM,DIM] COMMITMENT");
        if (i > 0 && strcmp(out->tensor[i - 1].form.name, out->tensor[i].form.name) >= 0)
            return manifest_bad(t, "tensors must ascend by name, each once");
    }
    t->line++;
    return t->at == t->end ? VD_OK : manifest_bad(t, "expected the end after the last tensor");
}

/* ---- the head ---- */

static vd_status read_config(text *t, vd_manifest *out) {
    const char *line;
    size_t size;
    vd_err why = {0};
    if (!next_line(t, &line, &size) || !starts_with(&line, &size, "config "))
        return manifest_bad(t, "expected `config` and the bytes of config.json in base64, or `-`");
    out->has_config = !(size == 1 && *line == '-');
    if (!out->has_config)
        return VD_OK;
    if (size > (VD_WEIGHTS_CONFIG_MAX + 2) / 3 * 4)
        return manifest_bad(t, "config.json must have 1 MiB at most");
    vd_status status = vd_unbase64(line, size, &out->config, &why);
    return status == VD_ERR_PEER
               ? manifest_bad(t, why.text)
               : (status == VD_OK ? VD_OK : vd_fail(t->err, status, "%s", why.text));
}

static vd_status read_count(text *t, vd_manifest *out) {
    const char *line;
    size_t size;
    int64_t count;
    if (!next_line(t, &line, &size) || !starts_with(&line, &size, "tensors "))
        return manifest_bad(t, "expected `tensors` and how many there are");
    char range[64];
    snprintf(range, sizeof range, "the number of tensors must be 1..%d", VD_WEIGHTS_MAX);
    const char *end = line + size;
    if (!take_number(&line, end, VD_WEIGHTS_MAX, &count) || line != end)
        return manifest_bad(t, range);
    out->count = (uint32_t)count;
    out->tensor = calloc(out->count, sizeof *out->tensor);
    return out->tensor ? VD_OK : vd_fail(t->err, VD_ERR_LOCAL, "%s: out of memory", t->name);
}

vd_status vd_manifest_parse(const void *bytes, size_t size, const char *name, vd_manifest *out,
                            vd_err *err) {
    text t = {.at = bytes, .end = (const char *)bytes + size, .name = name, .err = err};
    const char *line;
    size_t length;
    *out = (vd_manifest){0};
    vd_status status = next_line(&t, &line, &length)
                           ? vd_title_read(name, line, length, "verde manifest ", "a manifest", err)
                           : manifest_bad(&t, "expected the line `verde manifest 1`");
    if (status == VD_OK)
        status = read_config(&t, out);
    if (status == VD_OK)
        status = read_count(&t, out);
    if (status == VD_OK)
        status = read_tensors(&t, out);
    if (status != VD_OK)
        vd_manifest_free(out);
    return status;
}

vd_status vd_manifest_read(const char *path, vd_manifest *out, vd_err *err) {
    vd_buf file = {0};
    *out = (vd_manifest){0};
    vd_status status = vd_read_file(path, VD_MANIFEST_BYTES_MAX, &file, err);
    if (status == VD_OK)
        status = vd_manifest_parse(file.data, file.size, path, out, err);
    vd_buf_free(&file);
    return status;
}
