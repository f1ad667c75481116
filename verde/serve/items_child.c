/* Runs a job of many programs in a child of the daemon: what `verde run` makes of a job with
 * prompts, from the bytes that a client has sent. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/commit/json.h"
#include "verde/delivery/item_results.h"
#include "verde/exec/estimate.h"
#include "verde/provide/daemon.h"
#include "verde/run/run_items.h"
#include "verde/serve/child.h"

typedef struct {
    vd_run_child *child;
    vd_map file; /* of the pack */
    vd_pack pack;
    vd_map *shared; /* of each data tensor that all share */
    uint32_t shared_count;
    void *own[VD_PACK_OWN_MAX]; /* of the item that is loaded */
    vd_items items;
    uint64_t memory; /* of the item that takes most */
    int64_t steps;   /* of all */
    vd_loaded loaded;
    double start;
} items_child;

static void pack_path(const vd_run_child *c, char path[1100]) {
    snprintf(path, 1100, "%.900s/" VD_JOB_PACK, c->dir);
}

bool vd_child_has_items(const vd_run_child *c) {
    char path[1100];
    pack_path(c, path);
    return access(path, F_OK) == 0;
}

/* ---- what all share ---- */

static vd_status map_shared(items_child *x, const json_t *list, vd_err *err) {
    const uint32_t count = x->pack.first.data_count - x->pack.own;
    x->shared = calloc((size_t)count + 1, sizeof *x->shared);
    if (!x->shared || json_array_size(list) != count)
        return vd_fail(err, VD_ERR_LOCAL, "the list of the job's data is not as long as it was");
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < count; i++) {
        const vd_data *want = &x->pack.first.data[x->pack.own + i];
        const char *path = json_string_value(json_object_get(json_array_get(list, i), "file"));
        const ro_shape *shape = &want->tensor.shape;
        vd_hash root, commitment;
        status = vd_map_file(path ? path : "", &x->shared[i], err);
        if (status != VD_OK)
            break;
        x->shared_count++;
        if (x->shared[i].size != vd_shape_bytes(shape))
            return vd_fail(err, VD_ERR_PEER, "data `%s` has %llu bytes", want->tensor.name,
                           (unsigned long long)x->shared[i].size);
        vd_from_little(x->shared[i].data, vd_shape_bytes(shape), ro_dtype_size(shape->dtype));
        status = vd_tensor_hash(x->loaded.ro, shape, x->shared[i].data, &root, &commitment, err);
        if (status == VD_OK && memcmp(commitment.b, want->root, VD_HASH_SIZE) != 0)
            status = vd_fail(err, VD_ERR_PEER, "data `%s` is not that of the programs",
                             want->tensor.name);
        if (status == VD_OK)
            status = vd_check_range(want, x->shared[i].data, err);
    }
    return status;
}

static vd_status load_shared(items_child *x, vd_err *err) {
    char path[1100];
    json_t *record = NULL;
    snprintf(path, sizeof path, "%.900s/" VD_JOB_DATA, x->child->dir);
    vd_status status = vd_load_places(path, &record, err);
    if (status == VD_OK)
        status = map_shared(x, json_object_get(record, "data"), err);
    json_decref(record);
    return status;
}

/* ---- items ---- */

static vd_status place_item(items_child *x, uint32_t item, vd_err *err) {
    vd_loaded *l = &x->loaded;
    const uint32_t count = l->program.data_count;
    l->placed.place = calloc((size_t)count + 1, sizeof *l->placed.place);
    l->placed.tensor = calloc((size_t)count + 1, sizeof *l->placed.tensor);
    if (!l->placed.place || !l->placed.tensor)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < x->pack.own; i++) {
        free(x->own[i]);
        l->placed.tensor[i] = x->own[i] = vd_pack_own(&x->pack, item, &l->program, i);
        if (!x->own[i])
            return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    }
    for (uint32_t i = 0; i < x->shared_count; i++) {
        l->placed.place[x->pack.own + i].path = x->shared[i].path;
        l->placed.tensor[x->pack.own + i] = x->shared[i].data;
    }
    l->exec.data = l->placed.tensor;
    return VD_OK;
}

static vd_status load_item(void *user, uint32_t item, vd_err *err) {
    items_child *x = user;
    const vd_status status = vd_pack_program(&x->pack, item, &x->loaded.program, NULL, err);
    return status == VD_OK ? place_item(x, item, err) : status;
}

