/* This file checks and shows the folder of a job with prompts. */
#include "verde/run/checks.h"

#include <string.h>

#include "verde/run/answers.h"
#include "verde/run/results.h"

/* ---- printing ---- */

static json_t *items_json(const vd_items *items, const vd_hash *collection, const vd_hash *root) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < items->count; i++) {
        json_t *item = json_pack("{sI so}", "key", (json_int_t)items->key[i], "program",
                                 vd_hash_text(&items->program[i]));
        if (items->done[i])
            json_object_set_new(item, "run_root", vd_hash_text(&items->run_root[i]));
        json_array_append_new(list, item);
    }
    json_t *out = json_pack("{sb so so}", "finished", root != NULL, "collection",
                            vd_hash_text(collection), "prompts", list);
    if (root)
        json_object_set_new(out, "job_root", vd_hash_text(root));
    return out;
}

static void print_items(vd_buf *out, const vd_items *items) {
    char hex[2 * VD_HASH_SIZE + 1];
    for (uint32_t i = 0; i < items->count; i++) {
        vd_hex(items->run_root[i].b, VD_HASH_SIZE, hex);
        vd_printf(out, "key %-8lld %s\n", (long long)items->key[i],
                  items->done[i] ? hex : "unfinished");
    }
}

typedef struct {
    vd_items items;
    vd_hash collection, root;
    bool whole;
} prompt_folder;

static vd_status open_folder(const char *dir, prompt_folder *out, vd_err *err) {
    vd_status status = vd_items_load(dir, &out->items, err);
    out->whole = status == VD_OK && vd_items_all_done(&out->items);
    if (status == VD_OK)
        status = vd_collection_hash(out->items.program, out->items.count, &out->collection, err);
    if (out->whole && status == VD_OK)
        status = vd_items_job_root(&out->items, &out->root, err);
    return status;
}

vd_status vd_show_prompts(const char *dir, const vd_common *common, vd_err *err) {
    vd_buf out = {0};
    prompt_folder f = {0};
    const vd_status status = open_folder(dir, &f, err);
    if (status == VD_OK && common->json) {
        vd_result_json(items_json(&f.items, &f.collection, f.whole ? &f.root : NULL));
    } else if (status == VD_OK) {
        vd_put_hex(&out, "collection", f.collection.b);
        print_items(&out, &f.items);
        vd_printf(&out, "not checked  the prompts' runs; `verde check %s` does it\n", dir);
        if (f.whole)
            vd_put_hex(&out, "job root", f.root.b);
        vd_result_text(&out);
    }
    vd_items_free(&f.items);
    return status;
}

/* ---- checking ---- */

typedef struct {
    const vd_prompt_runs *runs;
    uint32_t at;
    vd_buf lines; /* of results.jsonl so far */
    vd_score_sum sum;
    uint64_t bytes; /* that were hashed */
    bool compares;  /* compares files of answers, too */
    vd_answers answers;
    vd_known_data known;
    vd_err *err;
} prompt_check;

static vd_status take_line(prompt_check *c, const vd_loaded *run, const char *dir,
                           const vd_hash *final) {
    const vd_program *program = &run->program;
    vd_state state = {0};
    vd_status status = vd_store_load_state(run->ro, dir, program, &c->runs->items->program[c->at],
                                           program->steps, final, &state, c->err);
    if (status == VD_OK)
        status =
            vd_result_line(program, &state, c->runs->items->key[c->at], &c->sum, &c->lines, c->err);
    if (status == VD_OK && c->compares && vd_program_answers(program))
        status = vd_answers_put(&c->answers, c->runs->dir, run, &state, c->err);
    vd_state_free(&state);
    return status;
}

static vd_status check_root(const prompt_check *c, const vd_run_log *log, const vd_hash *root,
                            const char *dir) {
    if (!vd_hash_equal(&log->program, &c->runs->items->program[c->at]))
        return vd_fail(c->err, VD_ERR_PEER, "%s: a run of another program than %s/run.json says",
                       dir, c->runs->dir);
    if (!vd_hash_equal(root, &c->runs->items->run_root[c->at]))
        return vd_fail(c->err, VD_ERR_PEER, "%s: has another run root than %s/run.json says", dir,
                       c->runs->dir);
    return VD_OK;
}

static vd_status check_run(prompt_check *c, const char *dir, vd_loaded *run, vd_run_log *log) {
    const vd_check check = {.dir = dir, .exec = &run->exec, .log = log, .stop = c->runs->stop};
    vd_hash root, final;
    vd_status status = vd_load_run(dir, run, log, c->err);
    if (status == VD_OK)
        status = vd_run_root(&run->exec, log, &root, &final, c->err);
    if (status == VD_OK)
        status = check_root(c, log, &root, dir);
    if (status == VD_OK)
        status = vd_load_data(dir, c->runs->data, run, c->err);
    if (status == VD_OK)
        status = vd_load_backend(run, c->runs->common, c->err);
    if (status == VD_OK)
        status = vd_check_run(&check, c->err);
    c->bytes += status == VD_OK ? vd_run_log_kept_count(log) * vd_state_bytes(&run->program) : 0;
    if (status == VD_OK && c->runs->note)
        c->runs->note(c->runs->user, c->at, &run->program, log);
    return status == VD_OK ? take_line(c, run, dir, &final) : status;
}

