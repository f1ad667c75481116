/* This file audits one provider over the network, question by question. */
#include "verde/audit/audit_provider.h"

#include <limits.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/load/verdict_file.h"
#include "verde/run/out_dir.h"
#include "verde/tell/stop.h"

enum { PROGRESS_S = 5, PACE_AFTER_S = 1 };

/* ---- the job and the provider ---- */

static bool executes(const vd_auditing *x) {
    return x->a->all || x->a->intervals > 0;
}

static vd_status load(vd_auditing *x) {
    x->loaded.prompt = x->a->prompt;
    x->loaded.bare = !executes(x);
    vd_status status = x->a->prompt ? vd_load_job(x->a->job, &x->loaded, x->err)
                                    : vd_load_prompts(x->a->job, &x->loaded, x->err);
    if (status == VD_OK && !x->a->prompt && vd_job_has_prompts(&x->loaded.job))
        return vd_fail(x->err, VD_ERR_USAGE,
                       "%s: a job with prompts is audited one prompt at a time: name it by "
                       "--prompt KEY, whose run the provider serves from its prompts/KEY",
                       x->a->job);
    if (status == VD_OK && vd_backend_of(&x->loaded.program))
        return vd_fail(x->err, VD_ERR_USAGE,
                       "%s: a job with `rounding` has no audit of one provider: its values are not "
                       "the operators' alone",
                       x->a->job);
    if (status == VD_OK && executes(x))
        status = vd_need_weights(&x->loaded, x->err);
    if (status == VD_OK && executes(x))
        status = vd_load_backend(&x->loaded, &x->a->common, x->err);
    return status;
}

static vd_status enrol(vd_auditing *x) {
    vd_status status = vd_endpoint_parse(x->a->url, &x->endpoint, x->err);
    if (status == VD_OK && !x->endpoint.pinned)
        return vd_fail(x->err, VD_ERR_USAGE,
                       "%s: `#KEY` is missing: what the provider says is held against its key; "
                       "give the URL as its `verde serve` prints it",
                       x->a->url);
    x->assignment.provider[0] = x->endpoint.key;
    return status == VD_OK ? vd_public_key_check(&x->endpoint.key, x->err) : status;
}

static vd_status fill_assignment(vd_auditing *x) {
    vd_assignment *a = &x->assignment;
    a->audit = true;
    a->provider_count = 1;
    vd_key_public(x->key, &a->referee);
    snprintf(a->beacon_source, sizeof a->beacon_source, "%s",
             x->a->beacon ? x->a->beacon_source : "checker");
    a->beacon_round = x->a->beacon ? x->a->beacon_round : 0;
    if (RAND_bytes(a->nonce, sizeof a->nonce) != 1)
        return vd_fail(x->err, VD_ERR_LOCAL, "no random numbers");
    return vd_program_hash(&x->loaded.program, &a->program, x->err);
}

/* Makes a new assignment, or takes that of an audit that was stopped. */
static vd_status assign(vd_auditing *x) {
    bool found = false;
    vd_status status = fill_assignment(x);
    if (status == VD_OK)
        status = vd_audit_journal_open(x, &found);
    if (status != VD_OK || found)
        return status;
    status = vd_assignment_sign(x->key, &x->assignment, &x->payload, &x->note, x->err);
    return status == VD_OK ? vd_audit_journal_begin(x) : status;
}

static void tell_silent(uint32_t provider, double seconds) {
    char line[80], since[32];
    (void)provider;
    vd_print_seconds(seconds, since);
    snprintf(line, sizeof line, "The provider: no answer for %s.", since);
    vd_tell(NULL, line);
}

static vd_status take_passed(void *user, const vd_crumb *place, uint64_t count, vd_err *err) {
    (void)err; /* `user` holds the same err */
    vd_audit_cost_add(user, place);
    return vd_audit_note_passed(user, count);
}

