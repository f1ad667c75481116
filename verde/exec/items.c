/* This file keeps the folder of a collection, and its run.json. */
#include "verde/exec/items.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"

enum { LOG_BYTES_MAX = 256 << 20, ITEM_ELEMENTS = 8, PATH_SIZE = 1024 };

vd_status vd_items_create(uint32_t count, vd_items *out, vd_err *err) {
    const size_t room = (size_t)count + 1;
    *out = (vd_items){.count = count};
    out->key = calloc(room, sizeof *out->key);
    out->program = calloc(room, sizeof *out->program);
    out->run_root = calloc(room, sizeof *out->run_root);
    out->done = calloc(room, sizeof *out->done);
    out->delivered = calloc(room, sizeof *out->delivered);
    if (out->key && out->program && out->run_root && out->done && out->delivered)
        return VD_OK;
    vd_items_free(out);
    return vd_fail(err, VD_ERR_LOCAL, "out of memory");
}

void vd_items_free(vd_items *items) {
    free(items->key);
    free(items->program);
    free(items->run_root);
    free(items->done);
    free(items->delivered);
    *items = (vd_items){0};
}

const char *vd_answer_name(const vd_leaf *leaf) {
    static const char prefix[] = "answer.";
    const size_t size = sizeof prefix - 1;
    return strncmp(leaf->name, prefix, size) == 0 ? leaf->name + size : NULL;
}

bool vd_program_answers(const vd_program *p) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (vd_answer_name(&p->leaf[i]))
            return true;
    return false;
}

bool vd_items_all_here(const vd_items *items) {
    for (uint32_t i = 0; i < items->count; i++)
        if (items->delivered[i])
            return false;
    return true;
}

bool vd_items_all_done(const vd_items *items) {
    for (uint32_t i = 0; i < items->count; i++)
        if (!items->done[i])
            return false;
    return true;
}

vd_status vd_items_job_root(const vd_items *items, vd_hash *out, vd_err *err) {
    if (!vd_items_all_done(items))
        return vd_fail(err, VD_ERR_USAGE, "not all prompts are done");
    return vd_collection_root(items->run_root, items->count, out, err);
}

/* ---- files ---- */

static void file_in(char path[PATH_SIZE], const char *dir, const char *name) {
    snprintf(path, PATH_SIZE, "%s/%s", dir, name);
}

void vd_items_path(char path[PATH_SIZE], const char *dir, int64_t key) {
    snprintf(path, PATH_SIZE, "%s/prompts/%lld", dir, (long long)key);
}

bool vd_items_are_in(const char *dir) {
    return vd_lies_in(dir, "prompts");
}

static bool same_items(const vd_items *a, const vd_items *b) {
    return a->count == b->count &&
           memcmp(a->program, b->program, a->count * sizeof *a->program) == 0 &&
           memcmp(a->key, b->key, a->count * sizeof *a->key) == 0;
}

vd_status vd_items_begin(const char *dir, const vd_items *items, vd_err *err) {
    static const char *const names[] = {"run.json", "program", "results.jsonl"};
    char path[PATH_SIZE];
    vd_items there = {0};
    if (strlen(dir) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", dir);
    if (vd_items_are_in(dir) && vd_lies_in(dir, "run.json")) {
        vd_status status = vd_items_load(dir, &there, err);
        if (status == VD_OK && !same_items(&there, items))
            status = vd_fail(err, VD_ERR_USAGE,
                             "%s: holds another job with prompts; give another directory", dir);
        vd_items_free(&there);
        return status;
    }
    if (vd_items_are_in(dir) && vd_lies_in(dir, "results.jsonl"))
        return vd_fail(err, VD_ERR_USAGE,
                       "%s: its run.json is missing, beside prompts and results.jsonl; bring it "
                       "back, or delete results.jsonl: the same job then goes on from the prompts' "
                       "runs",
                       dir);
    for (int i = 0; i < 3; i++)
        if (vd_lies_in(dir, names[i]))
            return vd_fail(err, VD_ERR_USAGE,
                           "%s: holds a %s that this job would overwrite; give another directory",
                           dir, names[i]);
    file_in(path, dir, "prompts");
    vd_status status = vd_make_dir(path, err);
    return status == VD_OK ? vd_items_save(dir, items, err) : status;
}

/* ---- run.json ---- */

static json_t *item_json(const vd_items *items, uint32_t i) {
    json_t *item = json_pack("{sI so}", "key", (json_int_t)items->key[i], "program",
                             vd_hash_text(&items->program[i]));
    if (items->done[i])
        json_object_set_new(item, "run_root", vd_hash_text(&items->run_root[i]));
    if (items->delivered[i])
        json_object_set_new(item, "delivered", json_true());
    return item;
}

static json_t *items_json(const vd_items *items, const vd_hash *hash, const vd_hash *root) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < items->count; i++)
        json_array_append_new(list, item_json(items, i));
    json_t *out = json_pack("{si so so}", "verde_items", 1, "collection", vd_hash_text(hash),
                            "prompts", list);
    if (root)
        json_object_set_new(out, "job_root", vd_hash_text(root));
    return out;
}

