#include "verde/cli/run_prompts.h"
#include "verde/cli/run_command.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/stop.h"

enum { KEEP = VD_KEEP_MIN }; /* states of each prompt that stay on disk */

typedef struct {
    const vd_prompt_options *o;
    vd_loaded *loaded;
    vd_items items;
    uint32_t faulty; /* the prompt whose run is at fault; UINT32_MAX: none */
    const char *fault;
    uint32_t at; /* the prompt that runs */
    vd_run_result result;
    vd_score_sum sum;
    double start, last_line;
    int64_t made;   /* tokens of prompts that have ended in this process */
    vd_buf *line;   /* of each prompt that has ended before one in front of it; owned */
    uint32_t lines; /* that are in the file */
    FILE *results;
    vd_err *err;
} prompt_run;

/* ---- before ---- */

static vd_status find_fault(prompt_run *r) {
    const char *fault = r->o->fault, *slash = fault ? strchr(fault, '/') : NULL;
    char key[32];
    r->faulty = fault ? 0 : UINT32_MAX;
    r->fault = slash ? slash + 1 : fault;
    if (!slash)
        return VD_OK;
    snprintf(key, sizeof key, "%.*s", (int)(slash - fault), fault);
    return vd_find_prompt(r->loaded, key, &r->faulty, r->err);
}

/* Before anything runs: a fault that its prompt's program does not have is a mistake. */
static vd_status check_fault(prompt_run *r) {
    vd_fault fault;
    vd_status status = find_fault(r);
    if (status != VD_OK || !r->fault)
        return status;
    status = vd_load_prompt(r->loaded, r->faulty, r->err);
    return status == VD_OK ? vd_fault_parse(r->fault, &r->loaded->program, &fault, r->err) : status;
}

static void announce(const prompt_run *r) {
    const vd_loaded *l = r->loaded;
    const vd_job *job = &l->job;
    char what[64] = "scored";
    if (job->task == VD_JOB_GENERATES)
        snprintf(what, sizeof what, "up to %lld tokens each",
                 (long long)job->generation.max_tokens);
    fprintf(stderr, "%s: %lld parameters, %u prompt%s, %s, backend %s, %d thread%s\n", r->o->job,
            (long long)vd_model_parameters(&job->training.model), r->items.count,
            vd_plural(r->items.count), what, ro_ctx_backend(l->ro), ro_ctx_threads(l->ro),
            vd_plural((uint64_t)ro_ctx_threads(l->ro)));
}

/* ---- meanwhile ---- */

static bool tell(void *user, const vd_progress *p) {
    prompt_run *r = user;
    const bool last = p->step == p->steps, terminal = vd_is_terminal();
    const double now = vd_seconds(), every = terminal ? 0.1 : 2.0;
    const double made = (double)(r->made + p->step - p->resumed_at);
    vd_stop_line("stopped in prompt %u of %u; `%s` goes on", r->at + 1, r->items.count,
                 vd_command_line());
    if (now - r->last_line < every && !(last && r->at + 1 == r->items.count))
        return true;
    r->last_line = now;
    fprintf(stderr, "%sprompt %u/%u  key %lld  token %lld/%lld  %.1f tokens/s",
            terminal ? "\r\033[K" : "", r->at + 1, r->items.count, (long long)r->items.key[r->at],
            (long long)p->step, (long long)p->steps, made / (now - r->start + 1e-9));
    fputs(terminal && !last ? "" : "\n", stderr);
    fflush(stderr);
    return true;
}

static bool tell_score(void *user, const vd_progress *p) {
    prompt_run *r = user;
    const bool terminal = vd_is_terminal(), last = r->at + 1 == r->items.count;
    const double now = vd_seconds();
    (void)p;
    vd_stop_line("stopped in prompt %u of %u; `%s` goes on", r->at + 1, r->items.count,
                 vd_command_line());
    if (now - r->last_line < (terminal ? 0.1 : 2.0) && !last)
        return true;
    r->last_line = now;
    fprintf(stderr, "%sprompt %u/%u%s", terminal ? "\r\033[K" : "", r->at + 1, r->items.count,
            terminal && !last ? "" : "\n");
    fflush(stderr);
    return true;
}

