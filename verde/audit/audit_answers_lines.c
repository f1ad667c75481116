/* Reads the lines of results.jsonl, which may have been written by anyone. */
#include <stdlib.h>
#include <string.h>

#include "verde/audit/audit_answers.h"
#include "verde/commit/json.h"

enum { LINES_MAX = 1 << 20 }; /* as in a file of prompts */

static vd_status refuse(const vd_answer_lines *x, const vd_answer_line *line, const char *what,
                        vd_err *err) {
    return vd_fail(err, VD_ERR_PEER, "%s:%u: %s", x->path, line->number, what);
}

static vd_status parse(const vd_answer_lines *x, const vd_answer_line *line, json_t **out,
                       vd_err *err) {
    vd_err why = {0};
    *out = NULL;
    if (line->size > VD_ANSWER_LINE_MAX)
        return refuse(x, line, "a line has at most 64 MiB", err);
    const vd_status status = vd_json_read((const uint8_t *)x->file.data + line->at,
                                          (size_t)line->size, (size_t)line->size + 1, out, &why);
    return status == VD_OK ? VD_OK
                           : vd_fail(err, status, "%s:%u: %s", x->path, line->number, why.text);
}

/* ---- all lines ---- */

static vd_status take_key(const vd_answer_lines *x, vd_answer_line *line, vd_err *err) {
    json_t *object;
    vd_status status = parse(x, line, &object, err);
    const json_t *key = json_object_get(object, "key");
    line->key = json_integer_value(key);
    if (status == VD_OK && (!json_is_integer(key) || line->key < 0))
        status = refuse(x, line, "`key` must be an integer from 0", err);
    json_decref(object);
    return status;
}

static vd_status take_line(vd_answer_lines *x, uint64_t at, uint64_t size, vd_err *err) {
    if (x->count == LINES_MAX)
        return vd_fail(err, VD_ERR_PEER, "%s: has more than %d lines", x->path, LINES_MAX);
    if ((x->count & (x->count - 1)) == 0) { /* the count is 0 or a power of two: grow */
        vd_answer_line *grown =
            realloc(x->line, (x->count ? 2 * (size_t)x->count : 1) * sizeof *grown);
        if (!grown)
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
        x->line = grown;
    }
    vd_answer_line *line = &x->line[x->count];
    *line = (vd_answer_line){.at = at, .size = size, .number = x->count + 1};
    x->count++;
    return take_key(x, line, err);
}

static int compare_keys(const void *a, const void *b) {
    const int64_t x = ((const vd_answer_key *)a)->key, y = ((const vd_answer_key *)b)->key;
    return x < y ? -1 : x > y;
}

static vd_status sort_keys(vd_answer_lines *x, vd_err *err) {
    x->by_key = malloc(((size_t)x->count + 1) * sizeof *x->by_key);
    if (!x->by_key)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < x->count; i++)
        x->by_key[i] = (vd_answer_key){x->line[i].key, i};
    qsort(x->by_key, x->count, sizeof *x->by_key, compare_keys);
    for (uint32_t i = 1; i < x->count; i++)
        if (x->by_key[i - 1].key == x->by_key[i].key)
            return vd_fail(err, VD_ERR_PEER, "%s: two lines have the key %lld", x->path,
                           (long long)x->by_key[i].key);
    return VD_OK;
}

vd_status vd_answer_lines_open(const char *dir, vd_answer_lines *x, vd_err *err) {
    *x = (vd_answer_lines){0};
    snprintf(x->path, sizeof x->path, "%.900s/results.jsonl", dir);
    vd_status status = vd_map_file(x->path, &x->file, err);
    for (uint64_t at = 0; status == VD_OK && at < x->file.size;) {
        const uint8_t *begin = (const uint8_t *)x->file.data + at;
        const uint8_t *end = memchr(begin, '\n', (size_t)(x->file.size - at));
        if (!end)
            return vd_fail(err, VD_ERR_PEER, "%s:%u: must end with a newline", x->path,
                           x->count + 1);
        status = take_line(x, at, (uint64_t)(end - begin), err);
        at += (uint64_t)(end - begin) + 1;
    }
    return status == VD_OK ? sort_keys(x, err) : status;
}

void vd_answer_lines_free(vd_answer_lines *x) {
    vd_map_free(&x->file);
    free(x->line);
    free(x->by_key);
    *x = (vd_answer_lines){0};
}

