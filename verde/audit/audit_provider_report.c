/* Prints what an audit found, for people and for machines. */
#include <string.h>

#include "verde/audit/audit_provider.h"
#include "verde/load/verdict_file.h"

static const char *const state_names[] = {
    [VD_AUDIT_PASSED] = "passed", [VD_AUDIT_FRAUD] = "fraud", [VD_AUDIT_SILENT] = "silent"};

static bool own_draw(const vd_auditing *x) {
    return x->a->beacon == NULL;
}

static double cpu_of_crumb(const vd_auditing *x) {
    return x->costs.crumbs ? x->cost.cpu_seconds / (double)x->costs.crumbs : 0;
}

/* Returns the steps that a provider must execute again: one that keeps only one node's tensors runs
 * half a step, on average, to each node asked about. This provider keeps more. */
static double steps_again(const vd_audit_result *r) {
    return r->step_count + r->nodes / 2.0;
}

/* ---- for machines ---- */

static json_t *step_json(const vd_audited_step *s) {
    json_t *out =
        json_pack("{sI so so}", "step", (json_int_t)s->step, "secret",
                  vd_hash_text(&s->secret[VD_DRAW_TRACE]), "trace", vd_hash_text(&s->root[1]));
    if (s->inside) {
        json_object_set_new(out, "interval_secret", vd_hash_text(&s->secret[VD_DRAW_SUBRUN]));
        json_object_set_new(out, "interval", vd_hash_text(&s->root[0]));
    }
    return out;
}

static json_t *steps_json(const vd_audit_result *r) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->step_count; i++)
        json_array_append_new(list, step_json(&r->step[i]));
    return list;
}

static json_t *odds_json(const vd_auditing *x) {
    vd_odds odds[VD_ODDS];
    json_t *list = json_array();
    vd_audit_odds(&x->loaded.program, vd_audit_results(x->audit), odds);
    for (int i = 0; i < VD_ODDS; i++) {
        json_t *one = json_pack("{ss ss sf}", "kind", odds[i].name, "cheat", odds[i].cheat, "found",
                                odds[i].found);
        if (odds[i].share > 0)
            json_object_set_new(one, "share", json_real(odds[i].share));
        if (odds[i].found > 0)
            json_object_set_new(one, "stake", json_real((1 - odds[i].found) / odds[i].found));
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *beacon_json(const vd_auditing *x) {
    return json_pack("{ss sI ss#}", "source", x->assignment.beacon_source, "round",
                     (json_int_t)x->assignment.beacon_round, "value",
                     x->beacon.data ? (const char *)x->beacon.data : "", (size_t)x->beacon.size);
}

static json_t *cost_json(const vd_auditing *x) {
    return json_pack("{sI sI sf sf sI sf sI}", "bytes_in", (json_int_t)x->cost.bytes_in,
                     "bytes_out", (json_int_t)x->cost.bytes_out, "seconds", x->cost.seconds,
                     "cpu_seconds", x->cost.cpu_seconds, "peak_bytes",
                     (json_int_t)x->cost.peak_bytes, "cpu_seconds_of_crumb", cpu_of_crumb(x),
                     "questions", (json_int_t)x->questions);
}

/* Lists the intervals that were executed again, and whether they led to the provider's states. */
static json_t *intervals_json(const vd_auditing *x) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < x->again_count; i++)
        json_array_append_new(list,
                              json_pack("{sI sI sb}", "from", (json_int_t)x->again[i].from, "to",
                                        (json_int_t)x->again[i].to, "right", i < x->passed));
    return list;
}

static json_t *report_json(const vd_auditing *x) {
    const vd_audit_result *r = vd_audit_results(x->audit);
    char key[2 * VD_KEY_SIZE + 1];
    vd_hex(x->assignment.provider[0].b, VD_KEY_SIZE, key);
    json_t *out = json_pack("{ss ss so so so so}", "result", state_names[x->state], "provider", key,
                            "beacon", beacon_json(x), "steps", steps_json(r), "odds", odds_json(x),
                            "cost", cost_json(x));
    json_t *counts =
        json_pack("{sI sI sI sI sI}", "crumbs", (json_int_t)r->crumbs, "whole",
                  (json_int_t)r->whole, "whole_elements", (json_int_t)r->whole_elements, "parts",
                  (json_int_t)r->parts, "state_leaves", (json_int_t)r->seams);
    json_object_set_new(out, "checked", counts);
    json_object_set_new(out, "costs_of_crumbs", vd_audit_costs_json(x));
    json_object_set_new(out, "provider_steps", json_real(steps_again(r)));
    if (r->claimed)
        json_object_set_new(out, "run_root", vd_hash_text(&r->run_root));
    if (x->state != VD_AUDIT_PASSED)
        json_object_set_new(out, "reason", json_string(x->why[0] ? x->why : r->why));
    json_object_set_new(out, "intervals", intervals_json(x));
    if (x->proven)
        json_object_set_new(out, "proof", json_string(x->a->proof));
    return out;
}

/* ---- for people ---- */