static vd_status open_audit(vd_auditing *x) {
    const vd_post_options post = {x->a->ca, x->key, &x->assignment, &x->endpoint, tell_silent};
    const vd_audit_options options = {.program = &x->loaded.program,
                                      .assignment = &x->payload,
                                      .key = x->key,
                                      .leaf = vd_leaf_element,
                                      .steps = (uint32_t)x->a->steps,
                                      .crumbs = (uint32_t)x->a->crumbs,
                                      .random = vd_audit_secret,
                                      .passed = take_passed,
                                      .user = x,
                                      .known = vd_audit_known(x)};
    vd_status status = vd_post_create(&post, &x->office, x->err);
    return status == VD_OK ? vd_audit_create(&options, &x->audit, x->err) : status;
}

static vd_status prepare(vd_auditing *x) {
    vd_status status = vd_leaf_self_test(x->err);
    if (status == VD_OK)
        status = vd_check_new(x->a->proof, x->a->force, x->err);
    if (status == VD_OK)
        status = enrol(x);
    if (status == VD_OK)
        status = load(x);
    if (status == VD_OK)
        status = vd_load_key(x->a->key_dir, &x->key, x->err);
    if (status == VD_OK)
        status = assign(x);
    return status == VD_OK ? open_audit(x) : status;
}

/* ---- the course ---- */

/* Prints the rate and the time left. Only places examined by this process count: those in the
 * journal take no time. */
static void tell_pace(vd_auditing *x, uint64_t done, uint64_t of, char *text, size_t size) {
    char left[32];
    const double now = vd_seconds(), seconds = now - x->pace_at;
    if (done == 0 || done <= vd_audit_known(x) || x->pace_at == 0) {
        x->pace_at = now;
        x->pace_done = done;
    }
    const double rate = seconds > PACE_AFTER_S ? (double)(done - x->pace_done) / seconds : 0;
    const int at = snprintf(text, size, "%llu of about %llu places", (unsigned long long)done,
                            (unsigned long long)of);
    if (done <= x->pace_done || !(rate > 0))
        return;
    vd_print_seconds((double)(of - done) / rate, left);
    snprintf(text + at, size - (size_t)at, ", %.3g/s, %s left", rate, left);
}

/* Prints the progress: on a terminal with each question, otherwise in a line now and then. */
static void tell_progress(vd_auditing *x, const vd_outgoing *q) {
    uint64_t done, of;
    char pace[120], text[240];
    vd_audit_progress(x->audit, &done, &of);
    tell_pace(x, done, of, pace, sizeof pace);
    snprintf(text, sizeof text, "%s; %s", pace, q->text);
    vd_tell_now(text);
    if (vd_is_terminal() || vd_seconds() - x->progress_told < PROGRESS_S)
        return;
    if (x->progress_told > 0 && done > 0)
        vd_tell(NULL, pace);
    x->progress_told = vd_seconds();
}

static vd_status put(vd_auditing *x, const vd_outgoing *q) {
    vd_reply reply;
    bool answered;
    tell_progress(x, q);
    if (vd_audit_recall(x, q))
        return VD_OK;
    vd_status status = vd_audit_put(x, q, &reply, &answered);
    if (status == VD_OK)
        status = vd_audit_note_reply(x, q, &reply, answered);
    x->heard |= status == VD_OK && answered;
    if (status == VD_OK && answered)
        vd_audit_answer(x->audit, reply.bytes, reply.size);
    else if (status == VD_OK)
        vd_audit_no_answer(x->audit, reply.why);
    return status;
}

static vd_status play(vd_auditing *x) {
    vd_outgoing q;
    vd_status status = VD_OK;
    vd_stop_line("stopped; what was drawn and said is kept in %s, and `%s` goes on with it",
                 x->journal.path, vd_command_line());
    vd_audit_cost_begin(x);
    do {
        status = vd_audit_next(x->audit, &x->state, &q, x->err);
        if (status == VD_OK && x->state == VD_AUDIT_WAITS)
            status = vd_audit_take_beacon(x);
        else if (status == VD_OK && x->state == VD_AUDIT_ASKS)
            status = put(x, &q);
    } while (status == VD_OK && x->state <= VD_AUDIT_WAITS);
    if (status == VD_OK && x->state == VD_AUDIT_PASSED && executes(x))
        status = vd_audit_again(x);
    vd_post_bytes(x->office, &x->cost.bytes_in, &x->cost.bytes_out);
    x->cost.seconds = vd_seconds() - x->start;
    x->cost.cpu_seconds = vd_cpu_seconds();
    x->cost.peak_bytes = vd_peak_bytes();
    return status;
}

