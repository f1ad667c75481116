/* This file runs all programs of a collection, one after the other or together. */
#include "verde/run/run_items.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/exec/shared_copies.h"
#include "verde/run/faults.h"
#include "verde/run/item_groups.h"
#include "verde/run/run_one.h"

enum { KEEP = VD_KEEP_MIN }; /* states of each prompt that are kept on disk */

typedef struct {
    vd_items_run *r;
    vd_items_progress progress;
    vd_run_result result;
    int64_t made, found, passed, void_choices; /* of the items that have ended */
    bool *alone;      /* of each item: it does not run together with others; owned */
    uint32_t refused; /* number of items that cannot run together; reason of the first */
    char why[256];
    vd_buf *line;   /* line of each item that ended before an earlier one; owned */
    uint32_t lines; /* lines written to the file */
    FILE *results;
    vd_answers answers;
    vd_item_group group;
    vd_shared_copies shared;
    vd_err *err;
} items_run;

/* Checks the fault before anything runs: the program of its item must have it. */
static vd_status check_fault(const vd_items_run *r, vd_err *err) {
    vd_fault fault;
    vd_items_drop(r->loaded);
    vd_status status = r->fault ? r->load(r->user, r->faulty, err) : VD_OK;
    return status == VD_OK && r->fault ? vd_fault_parse(r->fault, &r->loaded->program, &fault, err)
                                       : status;
}

vd_status vd_items_fault(vd_items_run *r, const char *fault, vd_err *err) {
    const char *slash = fault ? strchr(fault, '/') : NULL;
    char key[24];
    r->fault = slash ? slash + 1 : fault;
    r->faulty = 0;
    if (!slash)
        return check_fault(r, err);
    for (; r->faulty < r->items->count; r->faulty++) {
        snprintf(key, sizeof key, "%lld", (long long)r->items->key[r->faulty]);
        if (strlen(key) == (size_t)(slash - fault) && strncmp(key, fault, strlen(key)) == 0)
            return check_fault(r, err);
    }
    return vd_fail(err, VD_ERR_USAGE, "fault \"%.80s\": no %s has this key", fault,
                   vd_prompt_word(r->loaded, 1));
}

static bool has_leaf(const vd_program *p, const char *name) {
    for (uint32_t i = 0; i < p->leaf_count; i++)
        if (strcmp(p->leaf[i].name, name) == 0)
            return true;
    return false;
}

bool vd_program_makes_tokens(const vd_program *p) {
    return has_leaf(p, "token") && has_leaf(p, "stopped");
}

void vd_items_drop(vd_loaded *loaded) {
    vd_exec_drop(&loaded->exec);
    vd_program_free(&loaded->program);
    vd_placed_data_free(&loaded->placed);
    loaded->exec.program = &loaded->program;
}

/* ---- lines of results ---- */

/* Writes lines in the order of the items; those that end early wait. */
static vd_status put_lines(items_run *x) {
    for (; x->lines < x->r->items->count && x->line[x->lines].size; x->lines++) {
        vd_buf *line = &x->line[x->lines];
        if (fwrite(line->data, 1, line->size, x->results) != line->size || fflush(x->results) != 0)
            return vd_fail(x->err, VD_ERR_LOCAL, "%s/results.jsonl: cannot be written", x->r->dir);
        vd_buf_free(line);
    }
    return VD_OK;
}

static vd_status end_item(items_run *x, uint32_t item, const vd_program *program,
                          const vd_state *state, const vd_hash *run_root) {
    vd_items *items = x->r->items;
    vd_status status =
        vd_result_line(program, state, items->key[item], &x->r->sum, &x->line[item], x->err);
    if (status == VD_OK && x->r->answers && vd_program_answers(program))
        status = vd_answers_put(&x->answers, x->r->dir, x->r->loaded, state, x->err);
    if (status == VD_OK)
        status = put_lines(x);
    items->run_root[item] = *run_root;
    items->done[item] = status == VD_OK;
    return status;
}

/* ---- one after the other ---- */

static bool see_step(void *user, const vd_progress *p) {
    items_run *x = user;
    x->progress.step = p->step;
    x->progress.steps = p->steps;
    x->progress.made = x->made + p->step - p->resumed_at;
    x->progress.passed = x->passed + p->step - p->resumed_at;
    x->progress.found = x->found + p->resumed_at;
    x->progress.void_choices = x->void_choices + p->void_choices;
    x->r->progress(x->r->user, &x->progress);
    return true;
}

/* Loads the last state from disk, which compares it with its commitment. */
static vd_status take_result(items_run *x, uint32_t item, const char *dir) {
    const vd_loaded *l = x->r->loaded;
    vd_state state = {0};
    vd_status status =
        vd_store_load_state(l->ro, dir, &l->program, &x->r->items->program[item], l->program.steps,
                            &x->result.final_state, &state, x->err);
    if (status == VD_OK)
        status = end_item(x, item, &l->program, &state, &x->result.run_root);
    vd_state_free(&state);
    return status;
}

