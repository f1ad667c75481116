/* Opens the runs of a job, as referees' questions need them. */
#include "verde/serve/served.h"

#include <stdlib.h>
#include <string.h>

#include "verde/exec/estimate.h"
#include "verde/run/checks.h"
#include "verde/serve/checking.h"
#include "verde/serve/patience.h"

/* ---- a run ---- */

/* Loads a run. The data of one that is not finished is not loaded: the replay rejects it anyway. */
static vd_status load_run(vd_served_run *r, vd_err *err) {
    vd_status status = vd_load_run(r->dir, &r->loaded, &r->log, err);
    if (status == VD_OK)
        status = vd_refuse_experimental(&r->loaded.program, err);
    if (status == VD_OK && r->log.count == vd_run_leaves(&r->loaded.program))
        status = vd_load_data(r->dir, r->all->data, &r->loaded, err);
    return status;
}

static vd_status open_replay(vd_served_run *r, vd_err *err) {
    const vd_status status = vd_replay_create(r->dir, &r->loaded.exec, &r->replay, err);
    r->source = status == VD_OK ? vd_replay_source(r->replay) : (vd_source){0};
    return status;
}

static void close_run(vd_served_run *r) {
    vd_replay_destroy(r->replay);
    vd_run_log_free(&r->log);
    vd_exec_drop(&r->loaded.exec);
    if (r->all->many)
        r->loaded.ro = r->loaded.exec.ro = NULL; /* shared by all runs */
    vd_loaded_free(&r->loaded);
    r->loaded = (vd_loaded){0};
    r->log = (vd_run_log){0};
    r->replay = NULL;
}

/* ---- with many runs, only one is open at a time ---- */

/* Turns a fault of our own files into VD_ERR_LOCAL: the referee is not to blame. */
static vd_status own_trouble(vd_status status, vd_err *err) {
    return status == VD_ERR_PEER ? vd_fail(err, VD_ERR_LOCAL, "%s", err ? err->text : "") : status;
}

static vd_status open_item(vd_served_run *r, vd_err *err) {
    vd_status status = load_run(r, err);
    r->loaded.ro = r->loaded.exec.ro = r->all->ro;
    if (status == VD_OK)
        status = vd_exec_place(&r->loaded.exec, err);
    if (status == VD_OK)
        status = open_replay(r, err);
    if (status != VD_OK)
        close_run(r);
    return own_trouble(status, err);
}

static void set_open(vd_served *all, vd_served_run *r) {
    pthread_mutex_lock(&all->lock);
    all->open = r;
    pthread_mutex_unlock(&all->lock);
}

/* Opens a run and closes the one before. Only called by the executing thread. */
static vd_status enter(vd_served_run *r, vd_err *err) {
    vd_served *all = r->all;
    vd_served_run *before = all->open;
    if (before == r)
        return VD_OK;
    set_open(all, NULL);
    if (before)
        close_run(before);
    vd_status status = open_item(r, err);
    if (status == VD_OK)
        set_open(all, r);
    return status;
}

/* ---- a source that opens its run when asked ---- */

static vd_status item_states(void *user, int64_t from, int64_t to, vd_hash *state, vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.states(r->source.user, from, to, state, err) : status;
}

static vd_status item_trace(void *user, int64_t step, const vd_records **out, vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.trace(r->source.user, step, out, err) : status;
}

static vd_status item_leaves(void *user, int64_t step, vd_hash *tensor, vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.leaves(r->source.user, step, tensor, err) : status;
}

static vd_status item_tensor(void *user, int64_t step, uint32_t value, const void **data,
                             vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.tensor(r->source.user, step, value, data, err) : status;
}

static vd_status item_tree(void *user, int64_t step, uint32_t value, const void *data,
                           const vd_tree **out, vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.tree(r->source.user, step, value, data, out, err) : status;
}

static vd_status item_fold(void *user, int64_t step, uint32_t node, int64_t element,
                           vd_records *out, vd_err *err) {
    vd_served_run *r = user;
    vd_status status = enter(r, err);
    return status == VD_OK ? r->source.fold(r->source.user, step, node, element, out, err) : status;
}

static void item_forget(void *user) {
    vd_served_run *r = user;
    if (r->all->open == r)
        r->source.forget(r->source.user);
}