const vd_answer_line *vd_answer_line_of(const vd_answer_lines *x, int64_t key) {
    uint32_t low = 0, high = x->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (x->by_key[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->count && x->by_key[low].key == key ? &x->line[x->by_key[low].line] : NULL;
}

/* ---- one line ---- */

static bool is_real(const json_t *x) {
    return json_is_number(x) || json_is_null(x);
}

static bool are_reals(const json_t *list, size_t count) {
    bool good = json_is_array(list) && json_array_size(list) == count;
    for (size_t i = 0; good && i < count; i++)
        good = is_real(json_array_get(list, i));
    return good;
}

/* Checks a list of pairs: [[token, log-probability], ...]. */
static bool are_pairs(const json_t *list, int64_t count) {
    bool good = json_is_array(list) && json_array_size(list) == (size_t)count;
    for (size_t i = 0; good && i < (size_t)count; i++) {
        const json_t *pair = json_array_get(list, i);
        good = json_is_array(pair) && json_array_size(pair) == 2 &&
               json_is_integer(json_array_get(pair, 0)) && is_real(json_array_get(pair, 1));
    }
    return good;
}

static bool are_best(const json_t *list, size_t count, int64_t best) {
    bool good = json_is_array(list) && json_array_size(list) == count;
    for (size_t i = 0; good && i < count; i++)
        good = are_pairs(json_array_get(list, i), best);
    return good;
}

/* Reads the tokens. An invalid token is kept, and is compared as a number later. */
static vd_status take_tokens(const vd_answer_lines *x, const vd_answer_line *line,
                             vd_answer_claim *out, vd_err *err) {
    const json_t *ids = json_object_get(out->line, "ids");
    bool good = json_is_array(ids) && json_array_size(ids) <= VD_TOKENS_MAX;
    out->count = good ? (int64_t)json_array_size(ids) : 0;
    out->token = malloc(((size_t)out->count + 1) * sizeof *out->token);
    if (!out->token)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (int64_t i = 0; good && i < out->count; i++) {
        const json_t *id = json_array_get(ids, (size_t)i);
        const json_int_t token = json_integer_value(id);
        good = json_is_integer(id);
        out->token[i] = token >= 0 && token <= INT32_MAX ? (int32_t)token : -1;
    }
    return good ? VD_OK : refuse(x, line, "`ids` must be a list of integers, at most 65536", err);
}

static vd_status take_stopped(const vd_answer_lines *x, const vd_answer_line *line,
                              vd_answer_claim *out, vd_err *err) {
    const char *stopped = json_string_value(json_object_get(out->line, "stopped"));
    out->stop = stopped && strcmp(stopped, "stop") == 0;
    if (out->stop || (stopped && strcmp(stopped, "length") == 0))
        return VD_OK;
    return refuse(x, line, "`stopped` must be \"stop\" or \"length\"", err);
}

static vd_status take_likely(const vd_answer_lines *x, const vd_answer_line *line,
                             const vd_generation *how, vd_answer_claim *out, vd_err *err) {
    const size_t count = (size_t)out->count;
    const json_t *not_finite = json_object_get(out->line, "not_finite");
    out->log_probability = json_object_get(out->line, "log_probabilities");
    out->best = json_object_get(out->line, "best");
    if (how->best >= 0 && !are_reals(out->log_probability, count))
        return refuse(x, line, "`log_probabilities` must be a list of a number for each of `ids`",
                      err);
    if (how->best > 0 && !are_best(out->best, count, how->best))
        return vd_fail(err, VD_ERR_PEER,
                       "%s:%u: `best` must be a list of %lld pairs of token and number for each of "
                       "`ids`",
                       x->path, line->number, (long long)how->best);
    if (not_finite && (!json_is_integer(not_finite) || how->best < 0))
        return refuse(x, line, "`not_finite` must be an integer beside log-probabilities", err);
    return VD_OK;
}

vd_status vd_answer_claim_read(const vd_answer_lines *x, const vd_answer_line *line,
                               const vd_generation *how, vd_answer_claim *out, vd_err *err) {
    static const char *const names[] = {"key",     "ids", "log_probabilities", "best", "not_finite",
                                        "stopped", NULL};
    vd_err why = {0};
    *out = (vd_answer_claim){0};
    vd_status status = parse(x, line, &out->line, err);
    if (status == VD_OK && vd_json_known(out->line, "", names, &why) != VD_OK)
        status = vd_fail(err, VD_ERR_PEER, "%s:%u: %s", x->path, line->number, why.text);
    if (status == VD_OK)
        status = take_tokens(x, line, out, err);
    if (status == VD_OK)
        status = take_stopped(x, line, out, err);
    if (status == VD_OK)
        status = take_likely(x, line, how, out, err);
    if (status == VD_OK && how->best < 0 && (out->log_probability || out->best))
        status = refuse(x, line, "has log-probabilities, and the job tells none", err);
    if (status == VD_OK && how->best == 0 && out->best)
        status = refuse(x, line, "has `best`, and the job tells none", err);
    if (how->best < 0)
        out->log_probability = NULL;
    if (how->best <= 0)
        out->best = NULL;
    return status;
}

void vd_answer_claim_free(vd_answer_claim *claim) {
    json_decref(claim->line);
    free(claim->token);
    *claim = (vd_answer_claim){0};
}