static vd_status check_one(prompt_check *c) {
    char dir[1024];
    vd_loaded run = {.known = &c->known};
    vd_run_log log = {0};
    vd_items_path(dir, c->runs->dir, c->runs->items->key[c->at]);
    vd_status status = check_run(c, dir, &run, &log);
    vd_run_log_free(&log);
    vd_loaded_free(&run);
    return status;
}

static vd_status check_lines(const prompt_check *c) {
    char path[1024];
    vd_map file = {0};
    snprintf(path, sizeof path, "%s/results.jsonl", c->runs->dir);
    vd_status status = vd_map_file(path, &file, c->err);
    if (status == VD_OK &&
        (file.size != c->lines.size || memcmp(file.data, c->lines.data, file.size) != 0))
        status = vd_fail(c->err, VD_ERR_PEER, "%s: not what the last states of the runs say", path);
    vd_map_free(&file);
    return status;
}

static vd_status check_all(prompt_check *c) {
    vd_status status = VD_OK;
    for (; status == VD_OK && c->at < c->runs->items->count; c->at++)
        if (!c->runs->items->delivered[c->at])
            status = check_one(c);
    vd_known_data_free(&c->known);
    return status == VD_OK ? check_lines(c) : status;
}

vd_status vd_check_prompt_runs(const vd_prompt_runs *runs, vd_err *err) {
    prompt_check c = {.runs = runs, .err = err};
    const vd_status status = check_all(&c);
    vd_buf_free(&c.lines);
    return status;
}

/* ---- the whole folder ---- */

static void print_checked(const prompt_check *c, const prompt_folder *f, const char *verdict) {
    char size[32];
    vd_print_size(c->bytes, size);
    if (c->runs->common->json) {
        json_t *all = items_json(&f->items, &f->collection, &f->root);
        json_object_set_new(all, "fits", json_true());
        if (verdict)
            json_object_set_new(all, "verdict", json_string(verdict));
        json_object_set_new(all, "bytes", json_integer((json_int_t)c->bytes));
        vd_result_json(all);
        return;
    }
    vd_buf told = {0}, *out = &told;
    vd_put_hex(out, "collection", f->collection.b);
    const bool answers = c->answers.count > 0;
    vd_printf(out, "%-12s %u, every byte of the states that were kept (%s) and of the data\n",
              answers ? "batches" : "prompts", f->items.count, size);
    vd_printf(out, "results      every line of %s/results.jsonl\n", c->runs->dir);
    if (answers)
        vd_printf(out, "answers      every byte of %u files in %s\n", c->answers.count + 1,
                  c->answers.dir);
    vd_put_hex(out, "job root", f->root.b);
    if (verdict)
        vd_printf(out, "verdict      verified: %s accepts this job root\n", verdict);
    vd_printf(out, "fits         yes\n");
    vd_result_text(out);
}

vd_status vd_check_prompts(const vd_check_options *o, vd_err *err) {
    prompt_folder f = {0};
    vd_verdict verdict = {0};
    const vd_check_claim claim = {"job", "", "job", &f.collection, &f.root};
    const vd_prompt_runs runs = {
        .dir = o->path, .data = o->data, .common = o->common, .items = &f.items};
    prompt_check c = {.runs = &runs, .compares = true, .answers = {.checks = true}, .err = err};
    vd_status status = open_folder(o->path, &f, err);
    if (status == VD_OK && !f.whole)
        status = vd_fail(err, VD_ERR_USAGE, "%s: not all prompts are done", o->path);
    if (status == VD_OK && !vd_items_all_here(&f.items))
        status = vd_fail(err, VD_ERR_USAGE,
                         "%s: of some prompts it has the run roots that a provider delivered, and "
                         "no runs: it is there for `verde serve`, in a dispute",
                         o->path);
    if (status == VD_OK && o->job)
        status = vd_check_items_job(o->path, o->job, &f.items, err);
    if (status == VD_OK)
        status = vd_check_accepted(o, &claim, &verdict, err);
    if (status == VD_OK)
        status = vd_check_entries(o->path, &f.items, err);
    if (status == VD_OK)
        status = check_all(&c);
    if (status == VD_OK)
        status = vd_answers_finish(&c.answers, err);
    if (status == VD_OK)
        print_checked(&c, &f, o->verdict);
    vd_answers_free(&c.answers);
    vd_buf_free(&c.lines);
    vd_items_free(&f.items);
    return status;
}
