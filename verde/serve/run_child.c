/* Runs a client's job, in a child of the daemon. */
#include "verde/serve/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delivery/item_results.h"
#include "verde/delivery/offer.h"
#include "verde/exec/estimate.h"
#include "verde/provide/child.h"
#include "verde/provide/daemon.h"
#include "verde/run/run_items.h"
#include "verde/run/run_one.h"

enum {
    RUN_ARGUMENTS = 8,
    RUN_NICE = 10, /* leaves children that answer ten times its share of a busy core */
};

/* The arguments of a child that runs a job. */
typedef struct {
    long parent;
    int64_t memory, keep, file_bytes;
    const char *dir, *fault; /* `fault` is NULL for none */
    vd_common common;
    char run[1100];
    double told;  /* vd_seconds() of the last progress */
    bool no_loss; /* the program reports none */
} vd_run_child;

bool vd_child_has_gpu(const vd_common *common) {
    return common->backend && strncmp(common->backend, "cuda", 4) == 0;
}

static const char *or_null(const char *text) {
    return strcmp(text, "-") == 0 ? NULL : text;
}

static void take_arguments(char **argv, vd_run_child *c) {
    c->memory = strtoll(argv[0], NULL, 10);
    c->common.threads = atoi(argv[1]);
    c->common.backend = or_null(argv[2]);
    c->fault = or_null(argv[3]);
    c->parent = strtol(argv[4], NULL, 10);
    c->dir = argv[5];
    c->keep = strtoll(argv[6], NULL, 10);
    c->file_bytes = strtoll(argv[7], NULL, 10);
    snprintf(c->run, sizeof c->run, "%.900s/" VD_JOB_RUN, c->dir);
}

/* Writes the progress. It may be lost, so it is not synced to disk. */
static void write_progress(const vd_run_child *c, const vd_progress *p, uint32_t prompts_done,
                           uint32_t prompts) {
    char path[1100], temp[1100], loss[32] = "-";
    if (!c->no_loss)
        snprintf(loss, sizeof loss, "%.9g", (double)p->loss);
    snprintf(path, sizeof path, "%.900s/" VD_JOB_PROGRESS, c->dir);
    snprintf(temp, sizeof temp, "%.900s/" VD_JOB_PROGRESS ".new", c->dir);
    FILE *file = fopen(temp, "we");
    if (!file)
        return;
    const bool whole = fprintf(file, "%lld %s %.6f %lld %u %u\n", (long long)p->step, loss,
                               p->seconds, (long long)p->resumed_at, prompts_done, prompts) > 0;
    if (fclose(file) == 0 && whole)
        (void)!rename(temp, path);
}

static void tell(vd_run_child *c, const vd_progress *p, uint32_t prompts_done, uint32_t prompts) {
    enum { TELL_MS = 250 };
    const double now = vd_seconds();
    const bool last = prompts ? prompts_done == prompts : p->step == p->steps;
    if (!last && (now - c->told) * 1000 < TELL_MS)
        return;
    write_progress(c, p, prompts_done, prompts);
    c->told = now;
}

static bool see_step(void *user, const vd_progress *p) {
    tell(user, p, 0, 0);
    return true;
}

static vd_status load(const vd_run_child *c, vd_loaded *loaded, vd_err *err) {
    vd_status status = vd_store_program(c->dir, &loaded->program, err);
    loaded->exec.program = &loaded->program;
    if (status == VD_OK && c->fault)
        status = vd_fault_parse(c->fault, &loaded->program, &loaded->exec.fault, err);
    if (status == VD_OK)
        status = vd_load_data(c->dir, NULL, loaded, err);
    return status == VD_OK ? vd_load_backend(loaded, &c->common, err) : status;
}

/* Copies data.json, so that the run's folder is complete by itself, as every run's is. */
static vd_status copy_places(void *user, vd_err *err) {
    const vd_run_child *c = user;
    char path[1100];
    vd_buf text = {0};
    snprintf(path, sizeof path, "%.900s/" VD_JOB_DATA, c->dir);
    vd_status status = vd_read_file(path, VD_PLACES_BYTES_MAX, &text, err);
    snprintf(path, sizeof path, "%.1000s/data.json", c->run);
    if (status == VD_OK)
        status = vd_write_file(path, text.data, text.size, 0644, err);
    vd_buf_free(&text);
    return status;
}

/* `state`: the final state; NULL for a job of many programs. */
static vd_status write_result(const vd_run_child *c, const vd_hash *root, const vd_hash *state,
                              vd_err *err) {
    char path[1100], hex[2 * VD_HASH_SIZE + 1];
    vd_buf text = {0};
    snprintf(path, sizeof path, "%.900s/" VD_JOB_RESULT, c->dir);
    vd_hex(root->b, VD_HASH_SIZE, hex);
    vd_printf(&text, "%s\n", hex);
    if (state)
        vd_hex(state->b, VD_HASH_SIZE, hex);
    if (state)
        vd_printf(&text, "%s\n", hex);
    vd_status status = vd_buf_ok(&text) ? vd_write_file(path, text.data, text.size, 0644, err)
                                        : vd_fail(err, VD_ERR_LOCAL, "out of memory");
    vd_buf_free(&text);
    return status;
}