/* Lines stand in the order of the prompts: those that ended early wait. */
static vd_status put_lines(prompt_run *r) {
    for (; r->lines < r->items.count && r->line[r->lines].size; r->lines++) {
        vd_buf *line = &r->line[r->lines];
        if (fwrite(line->data, 1, line->size, r->results) != line->size || fflush(r->results) != 0)
            return vd_fail(r->err, VD_ERR_LOCAL, "%s/results.jsonl: cannot be written", r->o->dir);
        vd_buf_free(line);
    }
    return VD_OK;
}

static vd_status put_line(prompt_run *r, uint32_t prompt, const vd_program *program,
                          const vd_state *state) {
    const vd_status status =
        vd_result_line(program, state, r->items.key[prompt], &r->sum, &r->line[prompt], r->err);
    return status == VD_OK ? put_lines(r) : status;
}

/* The last state, from disk, where it is compared with its commitment. */
static vd_status take_result(prompt_run *r, const char *dir) {
    const vd_program *program = &r->loaded->program;
    vd_state state = {0};
    vd_status status = vd_store_load_state(r->loaded->ro, dir, program, &r->items.program[r->at],
                                           program->steps, &r->result.final_state, &state, r->err);
    if (status == VD_OK)
        status = put_line(r, r->at, program, &state);
    r->items.run_root[r->at] = r->result.run_root;
    r->items.done[r->at] = status == VD_OK;
    vd_state_free(&state);
    return status;
}

static vd_status run_one(prompt_run *r) {
    vd_loaded *l = r->loaded;
    const bool scores = l->job.task == VD_JOB_SCORES;
    const char *fault = r->at == r->faulty ? r->fault : NULL;
    char dir[1024];
    vd_items_path(dir, r->o->dir, r->items.key[r->at]);
    vd_status status = vd_load_prompt(l, r->at, r->err);
    l->exec.fault = (vd_fault){0};
    if (status == VD_OK && fault)
        status = vd_fault_parse(fault, &l->program, &l->exec.fault, r->err);
    if (status == VD_OK)
        status = vd_exec_place(&l->exec, r->err);
    const vd_run_options options = {.exec = &l->exec,
                                    .dir = dir,
                                    .fault = fault,
                                    .progress = scores ? tell_score : tell,
                                    .user = r,
                                    .keep = KEEP};
    if (status == VD_OK)
        status = vd_run(&options, &r->result, r->err);
    if (status == VD_OK)
        status = vd_save_data(dir, l, r->err);
    if (status == VD_OK && r->result.resumed_at < r->result.steps)
        status = vd_tell_fault(dir, l, r->err);
    if (status == VD_OK)
        r->made += r->result.steps - r->result.resumed_at;
    return status == VD_OK ? take_result(r, dir) : status;
}

/* ---- prompts at the same time ---- */

static void tell_made(void *user, int64_t tokens, uint32_t ended) {
    prompt_run *r = user;
    const bool terminal = vd_is_terminal(), last = ended == r->items.count;
    const double now = vd_seconds();
    r->made += tokens;
    vd_stop_line("stopped with %u of %u prompts done; `%s` goes on", ended, r->items.count,
                 vd_command_line());
    if (now - r->last_line < (terminal ? 0.1 : 2.0) && !last)
        return;
    r->last_line = now;
    fprintf(stderr, "%sprompts done %u/%u  tokens %lld  %.1f tokens/s%s",
            terminal ? "\r\033[K" : "", ended, r->items.count, (long long)r->made,
            (double)r->made / (now - r->start + 1e-9), terminal && !last ? "" : "\n");
    fflush(stderr);
}

static vd_status take_ended(void *user, uint32_t prompt, const vd_program *program,
                            const vd_state *state, const vd_hash *run_root, vd_err *err) {
    prompt_run *r = user;
    (void)err; /* the same */
    const vd_status status = put_line(r, prompt, program, state);
    r->items.run_root[prompt] = *run_root;
    r->items.done[prompt] = status == VD_OK;
    return status;
}

static vd_status run_together(prompt_run *r) {
    const vd_together t = {.loaded = r->loaded,
                           .dir = r->o->dir,
                           .items = &r->items,
                           .together = r->o->together,
                           .made = tell_made,
                           .ended = take_ended,
                           .user = r};
    return vd_run_together(&t, r->err);
}

static vd_status run_in_order(prompt_run *r) {
    vd_status status = VD_OK;
    for (; status == VD_OK && r->at < r->items.count; r->at++)
        status = run_one(r);
    return status;
}

