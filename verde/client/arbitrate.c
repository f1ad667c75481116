/* Conducts a dispute over the network, from the job to the verdict. */
#include "verde/client/arbitrate.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/client/story.h"
#include "verde/exec/estimate.h"
#include "verde/run/out_dir.h"
#include "verde/tell/stop.h"

const vd_program *vd_arbitration_program(const vd_arbitration *x) {
    return x->collection.count ? NULL : &x->loaded->program;
}

static vd_status load_item(void *user, uint64_t item, vd_program *out, vd_err *err) {
    const vd_arbitration *x = user;
    if (x->loaded->job.packed)
        return vd_pack_program(&x->loaded->given.pack, (uint32_t)item, out, NULL, err);
    return vd_job_prompt_program(&x->loaded->job, &x->loaded->prompts, (uint32_t)item, out, err);
}

static int64_t positions(const vd_prompt *prompt) {
    return prompt->count + prompt->max_tokens;
}

/* Finds the given program with the most computing. */
static vd_status find_most(vd_arbitration *x, uint32_t *longest) {
    uint64_t most = 0;
    vd_status status = VD_OK;
    for (uint32_t i = 0; status == VD_OK && i < x->items.count; i++) {
        vd_program program = {0};
        status = load_item(x, i, &program, x->err);
        const uint64_t terms = status == VD_OK ? vd_estimate_terms(&program, &program.init) / 2 +
                                                     vd_estimate_terms(&program, &program.step) / 2
                                               : 0;
        *longest = terms > most ? i : *longest;
        most = terms > most ? terms : most;
        vd_program_free(&program);
    }
    return status;
}

/* Loads the program of the longest prompt, for which providers state their pace. */
static vd_status load_longest(vd_arbitration *x) {
    const vd_prompts *prompts = &x->loaded->prompts;
    uint32_t longest = 0;
    const vd_status status = x->loaded->job.packed ? find_most(x, &longest) : VD_OK;
    if (status != VD_OK)
        return status;
    for (uint32_t i = 1; i < prompts->count; i++)
        if (positions(&prompts->list[i]) > positions(&prompts->list[longest]))
            longest = i;
    return load_item(x, longest, &x->longest, x->err);
}

/* Loads the job. With prompts, each program is built once for its hash. */
static vd_status load(vd_arbitration *x) {
    vd_status status = VD_OK;
    x->loaded = x->a->loaded ? x->a->loaded : &x->own;
    x->own.prompt = x->a->prompt;
    x->own.bare = true;
    if (x->a->prompt)
        return vd_load_job(x->a->job, x->loaded, x->err);
    if (!x->a->loaded)
        status = vd_load_prompts(x->a->job, x->loaded, x->err);
    if (status != VD_OK || !vd_job_has_prompts(&x->loaded->job))
        return status;
    status = vd_list_prompts(x->loaded, &x->items, x->err);
    if (status == VD_OK)
        status =
            vd_collection_root(x->items.program, x->items.count, &x->collection.programs, x->err);
    x->collection.count = x->items.count;
    x->collection.program = x->items.program;
    x->collection.load = load_item;
    x->collection.user = x;
    return status == VD_OK ? load_longest(x) : status;
}

static vd_status prepare(vd_arbitration *x) {
    vd_status status = vd_leaf_self_test(x->err);
    if (status == VD_OK) /* early: not after hours of work */
        status = vd_check_new(x->a->verdict, x->a->force, x->err);
    if (status == VD_OK)
        status = load(x);
    if (status == VD_OK)
        status = vd_load_key(x->a->key_dir, &x->key, x->err);
    if (status == VD_OK)
        status = vd_client_create(x->a->ca, &x->client, x->err);
    if (status == VD_OK)
        status = vd_enrol(x);
    return status == VD_OK ? vd_arbitrate_prepare(x) : status;
}

static vd_status dispute(vd_arbitration *x) {
    vd_stop_line(
        "stopped: there is no verdict, and the providers keep their runs; `%s%s%s` goes on",
        vd_command_line(), x->a->resume || x->a->goes_on ? "" : " --resume ",
        x->a->resume || x->a->goes_on ? "" : x->journal.path);
    vd_status status = vd_arbiter_run(x->arbiter, x->err);
    vd_post_bytes(x->office, &x->cost.bytes_in, &x->cost.bytes_out);
    x->cost.seconds = vd_seconds() - x->start;
    x->cost.cpu_seconds = vd_cpu_seconds();
    x->cost.peak_bytes = vd_peak_bytes();
    memcpy(x->cost.level_seconds, vd_arbiter_level_seconds(x->arbiter),
           sizeof x->cost.level_seconds);
    return status;
}

