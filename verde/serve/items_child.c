/* Runs a job of many programs in a child of the daemon: what `verde run` makes of a job with
 * prompts, from the bytes that a client has sent. */
#include <string.h>

#include "verde/delivery/item_results.h"
#include "verde/exec/estimate.h"
#include "verde/provide/daemon.h"
#include "verde/run/run_items.h"
#include "verde/serve/child.h"

typedef struct {
    vd_run_child *child;
    vd_items items;
    uint64_t memory; /* of the item that takes most */
    int64_t steps;   /* of all */
    vd_loaded loaded;
    double start;
} items_child;

bool vd_child_has_items(const vd_run_child *c) {
    return vd_has_pack(c->dir);
}

/* ---- items ---- */

static vd_status load_item(void *user, uint32_t item, vd_err *err) {
    items_child *x = user;
    return vd_load_packed(&x->loaded, item, err);
}

static vd_status list_items(items_child *x, vd_err *err) {
    const vd_pack *pack = &x->loaded.given.pack;
    vd_status status = vd_items_create(pack->count, &x->items, err);
    for (uint32_t i = 0; status == VD_OK && i < pack->count; i++) {
        vd_program program = {0};
        uint64_t memory = 0;
        x->items.key[i] = pack->item[i].key;
        status = vd_pack_program(pack, i, &program, &x->items.program[i], err);
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

/* Returns how many fit together into the memory that a job may take. */
static uint32_t together(const items_child *x) {
    const uint64_t fit = (uint64_t)x->child->memory / (x->memory ? x->memory : 1);
    return fit < 1 ? 1 : fit < VD_TOGETHER ? (uint32_t)fit : VD_TOGETHER;
}

static vd_status run_items(items_child *x, vd_err *err) {
    const vd_pack *pack = &x->loaded.given.pack;
    vd_items_run run = {.loaded = &x->loaded,
                        .dir = x->child->run,
                        .items = &x->items,
                        .load = load_item,
                        .own_data = pack->own,
                        .makes_tokens = vd_program_makes_tokens(&pack->first),
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
    char results[1100];
    snprintf(results, sizeof results, "%.900s/" VD_JOB_ITEMS, x->child->dir);
    vd_status status = vd_load_sent_pack(x->child->dir, &x->loaded, err);
    if (status == VD_OK)
        status = vd_load_backend(&x->loaded, &x->child->common, err);
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
    const vd_status status = run_all(&x, err);
    vd_loaded_free(&x.loaded);
    vd_items_free(&x.items);
    return status;
}
