/* This file reads a job's prompts, one line of JSON at a time. */
#include <stdlib.h>
#include <string.h>

#include "verde/commit/commit.h"
#include "verde/commit/json.h"
#include "verde/job/job.h"

typedef struct {
    const vd_job *job;
    const char *path;
    uint64_t line; /* from 1 */
    vd_prompts *out;
    vd_err *err;
} prompt_reader;

void vd_prompts_free(vd_prompts *prompts) {
    free(prompts->list);
    free(prompts->token);
    *prompts = (vd_prompts){0};
}

static vd_status fail_line(const prompt_reader *r, const char *what, const char *expected) {
    return vd_fail(r->err, VD_ERR_USAGE, "%s:%llu: %s must be %s", r->path,
                   (unsigned long long)r->line, what, expected);
}

/* ---- room ---- */

/* Returns the list with room for one more element, or NULL without memory. */
static void *grown(void *list, uint64_t count, uint64_t *capacity, size_t size) {
    if (list && count < *capacity)
        return list;
    *capacity = *capacity ? 2 * *capacity : 64;
    return realloc(list, *capacity * size);
}

static bool room_for_prompt(vd_prompts *p) {
    uint64_t capacity = p->capacity;
    vd_prompt *list = grown(p->list, p->count, &capacity, sizeof *list);
    if (list) {
        p->list = list;
        p->capacity = (uint32_t)capacity;
    }
    return list != NULL;
}

static bool put_token(vd_prompts *p, int32_t token) {
    uint64_t capacity = p->tokens_capacity;
    int32_t *list = grown(p->token, p->tokens, &capacity, sizeof *list);
    if (!list)
        return false;
    p->token = list;
    p->tokens_capacity = capacity;
    list[p->tokens++] = token;
    return true;
}

/* ---- a line ---- */

/* Limits on the length of a list of numbers, and on each number. */
typedef struct {
    size_t least, most;
    int64_t below;
} id_limits;

static id_limits limits_of(const vd_job *job) {
    const vd_model *m = &job->training.model;
    const size_t image = (size_t)(VD_IMAGE_PLANES * m->image * m->image);
    if (m->kind == VD_MODEL_RESNET)
        return (id_limits){image, image, 256};
    const bool follows = job->task == VD_JOB_SCORES && m->task != VD_TASK_CLASSES;
    return (id_limits){follows ? 2 : 1, VD_TOKENS_MAX, m->vocab};
}

static vd_status take_id(prompt_reader *r, size_t i, const json_t *id) {
    const int64_t vocab = limits_of(r->job).below;
    char what[32], expected[64];
    if (json_is_integer(id) && json_integer_value(id) >= 0 && json_integer_value(id) < vocab)
        return put_token(r->out, (int32_t)json_integer_value(id))
                   ? VD_OK
                   : vd_fail(r->err, VD_ERR_LOCAL, "%s: out of memory", r->path);
    snprintf(what, sizeof what, "ids[%zu]", i);
    snprintf(expected, sizeof expected, "a whole number 0..%lld", (long long)vocab - 1);
    return fail_line(r, what, expected);
}

static vd_status take_ids(prompt_reader *r, const json_t *ids, vd_prompt *out) {
    const id_limits limits = limits_of(r->job);
    const size_t count = json_array_size(ids);
    char expected[64];
    snprintf(expected, sizeof expected, "a list of %zu..%zu tokens", limits.least, limits.most);
    if (limits.least == limits.most)
        snprintf(expected, sizeof expected, "a list of %zu bytes", limits.least);
    if (!json_is_array(ids) || count < limits.least || count > limits.most)
        return fail_line(r, "ids", expected);
    out->first = r->out->tokens;
    out->count = (int64_t)count;
    vd_status status = VD_OK;
    for (size_t i = 0; i < count && status == VD_OK; i++)
        status = take_id(r, i, json_array_get(ids, i));
    return status;
}

/* The members that a line may have, for errors. */
static const char *members_of(const vd_job *job) {
    return job->task == VD_JOB_GENERATES ? "`key`, `ids` and perhaps `max_tokens`"
                                         : "`key` and `ids` alone";
}