static vd_status run_one(items_run *x, uint32_t item) {
    vd_loaded *l = x->r->loaded;
    const char *fault = item == x->r->faulty ? x->r->fault : NULL;
    char dir[1024];
    vd_items_path(dir, x->r->dir, x->r->items->key[item]);
    if (l->exec.fault.kind == VD_FAULT_NONE) /* a fault may have changed them */
        vd_shared_take(&x->shared, &l->exec, x->r->own_data);
    vd_items_drop(l);
    vd_status status = x->r->load(x->r->user, item, x->err);
    if (status == VD_OK)
        vd_shared_give(&x->shared, &l->exec);
    l->exec.fault = (vd_fault){0};
    if (status == VD_OK)
        status = vd_item_group_join(&x->group, item, l->program.steps, x->err);
    if (status == VD_OK && fault)
        status = vd_fault_parse(fault, &l->program, &l->exec.fault, x->err);
    if (status == VD_OK)
        vd_announce_fault(l);
    if (status == VD_OK)
        status = vd_exec_place(&l->exec, x->err);
    vd_one_run run = {.loaded = l};
    run.options = (vd_run_options){.exec = &l->exec,
                                   .dir = dir,
                                   .fault = fault,
                                   .progress = see_step,
                                   .user = x,
                                   .keep = KEEP};
    if (status == VD_OK)
        status = vd_run_one(&run, x->err);
    x->result = run.result;
    x->r->idle |= run.idle;
    if (status == VD_OK) {
        x->made += x->result.steps - x->result.resumed_at;
        x->passed += x->result.steps - x->result.resumed_at;
        x->found += x->result.resumed_at;
        x->void_choices = x->progress.void_choices;
    }
    return status == VD_OK ? take_result(x, item, dir) : status;
}

static vd_status run_in_order(items_run *x) {
    x->group = (vd_item_group){.dir = x->r->dir, .items = x->r->items};
    vd_status status = vd_item_group_open(&x->group, x->err);
    x->progress.alone = true;
    x->made = x->progress.made, x->passed = x->progress.passed, x->found = x->progress.found;
    x->void_choices = x->progress.void_choices;
    for (uint32_t i = 0; status == VD_OK && i < x->r->items->count; i++) {
        if (!x->alone[i])
            continue;
        x->progress.at = i;
        status = run_one(x, i);
        if (status == VD_OK)
            status = vd_item_group_end(&x->group, false, x->err);
        x->progress.ended++;
        x->progress.made = x->made;
        x->progress.passed = x->passed;
        x->progress.found = x->found;
        if (status == VD_OK)
            x->r->progress(x->r->user, &x->progress);
    }
    if (status == VD_OK)
        status = vd_item_group_end(&x->group, true, x->err);
    vd_item_group_close(&x->group);
    vd_shared_free(&x->shared);
    return status;
}

/* ---- together ---- */

static void see_made(void *user, const vd_items_progress *more) {
    items_run *x = user;
    x->progress.made += more->made;
    x->progress.found += more->found;
    x->progress.passed += more->passed;
    x->progress.void_choices += more->void_choices;
    x->progress.ended = more->ended;
    x->r->progress(x->r->user, &x->progress);
}

static vd_status take_ended(void *user, uint32_t item, const vd_program *program,
                            const vd_state *state, const vd_hash *run_root, vd_err *err) {
    (void)err; /* x->err is the same */
    return end_item(user, item, program, state, run_root);
}

static void see_refused(void *user, uint32_t item, const char *why) {
    items_run *x = user;
    if (x->refused++ == 0)
        snprintf(x->why, sizeof x->why, "%s", why);
    x->alone[item] = true;
}

static vd_status run_together(items_run *x) {
    const vd_together t = {
        .run = x->r, .made = see_made, .ended = take_ended, .refused = see_refused, .user = x};
    const vd_status status = vd_run_together(&t, x->err);
    if (status == VD_OK && x->refused)
        fprintf(stderr, "%u of %u prompts run one after the other: %s\n", x->refused,
                x->r->items->count, x->why);
    return status == VD_OK ? run_in_order(x) : status;
}

static vd_status run_alone(items_run *x) {
    for (uint32_t i = 0; i < x->r->items->count; i++)
        x->alone[i] = true;
    return run_in_order(x);
}

/* ---- all items ---- */

/* Renames the results when they are complete; until then an earlier file stays. */
static vd_status name_results(items_run *x, const char *part) {
    char path[1024];
    snprintf(path, sizeof path, "%s/results.jsonl", x->r->dir);
    if (fflush(x->results) != 0 || fsync(fileno(x->results)) != 0 || rename(part, path) != 0)
        return vd_fail(x->err, VD_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    return vd_sync_parent(path, x->err);
}

/* Writes lines as items end. After an interruption all lines are written again, from the states. */
static vd_status run_all(items_run *x) {
    const vd_items_run *r = x->r;
    char path[1024];
    snprintf(path, sizeof path, "%s/results.jsonl.part", r->dir);
    int fd;
    uint64_t before;
    vd_status status = vd_open_update(path, false, 0644, &fd, &before, x->err);
    if (status != VD_OK)
        return status;
    x->results = ftruncate(fd, 0) == 0 ? fdopen(fd, "w") : NULL;
    if (!x->results) {
        close(fd);
        return vd_fail(x->err, VD_ERR_LOCAL, "%s: cannot be written", path);
    }
    x->line = calloc((size_t)r->items->count + 1, sizeof *x->line);
    x->alone = calloc((size_t)r->items->count + 1, sizeof *x->alone);
    status = x->line && x->alone ? VD_OK : vd_fail(x->err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = !r->fault && r->makes_tokens ? run_together(x) : run_alone(x);
    for (uint32_t i = 0; x->line && i < r->items->count; i++)
        vd_buf_free(&x->line[i]);
    free(x->line);
    free(x->alone);
    if (status == VD_OK)
        status = vd_answers_finish(&x->answers, x->err);
    if (status == VD_OK)
        status = name_results(x, path);
    vd_answers_free(&x->answers);
    fclose(x->results);
    return status;
}

vd_status vd_run_items(vd_items_run *run, vd_err *err) {
    items_run x = {.r = run, .err = err};
    vd_status status = run_all(&x);
    return status == VD_OK ? vd_items_save(run->dir, run->items, err) : status;
}
