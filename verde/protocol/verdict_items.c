/* The items in a verdict about a collection. PROTOCOL.md section 7. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/protocol/dispute.h"
#include "verde/protocol/verdict_internal.h"

/* ---- writing ---- */

static json_t *program_json(const vd_program *program) {
    vd_buf bytes = {0};
    vd_program_encode(program, &bytes);
    char *text = vd_buf_ok(&bytes) ? vd_base64(bytes.data, bytes.size) : NULL;
    json_t *out = text ? json_string(text) : NULL;
    free(text);
    vd_buf_free(&bytes);
    return out;
}

static json_t *item_json(const vd_tree *programs, const vd_referee *dispute) {
    const uint64_t item = (uint64_t)dispute->place->item;
    vd_proof proof;
    if (vd_tree_prove(programs, item, &proof, NULL) != VD_OK)
        return NULL;
    json_t *path = json_array();
    for (size_t i = 0; i < proof.length; i++)
        json_array_append_new(path, vd_hash_text(&proof.path[i]));
    return json_pack("{sI so so}", "item", (json_int_t)item, "path", path, "program",
                     program_json(vd_referee_program(dispute)));
}

/* Returns true if an earlier dispute of the list is about the same item. */
static bool is_there(const vd_referee *const *dispute, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (dispute[i]->place->item == dispute[at]->place->item)
            return true;
    return false;
}

json_t *vd_verdict_items_json(const vd_collection *c, const vd_referee *const *dispute,
                              size_t count) {
    vd_tree programs = {0};
    json_t *items = json_array();
    if (vd_tree_of_hashes(&programs, c->program, c->count, NULL) != VD_OK)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (dispute[i]->place->item >= 0 && !is_there(dispute, i))
            json_array_append_new(items, item_json(&programs, dispute[i]));
    vd_tree_free(&programs);
    return json_pack("{sI so so}", "count", (json_int_t)c->count, "programs",
                     vd_hash_text(&c->programs), "items", items);
}

/* ---- reading ---- */

static vd_status broken(vd_err *err) {
    return vd_fail(err, VD_ERR_PEER, "verdict: its collection is malformed");
}

/* Checks that an item is listed once, and that its program's hash leads to the root over all
 * programs. */
static vd_status check_item(const vd_verdict_items *all, const vd_verdict_item *item,
                            const vd_buf *bytes, const json_t *path, vd_err *err) {
    vd_hash program, leaf;
    vd_proof proof;
    for (size_t i = 0; i + 1 < all->count; i++)
        if (all->item[i].item == item->item)
            return vd_fail(err, VD_ERR_PEER, "verdict: item %llu stands there twice",
                           (unsigned long long)item->item);
    if (!vd_take_path(path, &proof))
        return broken(err);
    if (!vd_hash_tagged("verde/program/1", bytes->data, bytes->size, &program) ||
        !vd_leaf_hash(program.b, sizeof program.b, &leaf))
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return vd_proof_verify(&proof, item->item, all->collection.count, &leaf,
                           &all->collection.programs, err);
}

static vd_status read_item(vd_verdict_items *all, const json_t *from, vd_err *err) {
    static const char *const keys[] = {"item", "path", "program", NULL};
    const json_t *which = json_object_get(from, "item");
    const json_int_t number = json_integer_value(which);
    const char *text = json_string_value(json_object_get(from, "program"));
    vd_buf bytes = {0};
    if (!vd_json_has_only(from, keys) || !json_is_integer(which) || number < 0 || !text ||
        (uint64_t)number >= all->collection.count)
        return broken(err);
    vd_verdict_item *item = &all->item[all->count++];
    item->item = (uint64_t)number;
    vd_status status = vd_unbase64(text, strlen(text), &bytes, err);
    if (status == VD_OK)
        status = check_item(all, item, &bytes, json_object_get(from, "path"), err);
    if (status == VD_OK)
        status = vd_program_decode(bytes.data, bytes.size, &item->program, err);
    vd_buf_free(&bytes);
    return status;
}

/* Decodes an item's program, for the caller to free, and marks the item as used. */
static vd_status load_item(void *user, uint64_t item, vd_program *out, vd_err *err) {
    vd_verdict_items *all = user;
    vd_buf bytes = {0};
    for (size_t i = 0; i < all->count; i++) {
        if (all->item[i].item != item)
            continue;
        all->item[i].used = true;
        vd_program_encode(&all->item[i].program, &bytes);
        vd_status status = vd_buf_ok(&bytes) ? vd_program_decode(bytes.data, bytes.size, out, err)
                                             : vd_fail(err, VD_ERR_LOCAL, "out of memory");
        vd_buf_free(&bytes);
        return status;
    }
    return vd_fail(err, VD_ERR_PEER, "verdict: it lacks the program of item %llu",
                   (unsigned long long)item);
}

vd_status vd_verdict_items_read(const json_t *from, vd_verdict_items *out, vd_err *err) {
    static const char *const keys[] = {"count", "programs", "items", NULL};
    const json_t *items = json_object_get(from, "items");
    const json_t *many = json_object_get(from, "count");
    const json_int_t count = json_integer_value(many);
    *out = (vd_verdict_items){.collection = {.load = load_item, .user = out}};
    if (json_is_integer(many) && count > VD_COLLECTION_ITEMS_MAX)
        return vd_fail_limit(err, "verdict", (uint64_t)count, "items", VD_COLLECTION_ITEMS_MAX);
    if (!vd_json_has_only(from, keys) || !json_is_integer(many) || count < 1 ||
        !vd_json_get_hash(from, "programs", &out->collection.programs) || !json_is_array(items) ||
        json_array_size(items) > VD_GAMES_MAX)
        return broken(err);
    out->collection.count = (uint64_t)count;
    out->item = calloc(json_array_size(items) + 1, sizeof *out->item);
    if (!out->item)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_status status = VD_OK;
    for (size_t i = 0; status == VD_OK && i < json_array_size(items); i++)
        status = read_item(out, json_array_get(items, i), err);
    return status;
}

vd_status vd_verdict_items_all_used(const vd_verdict_items *items, vd_err *err) {
    for (size_t i = 0; i < items->count; i++)
        if (!items->item[i].used)
            return vd_fail(err, VD_ERR_PEER, "verdict: nothing in it is about item %llu",
                           (unsigned long long)items->item[i].item);
    return VD_OK;
}

void vd_verdict_items_free(vd_verdict_items *items) {
    for (size_t i = 0; i < items->count; i++)
        vd_program_free(&items->item[i].program);
    free(items->item);
    *items = (vd_verdict_items){0};
}