vd_status vd_items_save(const char *dir, const vd_items *items, vd_err *err) {
    const bool whole = vd_items_all_done(items);
    char path[PATH_SIZE];
    vd_hash hash, root;
    file_in(path, dir, "run.json");
    vd_status status = vd_collection_hash(items->program, items->count, &hash, err);
    if (status == VD_OK && whole)
        status = vd_items_job_root(items, &root, err);
    if (status != VD_OK)
        return status;
    vd_json_start();
    json_t *object = items_json(items, &hash, whole ? &root : NULL);
    char *text = vd_json_failed() ? NULL : json_dumps(object, JSON_INDENT(1));
    status = text ? vd_write_file(path, text, strlen(text), 0644, err)
                  : vd_fail(err, VD_ERR_LOCAL, "%s: out of memory", path);
    free(text);
    json_decref(object);
    return status;
}

/* ---- reading ---- */

static bool get_item(const json_t *item, vd_items *out, uint32_t i) {
    const json_t *key = json_object_get(item, "key"), *root = json_object_get(item, "run_root");
    const json_t *delivered = json_object_get(item, "delivered");
    out->key[i] = json_integer_value(key);
    out->done[i] = root != NULL;
    out->delivered[i] = delivered != NULL;
    return json_is_integer(key) && (!delivered || (root && json_is_true(delivered))) &&
           out->key[i] >= 0 && vd_json_get_hash(item, "program", &out->program[i]) &&
           (!root || vd_json_to_hash(root, &out->run_root[i]));
}

static vd_status check_names(const json_t *object, const vd_items *items, const char *path,
                             vd_err *err) {
    const json_t *named = json_object_get(object, "job_root");
    vd_hash hash, root, found;
    vd_status status = vd_collection_hash(items->program, items->count, &hash, err);
    if (status == VD_OK &&
        (!vd_json_get_hash(object, "collection", &found) || !vd_hash_equal(&found, &hash)))
        status =
            vd_fail(err, VD_ERR_PEER,
                    "%s: damaged: its programs do not give the collection that it names", path);
    if (status != VD_OK || (!named && !vd_items_all_done(items)))
        return status;
    status = vd_items_job_root(items, &root, err);
    if (status == VD_OK && (!vd_json_to_hash(named, &found) || !vd_hash_equal(&found, &root)))
        status = vd_fail(err, VD_ERR_PEER,
                         "%s: damaged: its run roots do not give the job root that it names", path);
    return status;
}

static vd_status read_item(const json_t *item, vd_items *out, uint32_t i, vd_err *err) {
    static const char *const names[] = {"key", "program", "run_root", "delivered", NULL};
    char place[32];
    snprintf(place, sizeof place, "prompts[%u]", i);
    vd_status status = vd_json_known(item, place, names, err);
    return status != VD_OK || get_item(item, out, i)
               ? status
               : vd_fail(err, VD_ERR_PEER, "%s is not one of a job", place);
}

static vd_status read_list(const json_t *object, vd_items *out, vd_err *err) {
    static const char *const names[] = {"verde_items", "collection", "prompts", "job_root", NULL};
    const json_t *list = json_object_get(object, "prompts");
    const size_t count = json_array_size(list);
    vd_status status =
        vd_json_begin(object, "verde_items", "the log of a job with prompts", names, err);
    if (status != VD_OK)
        return status;
    if (count > VD_COLLECTION_ITEMS_MAX)
        return vd_fail_limit(err, NULL, count, "prompts", VD_COLLECTION_ITEMS_MAX);
    if (count < 1)
        return vd_fail(err, VD_ERR_PEER, "`prompts` must be a list of one or more");
    status = vd_items_create((uint32_t)count, out, err);
    for (uint32_t i = 0; status == VD_OK && i < count; i++)
        status = read_item(json_array_get(list, i), out, i, err);
    return status;
}

static vd_status read_items(const json_t *object, const char *path, vd_items *out, vd_err *err) {
    vd_err why = {0};
    vd_status status = read_list(object, out, &why);
    if (status != VD_OK)
        return vd_fail(err, status, "%s: %s", path, why.text);
    return check_names(object, out, path, err);
}

vd_status vd_items_load(const char *dir, vd_items *out, vd_err *err) {
    char path[PATH_SIZE];
    json_t *object = NULL;
    *out = (vd_items){0};
    file_in(path, dir, "run.json");
    vd_status status = vd_json_load(path, LOG_BYTES_MAX, ITEM_ELEMENTS, &object, err);
    if (status == VD_OK)
        status = read_items(object, path, out, err);
    json_decref(object);
    if (status != VD_OK)
        vd_items_free(out);
    return status;
}
