#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/delegation.h"
#include "verde/cli/fetching_items.h"
#include "verde/cli/stop.h"
#include "verde/cli/story.h"

enum { DEADLINE_MAX_S = 366 * 86400 };

/* ---- the result ---- */

/* From whoever says that it has the accepted root; each byte is checked. */
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

/* Takes the result; NULL: there is none. */
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
    vd_endpoint endpoint[VD_DOWNLOAD_PROVIDERS_MAX];
    uint32_t number[VD_DOWNLOAD_PROVIDERS_MAX];
    vd_fetching fetching = {0};
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
    if (d->prompts)
        return vd_delegation_results(d, &options, delegate_json);
    vd_status status = vd_fetch(&options, &fetching, d->err);
    if (status == VD_OK)
        vd_delegation_score(d);
    if (status == VD_OK && d->o->common.json) {
        vd_print_json(delegate_json(d, vd_fetch_json(&fetching)));
    } else if (status == VD_OK) {
        vd_fetch_text(&fetching);
        vd_delegation_late_text(d);
        vd_delegation_score_text(d);
    }
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

/* Two must have finished: one alone has nobody who could know better. */
static vd_status settle(vd_delegation *d, bool *accepted) {
    const uint32_t done = count_done(d);
    *accepted = false;
    if (d->answers && done == 1) { /* once they are here */
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

/* What this command made of OUT goes, if nothing is in it. */
static vd_exit refuse(const vd_delegation *d) {
    rmdir(d->o->out);
    return vd_report(d->err);
}

static vd_exit tell_dry(vd_delegation *d) {
    return vd_delegation_dry_run(d) == VD_OK ? VD_EXIT_OK : vd_report(d->err);
}

static vd_exit delegate_all(vd_delegation *d) {
    bool accepted = false;
    vd_status status = vd_fetched_check(d->o->out, d->o->force, d->err);
    if (status == VD_OK)
        status = vd_delegation_audit_check(d);
    if (status == VD_OK)
        status = vd_delegation_prepare(d);
    if (status == VD_OK)
        status = vd_delegation_audit_fits(d);
    if (status == VD_OK && d->prompts)
        status = vd_fetch_items_check(d->o->out, d->o->force, d->err);
    if (status == VD_OK)
        status = vd_delegation_order(d);
    if (status != VD_OK)
        return refuse(d);
    status = settle(d, &accepted);
    if (status == VD_OK && accepted)
        status = fetch_result(d);
    else if (status == VD_OK && d->o->common.json)
        vd_print_json(delegate_json(d, NULL));
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

/* ---- the command ---- */

static bool take_url(vd_delegate_options *o) {
    if (o->urls < VD_DOWNLOAD_PROVIDERS_MAX) {
        o->url[o->urls++] = optarg;
        return true;
    }
    fprintf(stderr, "verde: delegate takes at most %d providers\n", VD_DOWNLOAD_PROVIDERS_MAX);
    return false;
}

static bool take_option(int option, vd_delegate_options *o, bool *exit_now) {
    switch (option) {
    case 'p': return take_url(o);
    case 'o': o->out = optarg; return true;
    case 'k': o->key_dir = optarg; return true;
    case 'f': o->force = true; return true;
    case 'n': o->no_challenge = true; return true;
    case 'D': o->dry = true; return true;
    case 'a': o->audit = optarg; return true;
    case 'q': return vd_parse_number("timeout", optarg, 1, 86400, &o->patience_s);
    case 'd': return vd_parse_number("deadline", optarg, 1, DEADLINE_MAX_S, &o->deadline_s);
    case 's': return vd_parse_number("step-time-max", optarg, 1, 1000, &o->step_s_max);
    default: return vd_take_common(&vd_cmd_delegate, option, &o->common, exit_now);
    }
}

static vd_exit delegate(int argc, char **argv) {
    static const struct option options[] = {{"provider", required_argument, NULL, 'p'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"timeout", required_argument, NULL, 'q'},
                                            {"deadline", required_argument, NULL, 'd'},
                                            {"step-time-max", required_argument, NULL, 's'},
                                            {"no-challenge", no_argument, NULL, 'n'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"dry-run", no_argument, NULL, 'D'},
                                            {"audit", required_argument, NULL, 'a'},
                                            VD_COMMON_OPTIONS};
    vd_delegate_options o = {.patience_s = 120, .question_s = VD_PATIENCE_S};
    bool exit_now = false;
    vd_err err = {0};
    vd_stop_command(argc, argv);
    for (int option; (option = vd_next_option(argc, argv, "ho:", options, "p")) != -1;) {
        if (!take_option(option, &o, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || (!o.dry && (o.urls < (o.audit ? 1 : 2) || !o.out || !o.key_dir))) {
        fprintf(stderr, "verde: delegate takes one job file, --provider URL twice or more, --key "
                        "DIR and --out DIR; or --provider URL once and --audit; or --dry-run "
                        "alone\n");
        return VD_EXIT_USAGE;
    }
    if (o.audit && o.urls > 1) {
        fprintf(stderr, "verde: --audit is of one provider: of more, each is checked by the "
                        "others\n");
        return VD_EXIT_USAGE;
    }
    o.job = argv[optind];
    static vd_delegation d;
    d = (vd_delegation){.o = &o, .err = &err};
    const vd_exit code = o.dry ? tell_dry(&d) : delegate_all(&d);
    vd_delegation_free(&d);
    return code;
}

const vd_command vd_cmd_delegate = {
    "delegate", "hand a job to providers; get a result that is checked",
    "Usage: verde delegate JOB --provider URL --provider URL [...] --key DIR --out DIR "
    "[options]\n"
    "       verde delegate JOB --dry-run [options]\n\n"
    "Hands the job to the daemons of providers (`verde provide`), none of whom is trusted: "
    "uploads\n"
    "the program and its data, if they are not there, and starts the job everywhere. Waits, has\n"
    "the providers commit to their results, and settles a dispute if they differ, as `verde\n"
    "arbitrate` does; OUT/verdict.json says how. Then downloads the accepted model from whoever\n"
    "has it, as `verde fetch` does, with every byte checked, to OUT.\n\n"
    "Of a job with prompts, OUT gets results.jsonl, as `verde run` writes it, made on this "
    "machine\n"
    "of what the accepted job root proves, and results.proof.\n\n"
    "A job with `evaluate` is scored at the end, on this machine: OUT/evaluation.json.\n\n"
    "Stopped at any moment, the same command goes on: uploads and jobs stay at the providers,\n"
    "what is downloaded in OUT/partial or OUT/results.part.\n\n"
    "  --provider URL   as `verde provide` prints it, with its key; two to 16\n"
    "  --audit LIST     there is one provider only, which is audited as by `verde audit`: "
    "crumbs=N,\n"
    "                   steps=M, intervals=K, or all; of a list such as intervals=2,crumbs=1000 "
    "the\n"
    "                   rest is as there. A proof of fraud is OUT/fraud.json. Of a job with\n"
    "                   `task: generate`: answers, all that were delivered by one pass each, or\n"
    "                   answers=N; a wrong one is disputed, and the verdict is OUT/verdict.json\n"
    "  --key DIR        the client's identity, made if absent. Providers enrol its key.pub, and\n"
    "                   it signs the verdict, as the referee's\n"
    "  --out DIR        made if it is not there\n"
    "  --dry-run        ask nobody: tell steps, memory and disk of each provider, what is "
    "uploaded,\n"
    "                   and the time that this machine would take, by some steps that are timed\n"
    "  --force          overwrite a model in DIR, once all is there\n"
    "  --timeout S      seconds of trouble after which a provider is given up (default: 120)\n"
    "  --deadline S     whoever is not done S seconds after the start is not waited for (default:\n"
    "                   whoever takes four times as long as the second one that is done, and\n"
    "                   longer than the job takes on a slow machine)\n"
    "  --step-time-max S  seconds that a step counts for at most in a dispute, whatever a\n"
    "                   provider says (default: by the size of the job)\n"
    "  --no-challenge   do not ask a convicted provider to run the job again\n" VD_COMMON_HELP
    "\nExit codes of `verde arbitrate`: with 3, 4 or 7 there is a result, too, unless a line says\n"
    "that none is accepted. 5: fewer than two providers are left, or nothing is accepted.\n"
    "\nExample:\n"
    "  verde delegate models/jobs/demo.yaml --key client --out result \\\n"
    "    --provider https://a.example:8443#KEY --provider "
    "https://b.example:8443#KEY\n" VD_EXIT_HELP,
    delegate};
