/* Compares two runs, or two jobs of prompts. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/audit/diff.h"
#include "verde/audit/stated_backend.h"
#include "verde/exec/journal.h"

/* ---- a run ---- */

/* Opens the backend that the run states for its last checkpoint. A run with a backend of
 * exec/backend.h may only be repeatable on the same instruction set. */
static vd_status open_backend(const vd_diff_options *o, int side, vd_diff_run *run, vd_err *err) {
    const vd_run_log *log = &run->log;
    const int32_t machine = log->count ? log->stated[log->count - 1].machine : -1;
    vd_common common = o->common;
    common.backend = o->backend[side];
    if (!common.backend && log->backend)
        common.backend = log->backend->ran_on(log);
    return common.backend ? vd_load_backend(&run->loaded, &common, err)
                          : vd_load_stated(&run->loaded, &common,
                                           machine < 0 ? NULL : &log->machine[machine], err);
}

static vd_status open_run(const vd_diff_options *o, int side, vd_diff_run *run, vd_err *err) {
    run->dir = o->path[side];
    run->journaled = vd_journal_is_in(run->dir);
    vd_status status = vd_load_run(run->dir, &run->loaded, &run->log, err);
    if (status == VD_OK && !o->no_run)
        status = vd_load_data(run->dir, o->data, &run->loaded, err);
    if (status == VD_OK)
        status = open_backend(o, side, run, err);
    if (status != VD_OK)
        return status;
    status = run->log.backend
                 ? vd_replay_create(run->dir, &run->loaded.exec, &run->replay, err)
                 : vd_replay_create_so_far(run->dir, &run->loaded.exec, &run->replay, err);
    if (status == VD_OK && o->no_run)
        vd_replay_only_stored(run->replay);
    return status;
}

static void close_run(vd_diff_run *run) {
    if (run->remote)
        return; /* everything is borrowed from the other run */
    vd_replay_destroy(run->replay);
    vd_run_log_free(&run->log);
    vd_loaded_free(&run->loaded);
}

static bool holds(void *user, uint32_t checkpoint) {
    const vd_diff_run *run = user;
    char path[1024];
    if (run->remote)
        return true;                  /* or executes it again */
    if (checkpoint >= run->log.count) /* added since the log was read */
        return false;
    vd_store_state_path(path, run->dir, &run->log.state[checkpoint]);
    return run->journaled || access(path, R_OK) == 0;
}

/* Checks a checkpoint without the deliberate fault, which the check would forgive. */
static vd_status emitted_fits(void *user, uint32_t checkpoint, bool *fits, vd_err *err) {
    const vd_diff_run *run = user;
    vd_exec honest = run->loaded.exec;
    honest.fault = (vd_fault){0};
    const vd_check check = {.dir = run->dir, .exec = &honest, .log = &run->log};
    const vd_status status = run->log.backend->check(&check, checkpoint, 1, err);
    *fits = status == VD_OK;
    return status == VD_ERR_PEER ? VD_OK : status;
}

static void make_side(vd_diff_run *run, const vd_diff_remote *remote, vd_diverge_side *out) {
    *out = (vd_diverge_side){
        .program = &run->loaded.program,
        .program_hash = run->log.program,
        .source = run->remote ? vd_diff_remote_source(remote) : vd_replay_source(run->replay),
        .checkpoints = run->remote ? run->log.count : vd_replay_checkpoints(run->replay),
        .holds = holds,
        .backend = run->log.backend,
        .emitted_fits = emitted_fits,
        .user = run};
}

/* ---- two runs ---- */

static uint64_t executed(const vd_diff_run *run) {
    return run->remote ? 0 : vd_replay_executed(run->replay);
}

static vd_status compare(const vd_diff_options *o, vd_diff_run run[2], const vd_diff_remote *remote,
                         const vd_program_diff *programs, vd_divergence *out, vd_err *err) {
    const bool same = vd_hash_equal(&run[0].log.program, &run[1].log.program);
    vd_diverge_side side[2];
    make_side(&run[0], remote, &side[0]);
    make_side(&run[1], remote, &side[1]);
    vd_status status = vd_diverge(side, same ? NULL : &programs->pairs, !o->no_run, out, err);
    out->executed = executed(&run[0]) + executed(&run[1]);
    return status;
}

static void tell(const vd_diff_options *o, const vd_diff_run run[2], const vd_divergence *found,
                 const vd_program_diff *programs) {
    const vd_program_diff *other =
        vd_hash_equal(&programs->hash[0], &programs->hash[1]) ? NULL : programs;
    if (o->common.json)
        vd_result_json(vd_divergence_json(run, found, other));
    else
        vd_divergence_print(run, found, other);
}