/* Reads an item's checkpoints from disk, since another thread may be executing the open run. */
static vd_status item_run(void *user, vd_hash *state, vd_err *err) {
    const vd_served_run *r = user;
    vd_loaded loaded = {0};
    vd_run_log log = {0};
    vd_status status = vd_load_run(r->dir, &loaded, &log, err);
    if (status == VD_OK && log.count != vd_run_leaves(&loaded.program))
        status = vd_fail(err, VD_ERR_LOCAL, "%s: the run is not finished any more", r->dir);
    for (uint32_t i = 0; status == VD_OK && i < log.count; i++) {
        state[i] = log.state[i];
        vd_fault_state(&loaded.exec, log.step[i], &state[i]);
    }
    vd_run_log_free(&log);
    vd_loaded_free(&loaded);
    return own_trouble(status, err);
}

static void item_progress(void *user, int64_t *done, int64_t *of) {
    vd_served_run *r = user;
    *done = *of = 0;
    pthread_mutex_lock(&r->all->lock);
    if (r->all->open == r)
        r->source.progress(r->source.user, done, of);
    pthread_mutex_unlock(&r->all->lock);
}

static void item_stop(void *user) {
    vd_served_run *r = user;
    pthread_mutex_lock(&r->all->lock);
    if (r->all->open == r)
        r->source.stop(r->source.user);
    pthread_mutex_unlock(&r->all->lock);
}

static vd_status item_source(void *user, uint64_t item, vd_source *out, vd_err *err) {
    vd_served *all = user;
    vd_served_run *r = &all->run[item];
    (void)err;
    *out = (vd_source){.user = r,
                       .run = item_run,
                       .states = item_states,
                       .trace = item_trace,
                       .leaves = item_leaves,
                       .tensor = item_tensor,
                       .tree = item_tree,
                       .fold = item_fold,
                       .run_root = all->items.run_root[item],
                       .forget = item_forget,
                       .progress = item_progress,
                       .stop = item_stop,
                       .dishonest = r->dishonest};
    return VD_OK;
}

/* ---- all of them ---- */

static vd_status load_program(void *user, uint64_t item, vd_program *out, vd_err *err) {
    const vd_served *all = user;
    return own_trouble(vd_store_program(all->run[item].dir, out, err), err);
}

static vd_status make_runs(vd_served *all, vd_err *err) {
    const uint32_t count = all->many ? all->items.count : 1;
    all->run = calloc(count, sizeof *all->run);
    if (!all->run)
        return vd_fail(err, VD_ERR_LOCAL, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        all->run[i] = (vd_served_run){.all = all, .item = i};
        if (all->many)
            vd_items_path(all->run[i].dir, all->dir, all->items.key[i]);
        else
            snprintf(all->run[i].dir, sizeof all->run[i].dir, "%s", all->dir);
    }
    return VD_OK;
}

static uint64_t terms_of(const vd_program *p) {
    const uint64_t init = vd_estimate_terms(p, &p->init), step = vd_estimate_terms(p, &p->step);
    return init > UINT64_MAX - step ? UINT64_MAX : init + step;
}

/* Records of a checked run whether it is dishonest and how much it computes, and counts it. */
static void note_run(void *user, uint32_t item, const vd_program *program, const vd_run_log *log) {
    vd_served *all = user;
    const uint64_t terms = terms_of(program);
    if (terms > all->most_terms) {
        all->most_terms = terms;
        all->longest = item;
    }
    all->run[item].dishonest = log->fault[0] != 0;
    all->dishonest |= log->fault[0] != 0;
    vd_checking_items(all->checking, item + 1, all->items.count);
}

static vd_status name_all(vd_served *all, vd_err *err) {
    vd_status status = vd_items_job_root(&all->items, &all->job_root, err);
    if (status == VD_OK)
        status = vd_collection_root(all->items.program, all->items.count, &all->collection.programs,
                                    err);
    all->collection.count = all->items.count;
    all->collection.program = all->items.program;
    all->collection.load = load_program;
    all->collection.user = all;
    if (status == VD_OK &&
        !vd_collection_commit(all->items.count, &all->collection.programs, &all->hash))
        status = vd_fail(err, VD_ERR_LOCAL, "out of memory");
    return status;
}

