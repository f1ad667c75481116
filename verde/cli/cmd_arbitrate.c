#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verde/cli/arbitrate.h"
#include "verde/cli/stop.h"
#include "verde/cli/story.h"

const vd_program *vd_arbitration_program(const vd_arbitration *x) {
    return x->collection.count ? NULL : &x->loaded->program;
}

static vd_status load_item(void *user, uint64_t item, vd_program *out, vd_err *err) {
    const vd_arbitration *x = user;
    return vd_job_prompt_program(&x->loaded->job, &x->loaded->prompts, (uint32_t)item, out, err);
}

/* Of a job with prompts all programs are built once, for their hashes. */
static vd_status load(vd_arbitration *x) {
    vd_status status = VD_OK;
    x->loaded = x->a->loaded ? x->a->loaded : &x->own;
    x->own.prompt = x->a->prompt;
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
    return status;
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
    if (status == VD_OK)
        status = vd_assign(x);
    if (status != VD_OK)
        return status;
    vd_referee_options options = {.program = vd_arbitration_program(x),
                                  .collection = x->collection.count ? &x->collection : NULL,
                                  .assignment = &x->payload,
                                  .key = x->key,
                                  .leaf = vd_leaf_element,
                                  .story = vd_tell};
    return x->a->urls > 2 ? vd_tournament_create(&options, &x->tournament, x->err)
                          : vd_referee_create(&options, &x->referee, x->err);
}

/* ---- the hearing ---- */

void vd_court_open(vd_court *court, vd_arbitration *x, vd_referee *referee, const uint32_t *number,
                   uint32_t parties) {
    *court = (vd_court){.a = x->a,
                        .client = x->client,
                        .referee = referee,
                        .assignment = &x->note,
                        .number = number,
                        .parties = parties,
                        .err = x->err};
    for (uint32_t p = 0; p < parties; p++)
        court->party[p] = &x->endpoint[number[p]];
}

/* Who stands must not pay for the second hearing with what it spent in the first. */
static void renew_budgets(vd_court *court) {
    for (uint32_t p = 0; p < court->parties; p++)
        court->left_s[p] = (double)court->a->budget_s;
}

vd_status vd_court_sit(vd_court *court, const char *name) {
    vd_outgoing out[VD_PARTIES_MAX];
    size_t count;
    vd_status status;
    renew_budgets(court);
    while ((status = vd_referee_next(court->referee, out, &count, court->err)) == VD_OK &&
           count > 0) {
        char line[160];
        snprintf(line, sizeof line, "%s%sasking: %s", name ? name : "", name ? ": " : "",
                 out[0].text);
        vd_tell_now(line);
        if (out[0].whole_run) /* the second run has a budget of its own, and so has what follows */
            renew_budgets(court);
        status = vd_ask_round(court, out, count);
        if (status != VD_OK)
            break;
        if (out[0].whole_run)
            renew_budgets(court);
    }
    return status;
}

static vd_status arbitrate_two(vd_arbitration *x) {
    static const uint32_t number[2] = {0, 1};
    vd_court court;
    vd_court_open(&court, x, x->referee, number, 2);
    vd_status status = vd_court_sit(&court, NULL);
    x->mistaken = court.mistaken;
    x->cost.bytes_in = court.bytes_in;
    x->cost.bytes_out = court.bytes_out;
    return status;
}

static vd_status dispute(vd_arbitration *x) {
    vd_stop_line(
        "stopped: there is no verdict, and the providers keep their runs; `%s` begins again",
        vd_command_line());
    vd_status status = x->tournament ? vd_arbitrate_many(x) : arbitrate_two(x);
    x->cost.seconds = vd_seconds() - x->start;
    x->cost.cpu_seconds = vd_cpu_seconds();
    x->cost.peak_bytes = vd_peak_bytes();
    return status;
}

const vd_outcome *vd_arbitration_outcome(const vd_arbitration *x) {
    return x->tournament ? vd_tournament_outcome(x->tournament) : vd_referee_outcome(x->referee);
}

/* A verdict in which nobody has signed anything would be our word alone, about what is most often
 * a mistake in the options. */
