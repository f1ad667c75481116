/* Hands a job to providers and gets its result: the whole course of `verde delegate`. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/delegate/delegation.h"
#include "verde/tell/stop.h"

/* ---- the result ---- */

/* Lists the finished providers whose root is the accepted one. Each byte from them is checked. */
static uint32_t who_has_it(const vd_delegation *d, vd_endpoint *out, uint32_t *number) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->o->urls; i++)
        if (d->order[i].state == VD_ORDER_DONE &&
            vd_hash_equal(&d->order[i].job.run_root, &d->run_root)) {
            number[count] = i + 1;
            out[count++] = d->endpoint[i];
        }
    return count;
}

/* Builds the output of --json and takes ownership of `result`; NULL: there is none. */
static json_t *delegate_json(const vd_delegation *d, json_t *result) {
    char path[1100];
    json_t *providers = json_array();
    vd_delegation_verdict(d, path);
    for (uint32_t i = 0; i < d->o->urls; i++) {
        const vd_order *order = &d->order[i];
        json_t *one =
            json_pack("{ss sb}", "url", d->o->url[i], "done", order->state == VD_ORDER_DONE);
        json_object_set_new(one, order->state == VD_ORDER_DONE ? "run_root" : "error",
                            order->state == VD_ORDER_DONE     ? vd_hash_text(&order->job.run_root)
                            : order->state >= VD_ORDER_FAILED ? json_string(order->why)
                                                              : json_string("not waited for"));
        json_object_set_new(one, "late", json_boolean(order->state == VD_ORDER_LATE));
        json_array_append_new(providers, one);
    }
    json_t *out =
        json_pack("{ss si so so so so}", "job", d->id, "exit_code", (int)d->code, "verdict",
                  d->has_verdict ? json_string(path) : json_null(), "providers", providers,
                  "result", result ? result : json_null(), "score", vd_delegation_score_json(d));
    if (d->audited)
        json_object_set(out, "audit", d->audited);
    if (d->answers && d->code != VD_EXIT_OK && !result) {
        snprintf(path, sizeof path, "%.900s/" VD_REFUSED_RESULTS, d->o->out);
        json_object_set_new(out, "refused", json_string(path));
    }
    return out;
}

static vd_status fetch_result(vd_delegation *d) {
    vd_fetching fetching = {0};
    vd_endpoint endpoint[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t number[VD_DOWNLOAD_PROVIDERS_MAX];
    const vd_fetch_options options = {.out = d->o->out,
                                      .force = d->o->force,
                                      .run_root = d->run_root,
                                      .program = &d->program,
                                      .program_of = d->o->job,
                                      .job = &d->loaded,
                                      .provider = endpoint,
                                      .provider_count = who_has_it(d, endpoint, number),
                                      .number = number,
                                      .id = d->id,
                                      .key = d->key,
                                      .patience_s = (int)d->o->patience_s};
    if (options.provider_count == 0)
        return vd_fail(d->err, VD_ERR_PEER, "no provider says that it has the accepted run");
    const vd_status status = vd_fetch(&options, &fetching, d->err);
    if (status == VD_OK && d->answers)
        vd_delegation_answers(d);
    else if (status == VD_OK && !d->prompts)
        vd_delegation_score(d);
    const bool refused = d->answers && d->code != VD_EXIT_OK;
    if (status == VD_OK && d->o->common.json)
        vd_result_json(delegate_json(d, refused ? NULL : vd_fetch_json(&fetching)));
    else if (status == VD_OK && !refused) /* if refused, that was already printed */
        vd_fetch_text(&fetching);
    if (status == VD_OK && !d->o->common.json)
        vd_delegation_text(d);
    vd_fetching_free(&fetching);
    return status;
}

/* ---- all of it ---- */

static uint32_t count_done(const vd_delegation *d) {
    uint32_t done = 0;
    for (uint32_t i = 0; i < d->o->urls; i++)
        done += d->order[i].state == VD_ORDER_DONE;
    return done;
}

/* Decides which root is accepted. Two providers must have finished: with one there is no rival, so
 * its run or answers are audited instead. */
static vd_status settle(vd_delegation *d, bool *accepted) {
    const uint32_t done = count_done(d);
    *accepted = false;
    if (d->answers && done == 1) { /* its answers are audited once downloaded */
        d->run_root = d->order[0].job.run_root;
        *accepted = true;
        return VD_OK;
    }
    if (d->o->audit && done == 1) {
        vd_delegation_audit(d, accepted);
        return VD_OK;
    }
    if (done >= 2)
        return vd_delegation_settle(d, accepted);
    for (uint32_t i = 0; i < d->o->urls; i++)
        if (d->order[i].state >= VD_ORDER_FAILED)
            return vd_fail(d->err, VD_ERR_PEER,
                           "%u of %u providers left, and a result needs %s; provider %u: %s",
                           vd_delegation_left(d), d->o->urls, d->o->audit ? "one" : "two", i + 1,
                           d->order[i].why);
    return VD_OK;
}

/* Reports the error, and removes OUT if it is empty. */
static vd_exit refuse(const vd_delegation *d) {
    rmdir(d->o->out);
    return vd_report(d->err);
}

static vd_exit tell_dry(vd_delegation *d) {
    return vd_delegation_dry_run(d) == VD_OK ? VD_EXIT_OK : vd_report(d->err);
}

static vd_exit delegate_all(vd_delegation *d) {
    bool accepted = false;
    vd_status status = vd_fetch_check(d->o->out, false, d->o->force, d->err);
    if (status == VD_OK)
        status = vd_delegation_audit_check(d);
    if (status == VD_OK)
        status = vd_delegation_prepare(d);
    if (status == VD_OK)
        status = vd_delegation_audit_fits(d);
    if (status == VD_OK && d->prompts)
        status = vd_fetch_check(d->o->out, true, d->o->force, d->err);
    if (status == VD_OK)
        status = vd_delegation_order(d);
    if (status != VD_OK)
        return refuse(d);
    status = settle(d, &accepted);
    if (status == VD_OK && accepted)
        status = fetch_result(d);
    else if (status == VD_OK && d->o->common.json)
        vd_result_json(delegate_json(d, NULL));
    if (d->no_verdict)
        return d->code;
    if (status != VD_OK && count_done(d) < vd_delegation_least(d)) {
        (void)refuse(d);
        return VD_EXIT_INCONCLUSIVE;
    }
    if (status != VD_OK)
        return vd_report(d->err);
    if (!accepted)
        fprintf(stderr, "verde: no result is accepted; %s/verdict.json says why\n", d->o->out);
    return d->code == VD_EXIT_OK && !accepted ? VD_EXIT_INCONCLUSIVE : d->code;
}

vd_exit vd_delegate(vd_delegation *d) {
    const vd_exit code = d->o->dry ? tell_dry(d) : delegate_all(d);
    vd_delegation_free(d);
    return code;
}