/* Gives the results their name once all are there: an earlier file stays until then. */
static vd_status name_results(prompt_run *r, const char *part) {
    char path[1024];
    snprintf(path, sizeof path, "%s/results.jsonl", r->o->dir);
    if (fflush(r->results) != 0 || fsync(fileno(r->results)) != 0 || rename(part, path) != 0)
        return vd_fail(r->err, VD_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    return vd_sync_parent(path, r->err);
}

/* Lines come as prompts end. What an interrupted run has written is written again, from its states.
 */
static vd_status run_all(prompt_run *r) {
    char path[1024];
    snprintf(path, sizeof path, "%s/results.jsonl.part", r->o->dir);
    r->results = fopen(path, "we");
    if (!r->results)
        return vd_fail(r->err, VD_ERR_LOCAL, "%s: cannot be written", path);
    r->line = calloc((size_t)r->items.count + 1, sizeof *r->line);
    vd_status status = r->line ? VD_OK : vd_fail(r->err, VD_ERR_LOCAL, "out of memory");
    if (status == VD_OK)
        status = !r->fault && vd_can_run_together(r->loaded) ? run_together(r) : run_in_order(r);
    for (uint32_t i = 0; r->line && i < r->items.count; i++)
        vd_buf_free(&r->line[i]);
    free(r->line);
    if (status == VD_OK)
        status = name_results(r, path);
    fclose(r->results);
    return status;
}

/* ---- at the end ---- */

static void print_score(const vd_score_sum *sum) {
    const double loss = -sum->log_probability / (double)sum->tokens;
    printf("loss         %.6f of %llu tokens\nperplexity   %.6g\n", loss,
           (unsigned long long)sum->tokens, exp(loss));
}

static void print_json(const prompt_run *r, const vd_hash *collection, const vd_hash *root) {
    json_t *out = json_pack("{so so sI sf}", "job_root", vd_hash_text(root), "collection",
                            vd_hash_text(collection), "prompts", (json_int_t)r->items.count,
                            "seconds", vd_seconds() - r->start);
    if (r->sum.tokens) {
        const double loss = -r->sum.log_probability / (double)r->sum.tokens;
        json_object_set_new(out, "tokens", json_integer((json_int_t)r->sum.tokens));
        json_object_set_new(out, "loss", isfinite(loss) ? json_real(loss) : json_null());
        json_object_set_new(out, "perplexity", isfinite(loss) ? json_real(exp(loss)) : json_null());
    }
    vd_print_json(out);
}

static void print_text(const prompt_run *r, const vd_hash *collection, const vd_hash *root) {
    char hex[2 * VD_HASH_SIZE + 1];
    printf("results      %s/results.jsonl, %u prompt%s, %.1f s\n", r->o->dir, r->items.count,
           vd_plural(r->items.count), vd_seconds() - r->start);
    if (r->sum.tokens)
        print_score(&r->sum);
    vd_hex(collection->b, VD_HASH_SIZE, hex);
    printf("collection   %s\n", hex);
    vd_hex(root->b, VD_HASH_SIZE, hex);
    printf("job root     %s\n", hex);
}

static vd_status finish(prompt_run *r) {
    vd_hash collection, root;
    vd_status status = vd_items_save(r->o->dir, &r->items, r->err);
    if (status == VD_OK)
        status = vd_collection_hash(r->items.program, r->items.count, &collection, r->err);
    if (status == VD_OK)
        status = vd_items_job_root(&r->items, &root, r->err);
    if (status == VD_OK && r->o->common.json)
        print_json(r, &collection, &root);
    else if (status == VD_OK)
        print_text(r, &collection, &root);
    return status;
}

vd_status vd_run_prompts(const vd_prompt_options *o, vd_loaded *loaded, vd_err *err) {
    prompt_run r = {.o = o, .loaded = loaded, .start = vd_seconds(), .err = err};
    vd_status status = vd_list_prompts(loaded, &r.items, err);
    if (status == VD_OK)
        status = check_fault(&r);
    if (status == VD_OK)
        status = vd_items_begin(o->dir, &r.items, err);
    if (status == VD_OK) {
        announce(&r);
        status = run_all(&r);
    }
    if (status == VD_OK)
        status = finish(&r);
    vd_items_free(&r.items);
    return status;
}
