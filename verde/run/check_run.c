/* This file checks all bytes of a run, or of one of its states, and run.json. */
#include <string.h>
#include <sys/stat.h>

#include "verde/run/checks.h"
#include "verde/tell/stop.h"

typedef struct {
    const vd_check_options *a;
    char dir[1024];
    bool one; /* path is one state's file, not a run */
    vd_loaded loaded;
    vd_run_log log;
    vd_verdict verdict;
    vd_hash run_root, final_state; /* of a finished run */
    bool whole, has_data;
    uint32_t index; /* of the state, if `one` */
    vd_err *err;
} checking;

/* ---- the run's place ---- */

static void parent_of(const char *path, char dir[1024]) {
    const char *slash = strrchr(path, '/');
    const int length = slash ? (int)(slash - path) + (slash == path) : 1;
    snprintf(dir, 1024, "%.*s", length, slash ? path : ".");
}

static vd_status find_run(checking *c) {
    struct stat info;
    if (strlen(c->a->path) > 900)
        return vd_fail(c->err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", c->a->path);
    if (stat(c->a->path, &info) != 0)
        return vd_fail(c->err, VD_ERR_USAGE, "%s: no such file or directory", c->a->path);
    c->one = !S_ISDIR(info.st_mode);
    if (c->one)
        parent_of(c->a->path, c->dir);
    else
        snprintf(c->dir, sizeof c->dir, "%s", c->a->path);
    if (!vd_lies_in(c->dir, "run.json"))
        return vd_fail(c->err, VD_ERR_USAGE, "%s: no run lies there, as there is no run.json",
                       c->dir);
    return VD_OK;
}

/* ---- files ---- */

static vd_status load(checking *c) {
    vd_status status = vd_load_run(c->dir, &c->loaded, &c->log, c->err);
    c->whole = status == VD_OK && c->log.count == vd_run_leaves(&c->loaded.program);
    if (c->whole)
        status = vd_run_root(&c->loaded.exec, &c->log, &c->run_root, &c->final_state, c->err);
    c->has_data = c->whole && vd_lies_in(c->dir, "data.json");
    if (status == VD_OK && c->has_data && !c->one)
        status = vd_load_data(c->dir, c->a->data, &c->loaded, c->err);
    /* A run may have been handed over without its data; its states can still be hashed. */
    if (status == VD_ERR_USAGE && c->has_data && !c->a->data) {
        c->has_data = false;
        status = VD_OK;
    }
    /* a missing or broken run is not a mistake in the options */
    return status == VD_ERR_USAGE ? vd_fail(c->err, VD_ERR_PEER, "%s", c->err->text) : status;
}

static vd_status hash(checking *c) {
    vd_ticker hashing = {.start = vd_seconds()};
    vd_stop_line("stopped before all was hashed, which says nothing; `%s` begins again",
                 vd_command_line());
    const vd_check check = {.dir = c->dir,
                            .exec = &c->loaded.exec,
                            .log = &c->log,
                            .progress = vd_tell_hashing,
                            .user = &hashing};
    return c->one ? vd_check_file(&check, c->a->path, &c->index, c->err)
                  : vd_check_run(&check, c->err);
}

/* Runs all checks, quick ones before hours of hashing. */
static vd_status check_all(checking *c) {
    const vd_check_claim claim = {"program", "the run in ", "run", &c->log.program, &c->run_root};
    vd_status status = find_run(c);
    if (status == VD_OK)
        status = load(c);
    if (status == VD_OK && c->a->job)
        status = vd_compare_job(c->a->job, &c->log.program, c->dir, c->err);
    if (status == VD_OK && c->a->verdict && !c->whole)
        status = vd_fail(c->err, VD_ERR_PEER,
                         "%s: the run is not finished, so that no verdict can accept it", c->dir);
    if (status == VD_OK)
        status = vd_check_accepted(c->a, &claim, &c->verdict, c->err);
    if (status == VD_OK)
        status = vd_load_backend(&c->loaded, c->a->common, c->err);
    return status == VD_OK ? hash(c) : status;
}

/* ---- output ---- */

static uint32_t states_hashed(const checking *c) {
    return c->one ? 1 : vd_run_log_kept_count(&c->log);
}

static uint64_t bytes_hashed(const checking *c) {
    return states_hashed(c) * vd_state_bytes(&c->loaded.program);
}

static void print_json(const checking *c) {
    json_t *out = json_pack("{sb ss so sI sb sI sI}", "fits", 1, "path", c->a->path, "program",
                            vd_hash_text(&c->log.program), "steps",
                            (json_int_t)c->loaded.program.steps, "finished", c->whole, "states",
                            (json_int_t)states_hashed(c), "bytes", (json_int_t)bytes_hashed(c));
    if (c->one) {
        json_object_set_new(out, "step", json_integer(c->log.step[c->index]));
        json_object_set_new(out, "state", vd_hash_text(&c->log.state[c->index]));
    }
    if (c->whole) {
        json_object_set_new(out, "final_state_root", vd_hash_text(&c->final_state));
        json_object_set_new(out, "run_root", vd_hash_text(&c->run_root));
    }
    if (c->a->verdict)
        json_object_set_new(out, "verdict", vd_accepted_json(c->a, &c->verdict));
    vd_result_json(out);
}

static void print_states(vd_buf *out, const checking *c) {
    const long long steps = c->loaded.program.steps;
    char size[32];
    vd_print_size(bytes_hashed(c), size);
    if (c->one) {
        const long long step = c->log.step[c->index];
        vd_put_hex(out, "state", c->log.state[c->index].b);
        vd_printf(out, "it is        the state after step %lld of %lld%s: every byte, %s\n", step,
                  steps, step == steps ? ", the final one" : "", size);
        return;
    }
    vd_printf(out, "states       %u of %llu, every byte: %s\n", states_hashed(c),
              (unsigned long long)vd_run_leaves(&c->loaded.program), size);
    if (c->log.keep)
        vd_printf(out, "not kept     %u state%s, by --keep %d\n", c->log.count - states_hashed(c),
                  vd_plural(c->log.count - states_hashed(c)), (int)c->log.keep);
    if (c->log.backend)
        vd_printf(out, "logs         every byte\n");
    vd_printf(out, "data         %s\n",
              c->has_data ? "every byte"
              : c->whole  ? "not there; `verde serve` needs it"
                          : "not there yet: the run is not finished");
}

static void print_text(const checking *c) {
    vd_buf told = {0}, *out = &told;
    vd_put_hex(out, "program", c->log.program.b);
    print_states(out, c);
    if (c->log.fault[0])
        vd_printf(out, "fault        %s (on purpose)\n", c->log.fault);
    if (c->whole && !c->one)
        vd_put_hex(out, "final state", c->final_state.b);
    if (c->whole)
        vd_put_hex(out, "run root", c->run_root.b);
    if (c->a->verdict)
        vd_accepted_text(out, &c->verdict);
    vd_printf(out, "fits         yes%s\n", c->whole ? "" : ", as far as the run came");
    vd_result_text(out);
}

static vd_status check_run(const vd_check_options *o, vd_err *err) {
    checking c = {.a = o, .err = err};
    const vd_status status = check_all(&c);
    if (status == VD_OK && o->common->json)
        print_json(&c);
    else if (status == VD_OK)
        print_text(&c);
    vd_run_log_free(&c.log);
    vd_loaded_free(&c.loaded);
    return status;
}

/* ---- any path ---- */

vd_exit vd_check_path(const vd_check_options *o) {
    vd_err err = {0};
    bool rounded = false;
    const vd_status status = vd_is_model(o->path)         ? vd_check_model(o, &rounded, &err)
                             : vd_items_are_in(o->path)   ? vd_check_prompts(o, &err)
                             : vd_results_are_in(o->path) ? vd_check_results(o, &err)
                                                          : check_run(o, &err);
    if (status == VD_OK)
        return VD_EXIT_OK;
    const vd_exit code = vd_report(&err);
    return rounded ? VD_EXIT_INCONCLUSIVE : code;
}
