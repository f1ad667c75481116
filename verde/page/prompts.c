/* The page of a job with prompts: for each, its tokens, its result, and its run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/exec/check.h"
#include "verde/exec/items.h"
#include "verde/page/internal.h"

enum {
    PLACES_BYTES = 1 << 20, /* data.json */
    PLACES_ELEMENT_BYTES = 4,
    LINE_BYTES = 1 << 20, /* of results; longer lines are not shown */
    PATH_SIZE = 1200,
};

typedef struct {
    const char *dir;
    vd_items items;
    vd_map lines; /* results so far; empty: there are none */
    size_t at;    /* offset of the next line */
    vd_err *err;
} prompt_page;

/* ---- tokens ---- */

static void put_token(vd_buf *out, int64_t at, int64_t token) {
    if (at < VD_PAGE_TOKENS)
        vd_printf(out, "%s%lld", at ? ", " : "", (long long)token);
}

/* Returns "15, 2, 9 (3 tokens)", and frees *text. */
static json_t *tokens_json(vd_buf *text, int64_t count) {
    vd_printf(text, "%s (%lld token%s)", count > VD_PAGE_TOKENS ? ", ..." : "", (long long)count,
              count == 1 ? "" : "s");
    json_t *out = json_stringn((const char *)text->data, vd_buf_ok(text) ? text->size : 0);
    vd_buf_free(text);
    return out;
}

/* ---- the prompt's tokens ---- */

/* Returns the offset in the run of its first data tensor, which is the program's prompt; -1: the
 * run has no copy. */
static int64_t place_of_prompt(const char *run) {
    char path[PATH_SIZE];
    json_t *places = NULL;
    int64_t offset = -1;
    snprintf(path, sizeof path, "%s/data.json", run);
    if (vd_json_load(path, PLACES_BYTES, PLACES_ELEMENT_BYTES, &places, NULL) == VD_OK) {
        const json_t *first = json_array_get(json_object_get(places, "data"), 0);
        const char *file = json_string_value(json_object_get(first, "file"));
        const json_t *at = json_object_get(first, "offset");
        if (file && strcmp(file, "data") == 0 && json_is_integer(at))
            offset = json_integer_value(at);
    }
    json_decref(places);
    return offset;
}

static int32_t *read_tokens(const char *run, const vd_program *program) {
    const vd_leaf *prompt = &program->data[0].tensor;
    const uint64_t size = vd_shape_bytes(&prompt->shape);
    const int64_t offset = place_of_prompt(run);
    char path[PATH_SIZE];
    vd_map file = {0};
    int32_t *tokens = NULL;
    snprintf(path, sizeof path, "%s/data", run);
    if (offset < 0 || vd_map_file(path, &file, NULL) != VD_OK)
        return NULL;
    if (size <= file.size && (uint64_t)offset <= file.size - size)
        tokens = malloc(size);
    if (tokens) {
        memcpy(tokens, file.data + offset, size);
        vd_from_little(tokens, size, sizeof *tokens);
    }
    vd_map_free(&file);
    return tokens;
}

static bool are_those(const vd_data *data, const int32_t *tokens) {
    vd_hash bytes, root;
    return vd_tensor_hash(NULL, &data->tensor.shape, tokens, &bytes, &root, NULL) == VD_OK &&
           memcmp(root.b, data->root, VD_HASH_SIZE) == 0;
}

/* Writes a prompt's tokens if they are those that the program commits to. A batch has none. */
static void put_prompt(json_t *out, const char *run, const vd_program *program) {
    const vd_data *first = program->data;
    if (program->data_count == 0 || first->tensor.shape.dtype != RO_I32 ||
        vd_program_answers(program))
        return;
    int32_t *tokens = read_tokens(run, program);
    if (tokens && are_those(first, tokens)) {
        const int64_t count = ro_shape_numel(&first->tensor.shape);
        vd_buf text = {0};
        for (int64_t i = 0; i < count && i < VD_PAGE_TOKENS; i++)
            put_token(&text, i, tokens[i]);
        json_object_set_new(out, "prompt", tokens_json(&text, count));
    }
    free(tokens);
}

/* ---- its result ---- */

/* Returns the next line if it is this item's. A line that is too long is skipped. */
static json_t *next_line(prompt_page *p, int64_t key) {
    const char *from = (const char *)p->lines.data + p->at;
    const size_t left = p->lines.size - p->at;
    const char *end = left ? memchr(from, '\n', left) : NULL;
    json_t *line = NULL;
    if (!end)
        return NULL;
    const size_t size = (size_t)(end - from);
    p->at += size + 1;
    if (size <= LINE_BYTES && vd_json_read(from, size, size, &line, NULL) == VD_OK &&
        json_integer_value(json_object_get(line, "key")) == key)
        return line;
    json_decref(line);
    return NULL;
}