static vd_status check_said(vd_arbitration *x) {
    const struct vd_party_outcome *party = vd_arbitration_outcome(x)->party;
    const vd_referee *first = x->referee;
    size_t count;
    if (x->tournament)
        first = vd_tournament_sittings(x->tournament, &count)->referee;
    const vd_statement *s = vd_referee_statements(first, &count);
    for (size_t i = 0; i < count; i++)
        if (s[i].note.size)
            return VD_OK;
    return vd_fail(x->err, x->mistaken ? VD_ERR_USAGE : VD_ERR_IO,
                   "%s provider takes part, and there is no verdict; provider 1: %s; "
                   "provider 2: %s%s",
                   x->tournament ? "no" : "neither", party[0].reason, party[1].reason,
                   x->tournament ? "; ..." : "");
}

/* ---- the verdict ---- */

/* A second process decides again from the file, before it gets its name. */
static vd_status check_verdict(const char *path, vd_err *err) {
    int code;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "verde", "verify", "--quiet", "--", path, (char *)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &code, 0) != child)
        return vd_fail(err, VD_ERR_LOCAL, "%s: could not be verified", path);
    if (!WIFEXITED(code) || WEXITSTATUS(code) != VD_EXIT_OK)
        return vd_fail(err, VD_ERR_LOCAL, "%s: a second process does not come to the same verdict",
                       path);
    return VD_OK;
}

static vd_status write_verdict(vd_arbitration *x) {
    char draft[1100];
    vd_buf text = {0};
    vd_status status = x->tournament
                           ? vd_verdict_write_many(x->key, vd_arbitration_program(x), &x->note,
                                                   x->tournament, &x->cost, &text, x->err)
                           : vd_verdict_write(x->key, vd_arbitration_program(x), &x->note,
                                              x->referee, &x->cost, &text, x->err);
    vd_put_u8(&text, '\n');
    snprintf(draft, sizeof draft, "%s.draft", x->a->verdict);
    if (status == VD_OK)
        status = vd_write_file(draft, text.data, text.size, 0644, x->err);
    if (status == VD_OK)
        status = check_verdict(draft, x->err);
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

vd_exit vd_arbitrate(const vd_arbitrate_arguments *a) {
    vd_err err = {0};
    vd_arbitration x = {.a = a, .start = vd_seconds(), .err = &err};
    vd_status status = prepare(&x);
    if (status == VD_OK)
        status = dispute(&x);
    if (status == VD_OK)
        status = check_said(&x);
    if (status == VD_OK)
        status = write_verdict(&x);
    vd_exit code = status == VD_OK ? arbitrate_finish(&x) : vd_report(&err);
    vd_referee_destroy(x.referee);
    vd_tournament_destroy(x.tournament);
    vd_client_destroy(x.client);
    vd_key_destroy(x.key);
    vd_buf_free(&x.payload);
    vd_buf_free(&x.note);
    vd_items_free(&x.items);
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
    case 'q': return vd_parse_number("timeout", optarg, 1, 86400, &a->question_s);
    case 'n': a->no_challenge = true; return true;
    case 'F': a->force = true; return true;
    case 'P': a->prompt = optarg; return true;
    case 'g': return vd_parse_number("budget", optarg, 1, 1000000, &a->budget_s);
    default: return vd_take_common(&vd_cmd_arbitrate, o, &a->common, exit_now);
    }
}

static vd_exit arbitrate(int argc, char **argv) {
    static const struct option options[] = {
        {"provider", required_argument, NULL, 'p'}, {"verdict", required_argument, NULL, 'v'},
        {"key", required_argument, NULL, 'k'},      {"cacert", required_argument, NULL, 'c'},
        {"timeout", required_argument, NULL, 'q'},  {"budget", required_argument, NULL, 'g'},
        {"no-challenge", no_argument, NULL, 'n'},   {"force", no_argument, NULL, 'F'},
        {"prompt", required_argument, NULL, 'P'},   VD_COMMON_OPTIONS};
    vd_arbitrate_arguments a = {
        .key_dir = "referee-keys", .question_s = VD_ARBITRATE_QUESTION_S, .budget_s = VD_BUDGET_S};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
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
    "  --timeout S      seconds without a word of a provider: it says that it computes\n"
    "                   (default 120)\n"
    "  --budget S       seconds for all answers of one provider to one other, and for a second\n"
    "                   run (default 3600)\n"
    "  --no-challenge   do not ask a convicted provider to run the job again and contest the "
    "claim\n"
    "                   left standing, which takes as long as the job\n" VD_COMMON_HELP
    "\nExample:\n"
    "  verde arbitrate models/jobs/demo.yaml --verdict verdict.json \\\n"
    "    --provider https://a.example:8443#KEY --provider "
    "https://b.example:8443#KEY\n" VD_EXIT_HELP,
    arbitrate};