static void tell_steps(vd_buf *out, const vd_audit_result *r) {
    vd_printf(out, "steps       ");
    for (uint32_t i = 0; i < r->step_count && i < 16; i++) {
        if (r->step[i].step < 0)
            vd_printf(out, " initialisation");
        else
            vd_printf(out, " %lld", (long long)r->step[i].step);
    }
    vd_printf(out, "%s\n", r->step_count > 16 ? " ..." : "");
}

static void tell_checked(vd_buf *out, const vd_audit_result *r) {
    tell_steps(out, r);
    vd_printf(
        out,
        "checked      %u drawn elements, %llu of them by a part of a long sum; %llu elements of "
        "nodes that were\n             checked whole; %llu leaves of states against traces\n",
        r->crumbs, (unsigned long long)r->parts, (unsigned long long)r->whole_elements,
        (unsigned long long)r->seams);
}

/* Prints how many intervals passed, and what that means. */
static void tell_intervals(vd_buf *out, const vd_auditing *x) {
    const double all = (double)vd_interval_count(&x->loaded.program);
    if (x->again_count == 0)
        return;
    vd_printf(out,
              "executed     %u of %.0f intervals again: %u %s the states that the provider has\n",
              x->again_count, all, x->passed, x->passed == 1 ? "has" : "have");
    if (x->state == VD_AUDIT_PASSED)
        vd_printf(out,
                  "             a change of one interval, however small, is found with %.4f %%\n",
                  100 * (double)x->passed / all);
}

static void tell_odds(vd_buf *out, const vd_auditing *x) {
    vd_odds odds[VD_ODDS];
    vd_audit_odds(&x->loaded.program, vd_audit_results(x->audit), odds);
    vd_printf(out,
              "found with   a cheat of this kind; stake that makes it unprofitable, in times its "
              "gain\n");
    for (int i = 0; i < VD_ODDS; i++) {
        vd_printf(out, "  %9.4f %%  %s", 100 * odds[i].found, odds[i].cheat);
        if (odds[i].found > 1e-9)
            vd_printf(out, "; %.3g", (1 - odds[i].found) / odds[i].found);
        vd_printf(out, "\n");
    }
}

static void tell_not_checked(vd_buf *out, const vd_auditing *x) {
    if (x->a->all) {
        vd_printf(out, "not checked  nothing is left out: the whole run was executed again\n");
        return;
    }
    vd_printf(out, "not checked  what was not drawn: a change that aims at few elements, steps or\n"
                   "             intervals is most likely not found by crumbs\n");
    if (own_draw(x))
        vd_printf(
            out, "             nobody but this checker knows that the draw was fair: no beacon was "
                 "named\n");
    else
        vd_printf(out, "             whether %s, round %lld, has this value: look it up\n",
                  x->assignment.beacon_source, (long long)x->assignment.beacon_round);
}

static void tell_result(vd_buf *out, const vd_auditing *x, const vd_audit_result *r) {
    static const char *const text[] = {
        [VD_AUDIT_PASSED] = "passed: all that was looked at is right",
        [VD_AUDIT_FRAUD] = "FRAUD, proven by the provider's own statements",
        [VD_AUDIT_SILENT] = "failed, by this checker's word alone"};
    vd_printf(out, "result       %s\n", text[x->state]);
    if (x->state != VD_AUDIT_PASSED)
        vd_printf(out, "             %s\n", x->why[0] ? x->why : r->why);
    if (r->claimed)
        vd_put_hex(out, "run root", r->run_root.b);
    else if (x->state == VD_AUDIT_SILENT)
        vd_printf(out, "             nothing was checked\n");
}

static void tell_cost(vd_buf *out, const vd_auditing *x, const vd_audit_result *r) {
    char in[32], sent[32], peak[32];
    vd_print_size(x->cost.bytes_in, in);
    vd_print_size(x->cost.bytes_out, sent);
    vd_print_size(x->cost.peak_bytes, peak);
    if (r->step_count)
        vd_printf(out, "provider     executed at most about %.0f steps again for this\n",
                  steps_again(r));
    vd_printf(
        out,
        "cost         %u questions, %s in, %s out, %.1f s (%.2f s of CPU, %.1f ms a crumb), %s "
        "peak memory\n",
        x->questions, in, sent, x->cost.seconds, x->cost.cpu_seconds, 1e3 * cpu_of_crumb(x), peak);
    vd_audit_costs_tell(out, x);
}

static void tell_report(const vd_auditing *x) {
    vd_buf told = {0}, *out = &told;
    const vd_audit_result *r = vd_audit_results(x->audit);
    tell_result(out, x, r);
    vd_printf(out, "beacon       %s, round %lld\n", x->assignment.beacon_source,
              (long long)x->assignment.beacon_round);
    if (r->step_count)
        tell_checked(out, r);
    tell_intervals(out, x);
    if (x->state == VD_AUDIT_PASSED && r->step_count) {
        tell_odds(out, x);
        tell_not_checked(out, x);
    }
    tell_cost(out, x, r);
    if (x->proven)
        vd_printf(out, "proof        %s\n", x->a->proof);
    vd_result_text(out);
}

void vd_audit_report(const vd_auditing *x) {
    if (x->a->report)
        *x->a->report = report_json(x);
    else if (x->a->common.json)
        vd_result_json(report_json(x));
    else
        tell_report(x);
}