/* Hashes the state here, because the daemon's threads have other requests to answer. */
static vd_status offer_state(const vd_run_child *c, const vd_loaded *loaded, vd_err *err) {
    char path[1100];
    vd_run_log log = {.count = 0};
    vd_offer *offer = NULL;
    const vd_check run = {.dir = c->run, .exec = &loaded->exec, .log = &log};
    snprintf(path, sizeof path, "%.900s/" VD_JOB_OFFER, c->dir);
    vd_status status = vd_store_load_log(c->run, &log, err);
    if (status == VD_OK)
        status = vd_offer_create(&run, &offer, err);
    if (status == VD_OK)
        status = vd_offer_save(offer, path, err);
    vd_offer_destroy(offer);
    vd_run_log_free(&log);
    return status;
}

static vd_status tell_idle(const vd_run_child *c, vd_err *err) {
    char path[1100];
    snprintf(path, sizeof path, "%.900s/" VD_JOB_IDLE, c->dir);
    return vd_write_file(path, "\n", 1, 0644, err);
}

static vd_status run_program(vd_run_child *c, vd_loaded *loaded, vd_err *err) {
    vd_one_run one = {.loaded = loaded, .save = copy_places, .user = c};
    one.options = (vd_run_options){.exec = &loaded->exec,
                                   .dir = c->run,
                                   .fault = c->fault,
                                   .progress = see_step,
                                   .user = c,
                                   .keep = (int32_t)c->keep};
    vd_status status = load(c, loaded, err);
    c->no_loss = !vd_has_loss(&loaded->program);
    if (status == VD_OK)
        status = vd_run_one(&one, err);
    if (status == VD_OK && one.idle)
        status = tell_idle(c, err);
    if (status == VD_OK)
        status = offer_state(c, loaded, err);
    return status == VD_OK ? write_result(c, &one.result.run_root, &one.result.final_state, err)
                           : status;
}

static vd_status run_one(vd_run_child *c, vd_err *err) {
    vd_loaded loaded = {.data = {0}};
    const vd_status status = run_program(c, &loaded, err);
    vd_loaded_free(&loaded);
    return status;
}

/* ---- a job of many programs ---- */

typedef struct {
    vd_run_child *child;
    vd_items items;
    uint64_t memory; /* of the item that needs most */
    int64_t steps;   /* of all items */
    vd_loaded loaded;
    double start;
} items_child;

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
    tell(x->child, &progress, p->ended, x->items.count);
}

/* Returns how many items fit into the job's memory at the same time. */
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
    return status == VD_OK && run.idle ? tell_idle(x->child, err) : status;
}

static vd_status run_pack(items_child *x, vd_err *err) {
    char results[1100];
    vd_hash root;
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
    if (status == VD_OK)
        status = vd_items_job_root(&x->items, &root, err);
    return status == VD_OK ? write_result(x->child, &root, NULL, err) : status;
}

static vd_status run_many(vd_run_child *child, vd_err *err) {
    items_child x = {.child = child, .loaded = {.packed = true}};
    const vd_status status = run_pack(&x, err);
    vd_loaded_free(&x.loaded);
    vd_items_free(&x.items);
    return status;
}

/* ---- the child ---- */

static vd_status confine(const vd_run_child *c, vd_err *err) {
    char told[1100];
    snprintf(told, sizeof told, "%.900s/" VD_JOB_TOLD, c->dir);
    const char *const reads[] = {c->dir, NULL}, *const writes[] = {c->run, told, NULL};
    const vd_child_limits limits = {.parent = c->parent,
                                    .memory = c->memory + c->memory / 4 + VD_CHILD_SPARE,
                                    .file_bytes = c->file_bytes,
                                    .places = {reads, writes, vd_child_has_gpu(&c->common)}};
    return vd_child_confine(&limits, err);
}

/* Lowers the priority below that of children that answer: a referee's patience is limited, a job
 * may take longer. Called before threads start, as they inherit it. */
static void lower_priority(void) {
    errno = 0;
    if (nice(RUN_NICE) == -1 && errno)
        vd_say("verde provide: this job runs at the priority of answers: %s", strerror(errno));
}

vd_exit vd_provide_run_child(int argc, char **argv) {
    vd_run_child c = {.told = 0};
    vd_err err = {0};
    if (argc != RUN_ARGUMENTS)
        return VD_EXIT_USAGE;
    take_arguments(argv, &c);
    lower_priority();
    vd_status status = confine(&c, &err);
    if (status == VD_OK)
        status = vd_has_pack(c.dir) ? run_many(&c, &err) : run_one(&c, &err);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}