static vd_status open_many(vd_served *all, vd_err *err) {
    ro_options options = {
        .size = sizeof options, .threads = all->common->threads, .backend = all->common->backend};
    vd_status status = vd_items_load(all->dir, &all->items, err);
    if (status == VD_OK && ro_ctx_create(&options, &all->ro) != RO_OK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s", ro_ctx_error(NULL));
    if (status == VD_OK)
        status = make_runs(all, err);
    return status == VD_OK ? name_all(all, err) : status;
}

static vd_status open_one(vd_served *all, vd_err *err) {
    vd_status status = make_runs(all, err);
    if (status == VD_OK)
        status = load_run(&all->run[0], err);
    if (status == VD_OK)
        status = vd_load_backend(&all->run[0].loaded, all->common, err);
    all->hash = status == VD_OK ? all->run[0].log.program : (vd_hash){{0}};
    all->dishonest = status == VD_OK && all->run[0].log.fault[0] != 0;
    return status;
}

vd_status vd_served_open(const char *dir, const char *data, const vd_common *common, vd_served *all,
                         vd_err *err) {
    *all = (vd_served){.dir = dir, .data = data, .common = common, .many = vd_items_are_in(dir)};
    pthread_mutex_init(&all->lock, NULL);
    return all->many ? open_many(all, err) : open_one(all, err);
}

vd_status vd_served_replay(vd_served *all, const vd_replay_team *team, vd_err *err) {
    const vd_status status = open_replay(&all->run[0], err);
    if (status == VD_OK && all->run[0].loaded.exec.part)
        vd_replay_share(all->run[0].replay, team);
    return status;
}

vd_status vd_served_prepare_again(vd_served *all, vd_err *err) {
    char dir[1100];
    vd_exec *exec = &all->second.exec;
    *exec = all->run[0].loaded.exec;
    exec->placed = NULL; /* belongs to the first context */
    exec->kept = NULL;
    exec->part = NULL;
    snprintf(dir, sizeof dir, "%.1000s/again", all->dir);
    const vd_status status = vd_load_backend(&all->second, all->common, err);
    return status == VD_OK
               ? vd_again_create(dir, exec, NULL, all->run[0].log.keep, &all->again, err)
               : status;
}

static vd_status check_many(vd_served *all, vd_checking *checking, vd_err *err) {
    const vd_prompt_runs runs = {.dir = all->dir,
                                 .data = all->data,
                                 .common = all->common,
                                 .items = &all->items,
                                 .note = note_run,
                                 .user = all,
                                 .stop = &checking->stop};
    all->checking = checking;
    vd_checking_items(checking, 0, all->items.count);
    return vd_check_prompt_runs(&runs, err);
}

vd_status vd_served_check(vd_served *all, vd_checking *checking, vd_err *err) {
    const vd_served_run *r = &all->run[0];
    const vd_check check = {.dir = r->dir,
                            .exec = &r->loaded.exec,
                            .log = &r->log,
                            .progress = vd_checking_bytes,
                            .user = checking,
                            .stop = &checking->stop};
    return all->many ? check_many(all, checking, err) : vd_check_run(&check, err);
}

void vd_served_close(vd_served *all) {
    if (!all->dir)
        return;
    vd_again_destroy(all->again);
    vd_loaded_free(&all->second);
    if (all->many && all->open)
        close_run(all->open);
    else if (!all->many && all->run)
        close_run(&all->run[0]);
    free(all->run);
    vd_items_free(&all->items);
    ro_ctx_destroy(all->ro);
    pthread_mutex_destroy(&all->lock);
    *all = (vd_served){0};
}

void vd_served_measure(vd_served *all, vd_pace *out, double *game_s) {
    vd_served_run *r = &all->run[all->longest];
    vd_err err = {0};
    *out = (vd_pace){0};
    if (!all->many || enter(r, &err) == VD_OK)
        vd_measure(r->replay, &r->loaded.program, out, game_s);
    else
        vd_say("verde: the pace of this machine was not measured: %s", err.text);
}

void vd_served_provide(vd_served *all, vd_provider *provider) {
    provider->program_hash = all->hash;
    if (!all->many) {
        provider->program = &all->run[0].loaded.program;
        provider->source = all->run[0].source;
        provider->run_again = all->again ? vd_again_source : NULL;
        provider->again = all->again;
        return;
    }
    provider->collection = &all->collection;
    provider->source.run_root = all->job_root;
    provider->item_root = all->items.run_root;
    provider->item_source = item_source;
    provider->items = all;
}