static vd_status list_items(items_child *x, vd_err *err) {
    vd_status status = vd_items_create(x->pack.count, &x->items, err);
    for (uint32_t i = 0; status == VD_OK && i < x->pack.count; i++) {
        vd_program program = {0};
        uint64_t memory = 0;
        x->items.key[i] = x->pack.item[i].key;
        status = vd_pack_program(&x->pack, i, &program, &x->items.program[i], err);
        if (status == VD_OK)
            status = vd_estimate_memory(&program, &memory, err);
        x->memory = memory > x->memory ? memory : x->memory;
        x->steps += program.steps;
        vd_program_free(&program);
    }
    return status;
}

/* ---- running them ---- */

static void see_items(void *user, const vd_items_progress *p) {
    const items_child *x = user;
    const vd_progress progress = {.step = p->found + p->passed,
                                  .steps = x->steps,
                                  .seconds = vd_seconds() - x->start,
                                  .resumed_at = p->found};
    vd_child_tell(x->child, &progress, p->ended, x->items.count);
}

/* As many as fit into the memory that a job may take. */
static uint32_t together(const items_child *x) {
    const uint64_t fit = (uint64_t)x->child->memory / (x->memory ? x->memory : 1);
    return fit < 1 ? 1 : fit < VD_TOGETHER ? (uint32_t)fit : VD_TOGETHER;
}

static vd_status run_items(items_child *x, vd_err *err) {
    const vd_program *first = &x->pack.first;
    vd_items_run run = {.loaded = &x->loaded,
                        .dir = x->child->run,
                        .items = &x->items,
                        .load = load_item,
                        .own_data = x->pack.own,
                        .makes_tokens = vd_program_makes_tokens(first),
                        .together = together(x),
                        .progress = see_items,
                        .user = x};
    x->start = vd_seconds();
    vd_status status = vd_items_fault(&run, x->child->fault, err);
    if (status == VD_OK)
        status = vd_items_begin(x->child->run, &x->items, err);
    if (status == VD_OK)
        status = vd_run_items(&run, err);
    return status == VD_OK && run.idle ? vd_child_tell_idle(x->child, err) : status;
}

static vd_status write_root(const items_child *x, vd_err *err) {
    char path[1100], text[2 * VD_HASH_SIZE + 2];
    vd_hash root;
    snprintf(path, sizeof path, "%.900s/" VD_JOB_RESULT, x->child->dir);
    vd_status status = vd_items_job_root(&x->items, &root, err);
    vd_hex(root.b, VD_HASH_SIZE, text);
    strcat(text, "\n");
    return status == VD_OK ? vd_write_file(path, text, strlen(text), 0644, err) : status;
}

static vd_status run_all(items_child *x, vd_err *err) {
    char path[1100], results[1100];
    pack_path(x->child, path);
    snprintf(results, sizeof results, "%.900s/" VD_JOB_ITEMS, x->child->dir);
    vd_status status = vd_map_file(path, &x->file, err);
    if (status == VD_OK)
        status = vd_pack_open(x->file.data, x->file.size, &x->pack, err);
    if (status == VD_OK)
        status = vd_load_backend(&x->loaded, &x->child->common, err);
    if (status == VD_OK)
        status = load_shared(x, err);
    if (status == VD_OK)
        status = list_items(x, err);
    if (status == VD_OK)
        status = run_items(x, err);
    if (status == VD_OK)
        status = vd_item_results_write(x->loaded.ro, x->child->run, &x->items, results, err);
    return status == VD_OK ? write_root(x, err) : status;
}

vd_status vd_child_run_items(vd_run_child *child, vd_err *err) {
    items_child x = {.child = child, .loaded = {.packed = true}};
    x.loaded.exec.program = &x.loaded.program;
    const vd_status status = run_all(&x, err);
    vd_loaded_free(&x.loaded);
    for (uint32_t i = 0; i < VD_PACK_OWN_MAX; i++)
        free(x.own[i]);
    for (uint32_t i = 0; i < x.shared_count; i++)
        vd_map_free(&x.shared[i]);
    free(x.shared);
    vd_items_free(&x.items);
    vd_pack_free(&x.pack);
    vd_map_free(&x.file);
    return status;
}