static vd_status hear_claim(vd_auditing *x) {
    vd_outgoing q;
    vd_reply reply;
    bool answered;
    vd_status status = VD_OK;
    do {
        status = vd_audit_next(x->audit, &x->state, &q, x->err);
        if (status != VD_OK || x->state != VD_AUDIT_ASKS)
            break;
        status = vd_audit_put(x, &q, &reply, &answered);
        if (status == VD_OK && answered)
            vd_audit_answer(x->audit, reply.bytes, reply.size);
        else if (status == VD_OK)
            vd_audit_no_answer(x->audit, reply.why);
    } while (status == VD_OK);
    if (status == VD_OK && x->state != VD_AUDIT_WAITS)
        status = vd_fail(x->err, x->state == VD_AUDIT_FRAUD ? VD_ERR_PEER : VD_ERR_IO,
                         "%s: does not say what it has run: %.250s", x->a->url,
                         vd_audit_results(x->audit)->why);
    return status;
}

vd_status vd_audit_meet(vd_auditing *x) {
    vd_status status = enrol(x); /* first, so that an invalid URL creates no key */
    if (status == VD_OK)
        status = vd_load_key(x->a->key_dir, &x->key, x->err);
    if (status == VD_OK)
        status = fill_assignment(x);
    if (status == VD_OK)
        status = vd_assignment_sign(x->key, &x->assignment, &x->payload, &x->note, x->err);
    if (status == VD_OK)
        status = open_audit(x);
    return status == VD_OK ? hear_claim(x) : status;
}

void vd_audit_part(vd_auditing *x) {
    vd_post_destroy(x->office);
    vd_referee_destroy(x->referee);
    free(x->again);
    free(x->costs.list);
    vd_audit_destroy(x->audit);
    vd_key_destroy(x->key);
    vd_buf_free(&x->payload);
    vd_buf_free(&x->note);
    vd_buf_free(&x->beacon);
}

static vd_status write_proof(vd_auditing *x) {
    vd_buf text = {0};
    const vd_referee *referee = x->referee ? x->referee : vd_audit_referee(x->audit);
    const vd_crumb *place = x->referee ? &x->place : vd_audit_place(x->audit);
    vd_status status = vd_fraud_write(x->key, &x->loaded.program, &x->note, referee, place,
                                      &x->cost, &text, x->err);
    if (status == VD_OK)
        status = vd_write_verdict(x->a->proof, &text, x->err);
    vd_buf_free(&text);
    x->proven = status == VD_OK;
    return status;
}

static vd_exit exit_of(vd_audit_state state) {
    return state == VD_AUDIT_PASSED  ? VD_EXIT_OK
           : state == VD_AUDIT_FRAUD ? VD_EXIT_CONVICTED
                                     : VD_EXIT_FORFEIT;
}

vd_exit vd_audit_run(const vd_audit_arguments *a, vd_hash *root) {
    vd_err err = {0};
    vd_auditing x = {.a = a, .start = vd_seconds(), .err = &err, .journal.fd = -1};
    vd_status status = prepare(&x);
    if (status == VD_OK)
        status = play(&x);
    if (status == VD_OK && x.state == VD_AUDIT_FRAUD)
        status = write_proof(&x);
    if (status == VD_OK)
        vd_audit_report(&x);
    if (status == VD_OK && x.state == VD_AUDIT_PASSED)
        *root = vd_audit_results(x.audit)->run_root;
    const vd_exit code = status == VD_OK ? exit_of(x.state) : vd_report(&err);
    vd_audit_journal_close(&x, status == VD_OK);
    vd_audit_part(&x);
    vd_loaded_free(&x.loaded);
    return code;
}
