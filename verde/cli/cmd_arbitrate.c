#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verde/cli/arbitrate.h"
#include "verde/cli/stop.h"
#include "verde/cli/story.h"
#include "verde/exec/estimate.h"

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

/* Of programs that are given: the one that computes most. */
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

/* Loads the program of the longest prompt: providers state the pace of this one. */
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

/* Of a job with prompts all programs are built once, for their hashes. */
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
    if (status == VD_OK) /* before hours of work, not after */
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

const vd_outcome *vd_arbitration_outcome(const vd_arbitration *x) {
    return vd_arbiter_outcome(x->arbiter);
}

/* Of the first question. */
static const char *why_silent(const vd_arbitration *x, uint32_t p) {
    const vd_tournament *many = vd_arbiter_tournament(x->arbiter);
    size_t count;
    const vd_statement *s = vd_referee_last(
        many ? vd_tournament_sittings(many, &count)->referee : vd_arbiter_referee(x->arbiter), p);
    return s ? s->why : "was not asked";
}

/* A verdict in which nobody has signed anything would be our word alone, about what is most often
 * a mistake in the options. */
static vd_status check_said(vd_arbitration *x) {
    const vd_outcome *o = vd_arbitration_outcome(x);
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
    char draft[1100];
    vd_buf text = {0};
    const vd_program *program = vd_arbitration_program(x);
    const vd_tournament *many = vd_arbiter_tournament(x->arbiter);
    vd_status status =
        many ? vd_verdict_write_many(x->key, program, &x->note, many, &x->cost, &text, x->err)
             : vd_verdict_write(x->key, program, &x->note, vd_arbiter_referee(x->arbiter), &x->cost,
                                &text, x->err);
    vd_put_u8(&text, '\n');
    snprintf(draft, sizeof draft, "%s.draft", x->a->verdict);
    if (status == VD_OK)
        status = vd_write_file(draft, text.data, text.size, 0644, x->err);
    if (status == VD_OK)
        status = vd_verify_apart(draft, x->err);
    if (status == VD_OK)
        status = vd_write_file(x->a->verdict, text.data, text.size, 0644, x->err);
    unlink(draft);
    vd_buf_free(&text);
    return status;
}

static vd_exit arbitrate_finish(vd_arbitration *x) {
    const vd_outcome *outcome = vd_arbitration_outcome(x);
    if (x->a->quiet)
        return vd_exit_of(outcome);
    if (x->a->common.json)
        vd_print_json(vd_dispute_json(outcome, &x->assignment, &x->cost));
    else
        vd_tell_outcome(outcome, x->a->url, &x->cost, x->a->verdict);
    return vd_exit_of(outcome);
}

/* A journal in which nobody says anything, or nothing but a commitment, is no use to anyone. A file
 * that was named for --resume and is no journal is not ours. */
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

static bool take_option(int o, vd_arbitrate_arguments *a, bool *exit_now) {
    switch (o) {
    case 'p':
        if (a->urls == VD_PARTIES_MAX) {
            fprintf(stderr, "verde: arbitrate takes 2 to %d providers\n", VD_PARTIES_MAX);
            return false;
        }
        a->url[a->urls++] = optarg;
        return true;
    case 'v': a->verdict = optarg; return true;
    case 'k': a->key_dir = optarg; return true;
    case 'c': a->ca = optarg; return true;
    case 'q': return vd_parse_number("timeout", optarg, 1, 86400, &a->patience_s);
    case 'r': a->resume = optarg; return true;
    case 'n': a->no_challenge = true; return true;
    case 'F': a->force = true; return true;
    case 'P': a->prompt = optarg; return true;
    case 's': return vd_parse_number("step-time-max", optarg, 1, 1000, &a->step_s_max);
    default: return vd_take_common(&vd_cmd_arbitrate, o, &a->common, exit_now);
    }
}

static vd_exit arbitrate(int argc, char **argv) {
    static const struct option options[] = {{"provider", required_argument, NULL, 'p'},
                                            {"verdict", required_argument, NULL, 'v'},
                                            {"key", required_argument, NULL, 'k'},
                                            {"cacert", required_argument, NULL, 'c'},
                                            {"timeout", required_argument, NULL, 'q'},
                                            {"step-time-max", required_argument, NULL, 's'},
                                            {"resume", required_argument, NULL, 'r'},
                                            {"no-challenge", no_argument, NULL, 'n'},
                                            {"force", no_argument, NULL, 'F'},
                                            {"prompt", required_argument, NULL, 'P'},
                                            VD_COMMON_OPTIONS};
    vd_arbitrate_arguments a = {.key_dir = "referee-keys", .patience_s = VD_PATIENCE_S};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = vd_next_option(argc, argv, "h", options, "p")) != -1;) {
        if (!take_option(o, &a, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || a.urls < 2 || !a.verdict || strlen(a.verdict) > 1000) {
        fprintf(stderr,
                "verde: arbitrate takes one job file, --provider URL twice or more often, and "
                "--verdict FILE\n");
        return VD_EXIT_USAGE;
    }
    a.job = argv[optind];
    return vd_arbitrate(&a);
}

const vd_command vd_cmd_arbitrate = {
    "arbitrate", "settle a dispute between providers",
    "Usage: verde arbitrate JOB --provider URL --provider URL ... --verdict FILE [options]\n\n"
    "Asks 2 to 64 providers for the job's result. If two differ, finds the first step, node and\n"
    "element where they do, computes that element, and writes a signed verdict with all\n"
    "evidence. Of more than two, those with one result speak one after the other, until one\n"
    "result is left; disputes between different providers run at the same time.\n\n"
    "  --provider URL   as `verde serve` prints it: https://host:port#key; of a job with\n"
    "                   `rounding` the trainer's first, then its auditors'\n"
    "  --verdict FILE   where the verdict goes; must not exist yet\n"
    "  --force          overwrite FILE\n"
    "  --prompt KEY     of a job with prompts: the dispute is about this one alone, whose run\n"
    "                   each provider serves from its prompts/KEY; else it is about all of them\n"
    "  --key DIR        the referee's identity (default: referee-keys, made if absent)\n"
    "  --cacert FILE    certificates to trust for URLs without a key\n"
    "  --timeout S      seconds for an answer, beside three times what its computing takes by\n"
    "                   the provider's own measure (default 120)\n"
    "  --step-time-max S  seconds that a step counts for at most, whatever a provider says "
    "(default:\n"
    "                   by the size of the job)\n"
    "  --resume JOURNAL go on with a dispute that was interrupted, from FILE.journal beside its\n"
    "                   verdict: nothing that was answered is asked again\n"
    "  --no-challenge   do not ask a convicted provider to run the job again and contest the "
    "claim\n"
    "                   left standing, which takes as long as the job; said when a dispute "
    "begins\n" VD_COMMON_HELP "\nExample:\n"
    "  verde arbitrate models/jobs/demo.yaml --verdict verdict.json \\\n"
    "    --provider https://a.example:8443#KEY --provider "
    "https://b.example:8443#KEY\n" VD_EXIT_HELP,
    arbitrate};