static const vd_outcome *outcome_of(const vd_arbitration *x) {
    return vd_arbiter_outcome(x->arbiter);
}

/* Returns why a provider gave no answer to the first question. */
static const char *why_silent(const vd_arbitration *x, uint32_t p) {
    const vd_tournament *many = vd_arbiter_tournament(x->arbiter);
    size_t count;
    const vd_statement *s = vd_referee_last(
        many ? vd_tournament_sittings(many, &count)->referee : vd_arbiter_referee(x->arbiter), p);
    return s ? s->why : "was not asked";
}

/* Without any signed statement a verdict would be only the referee's word, and most often about a
 * mistake in the options: then none is written. */
static vd_status check_said(vd_arbitration *x) {
    const vd_outcome *o = outcome_of(x);
    if (vd_arbiter_heard(x->arbiter) && !vd_arbiter_mistaken(x->arbiter))
        return VD_OK;
    if (x->a->own_rival && vd_arbiter_mistaken(x->arbiter))
        return vd_fail(x->err, VD_ERR_USAGE,
                       "the provider takes no part, and there is no verdict: %s; --key must be one "
                       "that it knows as a referee's",
                       why_silent(x, 0));
    return vd_fail(x->err, vd_arbiter_mistaken(x->arbiter) ? VD_ERR_USAGE : VD_ERR_IO,
                   "%s provider takes part, and there is no verdict; provider 1: %s; "
                   "provider 2: %s%s",
                   o->party_count > 2 ? "no" : "neither", why_silent(x, 0), why_silent(x, 1),
                   o->party_count > 2 ? "; ..." : "");
}

/* ---- the verdict ---- */

static vd_status write_verdict(vd_arbitration *x) {
    vd_buf text = {0};
    const vd_program *program = vd_arbitration_program(x);
    const vd_tournament *many = vd_arbiter_tournament(x->arbiter);
    vd_status status =
        many ? vd_verdict_write_many(x->key, program, &x->note, many, &x->cost, &text, x->err)
             : vd_verdict_write(x->key, program, &x->note, vd_arbiter_referee(x->arbiter), &x->cost,
                                &text, x->err);
    if (status == VD_OK)
        status = vd_write_verdict(x->a->verdict, &text, x->err);
    vd_buf_free(&text);
    return status;
}

static vd_exit arbitrate_finish(vd_arbitration *x) {
    const vd_outcome *outcome = outcome_of(x);
    if (x->a->quiet)
        return vd_exit_of(outcome);
    if (x->a->common.json)
        vd_result_json(vd_dispute_json(outcome, &x->assignment, &x->cost));
    else
        vd_tell_outcome(outcome, x->a->url, &x->cost, x->a->verdict);
    return vd_exit_of(outcome);
}

/* Removes the journal once the dispute is settled, or if it has no signed statement and so is of no
 * use. A file named for --resume that is no journal is left alone. */
static void leave_journal(vd_arbitration *x, bool settled) {
    const bool begun = x->arbiter || x->journal.minutes.count > 0;
    const bool heard =
        x->arbiter && vd_arbiter_heard(x->arbiter) && !vd_arbiter_mistaken(x->arbiter);
    if (settled || (!begun && !x->a->resume) || (x->arbiter && !heard))
        vd_court_journal_remove(&x->journal);
    else if (heard)
        vd_say("verde: what was said is kept in %s, for --resume", x->journal.path);
}

vd_exit vd_arbitrate(const vd_arbitrate_arguments *a) {
    vd_err err = {0};
    vd_arbitration x = {.a = a, .start = vd_seconds(), .err = &err, .journal.fd = -1};
    vd_status status = prepare(&x);
    if (status == VD_OK)
        status = dispute(&x);
    if (status == VD_OK)
        status = check_said(&x);
    if (status == VD_OK)
        status = write_verdict(&x);
    leave_journal(&x, status == VD_OK);
    vd_exit code = status == VD_OK ? arbitrate_finish(&x) : vd_report(&err);
    vd_post_destroy(x.office);
    vd_arbiter_destroy(x.arbiter);
    vd_court_journal_close(&x.journal);
    vd_client_destroy(x.client);
    vd_key_destroy(x.key);
    vd_buf_free(&x.payload);
    vd_buf_free(&x.note);
    vd_items_free(&x.items);
    vd_program_free(&x.longest);
    vd_loaded_free(&x.own);
    return code;
}