static vd_status check_names(const prompt_reader *r, json_t *line) {
    const bool generates = r->job->task == VD_JOB_GENERATES;
    const char *name;
    json_t *value;
    json_object_foreach(line, name, value) {
        if (strcmp(name, "key") != 0 && strcmp(name, "ids") != 0 &&
            !(generates && strcmp(name, "max_tokens") == 0))
            return vd_fail(r->err, VD_ERR_USAGE, "%s:%llu: has a member `%.40s`, expected %s",
                           r->path, (unsigned long long)r->line, name, members_of(r->job));
    }
    return VD_OK;
}

/* Reads a prompt's own limit of tokens, which is at most the job's. */
static vd_status take_limit(const prompt_reader *r, const json_t *limit, vd_prompt *out) {
    const int64_t most = r->job->generation.max_tokens;
    char expected[64];
    out->max_tokens = limit ? json_integer_value(limit) : most;
    snprintf(expected, sizeof expected, "a whole number 1..%lld", (long long)most);
    return !limit || (json_is_integer(limit) && out->max_tokens >= 1 && out->max_tokens <= most)
               ? VD_OK
               : fail_line(r, "max_tokens", expected);
}

static vd_status take_members(prompt_reader *r, json_t *line) {
    const json_t *key = json_object_get(line, "key");
    vd_prompt prompt = {0};
    vd_status status = check_names(r, line);
    if (status != VD_OK)
        return status;
    if (!json_is_integer(key) || json_integer_value(key) < 0)
        return fail_line(r, "key", "a whole number 0..9223372036854775807");
    prompt.key = json_integer_value(key);
    status = take_ids(r, json_object_get(line, "ids"), &prompt);
    if (status == VD_OK)
        status = take_limit(r, json_object_get(line, "max_tokens"), &prompt);
    if (status != VD_OK)
        return status;
    if (!room_for_prompt(r->out))
        return vd_fail(r->err, VD_ERR_LOCAL, "%s: out of memory", r->path);
    r->out->list[r->out->count++] = prompt;
    return VD_OK;
}

static vd_status take_line(prompt_reader *r, const uint8_t *text, size_t size) {
    vd_err why = {0};
    json_t *line = NULL;
    r->line++;
    size -= size > 0 && text[size - 1] == '\r';
    if (r->out->count == VD_PROMPTS_MAX)
        return vd_fail(r->err, VD_ERR_USAGE, "%s: has more than %d lines", r->path, VD_PROMPTS_MAX);
    if (size > VD_PROMPT_LINE_MAX)
        return vd_fail(r->err, VD_ERR_USAGE, "%s:%llu: a line must have at most %d bytes, got %zu",
                       r->path, (unsigned long long)r->line, VD_PROMPT_LINE_MAX, size);
    vd_status status = vd_json_read(text, size, VD_TOKENS_MAX + 4, &line, &why);
    if (status == VD_ERR_PEER)
        return vd_fail(r->err, VD_ERR_USAGE, "%s:%llu: %s", r->path, (unsigned long long)r->line,
                       why.text);
    if (status != VD_OK)
        return vd_fail(r->err, status, "%s: %s", r->path, why.text);
    status = take_members(r, line);
    json_decref(line);
    return status;
}

/* ---- a file ---- */

/* Splits the file into lines. They end with LF or CR LF; the last line may have no end. */
static vd_status take_lines(prompt_reader *r, const uint8_t *at, size_t size) {
    const uint8_t *end = at + size;
    vd_status status = VD_OK;
    while (at < end && status == VD_OK) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *stop = newline ? newline : end;
        status = take_line(r, at, (size_t)(stop - at));
        at = stop + 1;
    }
    if (status == VD_OK && r->out->count == 0)
        return vd_fail(r->err, VD_ERR_USAGE, "%s: has no prompts", r->path);
    return status;
}

