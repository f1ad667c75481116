/* This file runs a job with prompts, and tells how many are done. */
#include "verde/cli/run_command.h"

#include <stdlib.h>
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/run/run_items.h"
#include "verde/tell/stop.h"

typedef struct {
    const vd_prompt_options *o;
    vd_loaded *loaded;
    vd_items items;
    vd_items_run run;
    int64_t void_choices; /* tokens so far that follow from no finite logits */
    uint32_t ended;       /* prompts that were ended when the last line was printed */
    vd_ticker ticker;
    vd_err *err;
} prompt_run;

static void tell_alone(const prompt_run *r, const vd_items_progress *p, bool last, double seconds) {
    char token[120] = "";
    if (r->loaded->job.task == VD_JOB_GENERATES)
        snprintf(token, sizeof token, "  key %lld  token %lld/%lld  %.1f tokens/s",
                 (long long)r->items.key[p->at], (long long)p->step, (long long)p->steps,
                 (double)p->made / seconds);
    vd_tell_meanwhile(last, "%s %u/%u%s", vd_prompt_word(r->loaded, 1), p->at + 1, r->items.count,
                      token);
}

/* With --json, prints a line whenever another prompt has ended. */
static void print_done(prompt_run *r, const vd_items_progress *p) {
    if (!r->o->common.json || p->ended == r->ended)
        return;
    r->ended = p->ended;
    char done[32];
    const char *word = vd_prompt_word(r->loaded, 0);
    snprintf(done, sizeof done, "%s_done", word);
    vd_print_json(json_pack("{sI sI sf}", done, (json_int_t)p->ended, word,
                            (json_int_t)r->items.count, "seconds", vd_seconds() - r->ticker.start));
    fflush(stdout);
}

static void tell(void *user, const vd_items_progress *p) {
    prompt_run *r = user;
    const bool last = p->ended == r->items.count;
    const double seconds = vd_seconds() - r->ticker.start + 1e-9;
    print_done(r, p);
    r->void_choices = p->void_choices;
    if (p->alone)
        vd_stop_line("stopped in %s %u of %u; `%s` goes on", vd_prompt_word(r->loaded, 1),
                     p->at + 1, r->items.count, vd_command_line());
    else
        vd_stop_line("stopped with %u of %u prompts done; `%s` goes on", p->ended, r->items.count,
                     vd_command_line());
    if (!vd_tick(&r->ticker, 0, last))
        return;
    if (p->alone)
        tell_alone(r, p, last, seconds);
    else
        vd_tell_meanwhile(last, "prompts done %u/%u  tokens %lld  %.1f tokens/s", p->ended,
                          r->items.count, (long long)p->made, (double)p->made / seconds);
}

static vd_status load_prompt(void *user, uint32_t item, vd_err *err) {
    const prompt_run *r = user;
    return vd_load_prompt(r->loaded, item, err);
}

static vd_status finish(prompt_run *r) {
    vd_prompts_result result = {.dir = r->o->dir,
                                .items = &r->items,
                                .score = &r->run.sum,
                                .void_choices = r->void_choices,
                                .seconds = vd_seconds() - r->ticker.start};
    vd_status status =
        vd_collection_hash(r->items.program, r->items.count, &result.collection, r->err);
    if (status == VD_OK)
        status = vd_items_job_root(&r->items, &result.job_root, r->err);
    if (status == VD_OK)
        vd_print_prompts(&result, r->loaded, r->o->common.json);
    return status;
}

/* Do the prompts' programs make tokens? Given programs show it by their state. */
static bool makes_tokens(const vd_loaded *l) {
    return l->job.packed ? vd_program_makes_tokens(&l->given.pack.first)
                         : l->job.task == VD_JOB_GENERATES;
}

vd_status vd_run_prompts(const vd_prompt_options *o, vd_loaded *loaded, vd_err *err) {
    prompt_run r = {.o = o, .loaded = loaded, .ticker = {vd_seconds(), 0}, .err = err};
    vd_status status = vd_list_prompts(loaded, &r.items, err);
    r.run = (vd_items_run){.loaded = loaded,
                           .dir = o->dir,
                           .items = &r.items,
                           .load = load_prompt,
                           .own_data = vd_prompt_own_data(loaded),
                           .answers = true,
                           .makes_tokens = makes_tokens(loaded),
                           .together = o->together,
                           .progress = tell,
                           .user = &r};
    if (status == VD_OK)
        status = vd_items_fault(&r.run, o->fault, err);
    if (status == VD_OK)
        status = vd_items_begin(o->dir, &r.items, err);
    if (status == VD_OK) {
        vd_announce_prompts(o->job, r.items.count, loaded);
        status = vd_run_items(&r.run, err);
    }
    if (status == VD_OK)
        status = finish(&r);
    vd_items_free(&r.items);
    return status;
}