static void put_answer(json_t *out, const json_t *line) {
    json_t *ids = json_object_get(line, "ids"), *value;
    const char *name;
    vd_buf text = {0};
    size_t i;
    json_array_foreach(ids, i, value) put_token(&text, (int64_t)i, json_integer_value(value));
    if (ids)
        json_object_set_new(out, "answer", tokens_json(&text, (int64_t)json_array_size(ids)));
    json_object_foreach((json_t *)line, name, value) {
        if (strcmp(name, "key") != 0 && !json_is_array(value) && !json_is_object(value))
            json_object_set(out, strcmp(name, "stopped") == 0 ? "ended_by" : name, value);
    }
    if (json_object_get(line, "answers"))
        json_object_set(out, "answers", json_object_get(line, "answers"));
}

/* ---- the progress of its run ---- */

static json_t *state_json(const prompt_page *p, uint32_t item, const char *run) {
    char text[80] = "waits";
    vd_run_log log = {0};
    if (p->items.delivered[item])
        return json_string("delivered by another");
    if (p->items.done[item])
        return json_string("finished");
    if (vd_store_load_log(run, &log, NULL) == VD_OK && log.count > 0)
        snprintf(text, sizeof text, "runs, step %lld", (long long)log.step[log.count - 1]);
    vd_run_log_free(&log);
    return json_string(text);
}

static json_t *item_json(prompt_page *p, uint32_t item) {
    char run[1024];
    vd_hash hash;
    vd_program program = {0};
    json_t *line = next_line(p, p->items.key[item]);
    json_t *out = json_pack("{sI}", "key", (json_int_t)p->items.key[item]);
    vd_items_path(run, p->dir, p->items.key[item]);
    json_object_set_new(out, "state", state_json(p, item, run));
    if (vd_store_program(run, &program, NULL) == VD_OK &&
        vd_program_hash(&program, &hash, NULL) == VD_OK &&
        vd_hash_equal(&hash, &p->items.program[item]))
        put_prompt(out, run, &program);
    if (line)
        put_answer(out, line);
    if (p->items.done[item])
        json_object_set_new(out, "run_root", vd_hash_text(&p->items.run_root[item]));
    vd_program_free(&program);
    json_decref(line);
    return out;
}

/* ---- all of it ---- */

static vd_status values_json(prompt_page *p, json_t **out) {
    const vd_items *items = &p->items;
    const bool whole = vd_items_all_done(items);
    json_t *list = json_array();
    json_int_t done = 0;
    vd_hash collection, root = {{0}};
    vd_status status = vd_collection_hash(items->program, items->count, &collection, p->err);
    if (status == VD_OK && whole)
        status = vd_items_job_root(items, &root, p->err);
    for (uint32_t i = 0; i < items->count; i++)
        done += items->done[i];
    for (uint32_t i = 0; status == VD_OK && i < items->count && i < VD_PAGE_ROWS; i++)
        json_array_append_new(list, item_json(p, i));
    *out = json_pack("{sI sI so}", "prompts", (json_int_t)items->count, "done", done, "collection",
                     vd_hash_text(&collection));
    if (whole)
        json_object_set_new(*out, "job_root", vd_hash_text(&root));
    if (items->count > VD_PAGE_ROWS)
        json_object_set_new(*out, "shown_below", json_integer(VD_PAGE_ROWS));
    json_object_set_new(*out, "each_prompt", list);
    return status;
}

/* Maps the results, which are in another file while the run is still writing them. */
static void map_lines(prompt_page *p) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/results.jsonl", p->dir);
    if (vd_map_file(path, &p->lines, NULL) == VD_OK)
        return;
    snprintf(path, sizeof path, "%s/results.jsonl.part", p->dir);
    if (vd_map_file(path, &p->lines, NULL) != VD_OK)
        p->lines = (vd_map){0};
}

vd_status vd_page_of_prompts(const char *dir, vd_buf *out, vd_err *err) {
    prompt_page p = {.dir = dir, .err = err};
    json_t *values = NULL;
    vd_status status = vd_items_load(dir, &p.items, err);
    if (status != VD_OK)
        return status;
    map_lines(&p);
    status = values_json(&p, &values);
    const bool whole = vd_items_all_done(&p.items);
    const vd_page_report report = {
        .kind = "A run of many prompts",
        .name = vd_page_base_name(dir),
        .headline = whole ? "A finished run" : "An unfinished run",
        .mood = whole ? "good" : "wait",
        .sentence = "Numbers in prompts and answers are tokens of the model. This page says what "
                    "the folder says; \"verde check\" compares every byte of the runs.",
        .values = values};
    if (status == VD_OK)
        status = vd_page_of_report(&report, out, err);
    json_decref(values);
    if (p.lines.size)
        vd_map_free(&p.lines);
    vd_items_free(&p.items);
    return status;
}