static vd_status check_sum(const vd_job *job, const vd_map *file, vd_err *err) {
    char got[2 * VD_HASH_SIZE + 1], expected[2 * VD_HASH_SIZE + 1], place[VD_JOB_PLACE_SIZE];
    vd_hash hash;
    if (!vd_hash_tagged(NULL, file->data, file->size, &hash))
        return vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", file->path);
    if (memcmp(hash.b, job->prompts.sha256, VD_HASH_SIZE) == 0)
        return VD_OK;
    vd_hex(hash.b, VD_HASH_SIZE, got);
    vd_hex(job->prompts.sha256, VD_HASH_SIZE, expected);
    return vd_fail(err, VD_ERR_USAGE, "%s: `prompts.sha256` is %s, but %s has %s",
                   vd_job_place(job, "prompts.sha256", place), expected, file->path, got);
}

typedef struct {
    int64_t key;
    uint32_t index;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static vd_status check_keys(const prompt_reader *r) {
    const vd_prompts *p = r->out;
    keyed *order = calloc((size_t)p->count + 1, sizeof *order);
    vd_status status = order ? VD_OK : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; order && i < p->count; i++)
        order[i] = (keyed){p->list[i].key, i};
    if (order)
        qsort(order, p->count, sizeof *order, by_key);
    for (uint32_t i = 1; status == VD_OK && i < p->count; i++)
        if (order[i].key == order[i - 1].key)
            status = vd_fail(r->err, VD_ERR_USAGE,
                             "%s:%u: key %lld is given twice, first on line %u", r->path,
                             order[i].index + 1, (long long)order[i].key, order[i - 1].index + 1);
    free(order);
    return status;
}

vd_status vd_prompts_parse(const vd_job *job, const char *name, const void *text, size_t size,
                           vd_prompts *out, vd_err *err) {
    prompt_reader r = {.job = job, .path = name, .out = out, .err = err};
    *out = (vd_prompts){0};
    vd_status status = take_lines(&r, text, size);
    if (status == VD_OK)
        status = check_keys(&r);
    if (status != VD_OK)
        vd_prompts_free(out);
    return status;
}

vd_status vd_job_load_prompts(const vd_job *job, vd_prompts *out, vd_err *err) {
    const char *path = job->prompts.path;
    vd_map file = {0};
    char place[VD_JOB_PLACE_SIZE];
    vd_err why = {0};
    *out = (vd_prompts){0};
    vd_status status = vd_map_file(path, &file, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "%s: `prompts.file`: %s",
                       vd_job_place(job, "prompts.file", place), why.text);
    if (status == VD_OK)
        status = check_sum(job, &file, err);
    if (status == VD_OK)
        status = vd_prompts_parse(job, path, file.data, file.size, out, err);
    vd_map_free(&file);
    return status;
}

/* ---- programs ---- */

void vd_prompt_words(const vd_prompt *prompt, int32_t word[2]) {
    const uint32_t half[] = {(uint32_t)prompt->key, (uint32_t)((uint64_t)prompt->key >> 32)};
    memcpy(word, half, sizeof half);
}

static vd_status commit_words(const int32_t *word, int64_t count, uint8_t root[32], vd_err *err) {
    const ro_shape shape = {RO_I32, 1, {count}};
    vd_hash byte_root, commitment;
    vd_status status = vd_tensor_hash(NULL, &shape, word, &byte_root, &commitment, err);
    memcpy(root, commitment.b, VD_HASH_SIZE);
    return status;
}

vd_status vd_job_prompt_program(const vd_job *job, const vd_prompts *prompts, uint32_t index,
                                vd_program *out, vd_err *err) {
    const vd_prompt *p = &prompts->list[index];
    vd_prompt_form form = {.count = p->count};
    vd_generation how = job->generation;
    how.max_tokens = p->max_tokens;
    vd_err why = {0};
    int32_t key[2];
    *out = (vd_program){0};
    vd_prompt_words(p, key);
    vd_status status = commit_words(prompts->token + p->first, p->count, form.root, err);
    if (status == VD_OK)
        status = commit_words(key, 2, form.key_root, err);
    if (status != VD_OK)
        return status;
    status = job->task == VD_JOB_SCORES
                 ? vd_score_program(&job->training, &form, out, &why)
                 : vd_generation_program(&job->training, &how, &form, out, &why);
    return status == VD_OK ? VD_OK
                           : vd_fail(err, status, "%s: %s:%u: %s", job->path, job->prompts.path,
                                     index + 1, why.text);
}