/* Opens our own run first: it decides what a provider is asked. */
static vd_status open_runs(const vd_diff_options *o, vd_diff_run run[2], vd_diff_remote **remote,
                           vd_err *err) {
    const int first = vd_is_remote(o->path[0]) ? 1 : 0;
    vd_status status = open_run(o, first, &run[first], err);
    if (status != VD_OK || !vd_is_remote(o->path[!first]))
        return status == VD_OK ? open_run(o, !first, &run[!first], err) : status;
    const vd_source own = vd_replay_source(run[first].replay);
    return vd_diff_remote_open(o, o->path[!first], &run[first], &own, &run[!first], remote, err);
}

vd_status vd_diff_runs(const vd_diff_options *o, bool *differs, vd_err *err) {
    vd_diff_run run[2] = {0};
    vd_diff_remote *remote = NULL;
    vd_program_diff programs = {0};
    vd_divergence found;
    vd_status status = open_runs(o, run, &remote, err);
    if (status == VD_OK)
        status =
            vd_program_diff_make(&run[0].loaded.program, &run[1].loaded.program, &programs, err);
    if (status == VD_OK)
        status = compare(o, run, remote, &programs, &found, err);
    if (status == VD_OK) {
        *differs =
            found.kind != VD_DIVERGE_NOT || !vd_hash_equal(&programs.hash[0], &programs.hash[1]);
        tell(o, run, &found, &programs);
    }
    /* a file of a run is damaged, and its contents are lost */
    if (status == VD_ERR_IO && !remote)
        status = vd_fail(err, VD_ERR_PEER, "%s", err->text);
    vd_program_diff_free(&programs);
    vd_diff_remote_close(remote);
    close_run(&run[0]);
    close_run(&run[1]);
    return status;
}

/* ---- jobs of prompts ---- */

static bool find_key(const vd_items *items, int64_t key, uint32_t *index) {
    for (*index = 0; *index < items->count; (*index)++)
        if (items->key[*index] == key)
            return true;
    return false;
}

/* Returns the first prompt of `a` that differs or is missing in `b`, or a->count. *differ: how
 * many. */
static uint32_t first_item(const vd_items *a, const vd_items *b, uint32_t *differ) {
    uint32_t first = a->count, k;
    *differ = 0;
    for (uint32_t i = a->count; i-- > 0;) {
        const bool there = find_key(b, a->key[i], &k);
        if (there && a->done[i] && b->done[k] && vd_hash_equal(&a->program[i], &b->program[k]) &&
            vd_hash_equal(&a->run_root[i], &b->run_root[k]))
            continue;
        ++*differ;
        first = i;
    }
    return first;
}

static vd_status diff_item(const vd_diff_options *o, const vd_items item[2], int64_t key,
                           bool *differs, vd_err *err) {
    char path[2][1024];
    uint32_t index;
    vd_diff_options one = *o;
    for (int side = 0; side < 2; side++) {
        if (!find_key(&item[side], key, &index) || !item[side].done[index])
            return vd_fail(err, VD_ERR_USAGE, "%s: has no finished run of prompt %lld",
                           o->path[side], (long long)key);
        vd_items_path(path[side], o->path[side], key);
        one.path[side] = path[side];
    }
    return vd_diff_runs(&one, differs, err);
}

static void tell_items(const vd_diff_options *o, const vd_items item[2], uint32_t differ,
                       int64_t first) {
    vd_buf out = {0};
    if (o->common.json && differ == 0)
        vd_result_json(json_pack("{sb ss sI}", "equal", 1, "compared", "prompts", "prompts",
                                 (json_int_t)item[0].count));
    if (o->common.json)
        return;
    vd_printf(&out, "prompts      %u and %u, of which %u differ%s\n", item[0].count, item[1].count,
              differ, differ == 1 ? "s" : "");
    if (differ)
        vd_printf(&out, "prompt       %lld\n", (long long)first);
    else
        vd_printf(&out, "equal        yes, to the bit\n");
    vd_result_text(&out);
}

vd_status vd_diff_items(const vd_diff_options *o, bool *differs, vd_err *err) {
    vd_items item[2] = {0};
    uint32_t differ = 0, first = 0;
    vd_status status = vd_items_load(o->path[0], &item[0], err);
    if (status == VD_OK)
        status = vd_items_load(o->path[1], &item[1], err);
    int from = 0;
    if (status == VD_OK) {
        first = first_item(&item[0], &item[1], &differ);
        if (differ == 0) { /* `b` may have a prompt that `a` lacks */
            from = 1;
            first = first_item(&item[1], &item[0], &differ);
        }
        *differs = differ > 0;
        tell_items(o, item, differ, differ ? item[from].key[first] : 0);
    }
    if (status == VD_OK && differ > 0) {
        status = diff_item(o, item, item[from].key[first], differs, err);
        *differs = true;
    }
    vd_items_free(&item[0]);
    vd_items_free(&item[1]);
    return status;
}
