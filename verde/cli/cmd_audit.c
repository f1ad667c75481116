/* This file is `verde audit`: of one's own run, of a provider, or of delivered answers. */
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#include "verde/audit/audit_answers.h"
#include "verde/audit/audit_provider.h"
#include "verde/audit/recheck.h"
#include "verde/cli/cli.h"
#include "verde/exec/batch.h"
#include "verde/protocol/audit_draw.h"
#include "verde/tell/stop.h"

/* The options and arguments of all three forms. */
static struct {
    const char *data, *state, *url, *proof, *key_dir, *ca, *prompt, *beacon, *source, *work, *dir,
        *verdict;
    long count, seed, steps, crumbs, round, patience_s, step_s_max, answers, together;
    bool all, force;
    vd_common common;
} given;

/* ---- forms ---- */

enum { FORMS = 3 };
static const struct {
    const char *usage;
    char letter; /* in vd_option.forms */
} forms[FORMS] = {{"verde audit RUN", 'r'},
                  {"verde audit JOB --provider URL", 'p'},
                  {"verde audit JOB --results DIR", 'a'}};
static int form;

static bool has_option(const vd_option *option) {
    return strchr(option->forms, forms[form].letter) != NULL;
}

static bool form_has(int f, const char *name);

static void refuse(const char *name) {
    const char *between = "";
    fprintf(stderr, "verde audit: --%s is of ", name);
    for (int i = 0; i < FORMS; i++)
        if (form_has(i, name)) {
            fprintf(stderr, "%s`%s`", between, forms[i].usage);
            between = " and ";
        }
    fprintf(stderr, ", and this is `%s`\n", forms[form].usage);
}

/* ---- of one's own run ---- */

/* Chooses a seed that nobody can foresee, unless one is given. */
static void choose_seed(vd_recheck_options *o) {
    if (!o->seeded && getrandom(&o->seed, sizeof o->seed, 0) == (ssize_t)sizeof o->seed)
        o->seed >>= 1; /* --seed takes 63 bits */
}

static vd_exit audit_run(char **file, int files) {
    if (files != 1) {
        fprintf(stderr, "verde: audit takes one run's directory, got %d arguments\n", files);
        return VD_EXIT_USAGE;
    }
    if (given.all && given.count) {
        fprintf(stderr, "verde: audit takes --all or --intervals, not both\n");
        return VD_EXIT_USAGE;
    }
    vd_recheck_options o = {.dir = file[0],
                            .data = given.data,
                            .state = given.state,
                            .count = given.all     ? 0
                                     : given.count ? given.count
                                                   : 1,
                            .seeded = given.seed >= 0,
                            .seed = (uint64_t)given.seed,
                            .common = given.common};
    choose_seed(&o);
    vd_stop_line("stopped before all was executed; %s`%s` %s", o.state ? "" : "with --state FILE ",
                 vd_command_line(), o.state ? "goes on" : "could go on");
    return vd_recheck_all(&o);
}

/* ---- of a provider, and of answers ---- */

static bool beacon_fits(void) {
    if (!given.beacon != !given.source || !given.beacon != (given.round < 0)) {
        fprintf(stderr, "verde: --beacon, --beacon-source and --beacon-round belong together\n");
        return false;
    }
    if (given.source && !vd_is_beacon_source(given.source)) {
        fprintf(stderr, "verde: --beacon-source must be 1 to %d printable ASCII characters\n",
                VD_BEACON_SOURCE_MAX);
        return false;
    }
    return true;
}

static bool provider_fits(const vd_audit_arguments *a, int files) {
    if (files != 1 || !a->url || strlen(a->proof) > 1000) {
        fprintf(stderr, "verde: audit takes one job file and --provider URL\n");
        return false;
    }
    if (!beacon_fits())
        return false;
    if ((a->all || a->intervals) != (a->work != NULL) || (a->all && a->intervals)) {
        fprintf(stderr, "verde: --intervals or --all, one of them, goes with --work DIR\n");
        return false;
    }
    if (a->steps == 0 && !a->work) {
        fprintf(stderr, "verde: --steps 0 looks at nothing: --intervals or --all goes with it\n");
        return false;
    }
    return true;
}

static vd_exit audit_provider(char **file, int files) {
    const vd_audit_arguments a = {.url = given.url,
                                  .proof = given.proof ? given.proof : "fraud.json",
                                  .key_dir = given.key_dir,
                                  .ca = given.ca,
                                  .prompt = given.prompt,
                                  .force = given.force,
                                  .anew = given.force,
                                  .work = given.work,
                                  .all = given.all,
                                  .intervals = given.count,
                                  .beacon = given.beacon,
                                  .beacon_source = given.source,
                                  .beacon_round = given.round,
                                  .steps = given.steps,
                                  .crumbs = given.crumbs,
                                  .patience_s = given.patience_s,
                                  .step_s_max = given.step_s_max,
                                  .common = given.common,
                                  .job = file[0]};
    vd_hash root;
    return provider_fits(&a, files) ? vd_audit_run(&a, &root) : VD_EXIT_USAGE;
}

static bool answers_fit(const vd_answers_arguments *a, int files) {
    if (files != 1 || strlen(a->dir) > 900) {
        fprintf(stderr, "verde: audit --results DIR takes one job file\n");
        return false;
    }
    if (!beacon_fits())
        return false;
    if (a->url ? !a->verdict || !a->work || strlen(a->verdict) > 1000 || strlen(a->work) > 900
               : a->verdict || a->work) {
        fprintf(stderr, "verde: --provider URL, --verdict FILE and --work DIR belong together\n");
        return false;
    }
    if (a->beacon && a->count == 0) {
        fprintf(stderr, "verde: --beacon draws answers: --answers N says how many\n");
        return false;
    }
    return true;
}

static vd_exit audit_answers(char **file, int files) {
    const vd_answers_arguments a = {.dir = given.dir,
                                    .beacon = given.beacon,
                                    .source = given.source,
                                    .round = given.round,
                                    .count = given.answers,
                                    .url = given.url,
                                    .key_dir = given.key_dir,
                                    .verdict = given.verdict,
                                    .work = given.work,
                                    .ca = given.ca,
                                    .force = given.force,
                                    .patience_s = given.patience_s,
                                    .step_s_max = given.step_s_max,
                                    .together = given.together,
                                    .common = given.common,
                                    .job = file[0]};
    return answers_fit(&a, files) ? vd_audit_answers(&a) : VD_EXIT_USAGE;
}

/* ---- the command ---- */

static bool is_given(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* The form follows from --results or --provider; without them it is an audit of one's own run. */
static vd_exit audit(int argc, char **argv) {
    static vd_exit (*const audits[FORMS])(char **, int) = {audit_run, audit_provider,
                                                           audit_answers};
    vd_exit code;
    given.key_dir = "checker-keys";
    given.patience_s = VD_PATIENCE_S;
    given.steps = VD_AUDIT_STEPS;
    given.crumbs = VD_AUDIT_CRUMBS;
    given.together = VD_ANSWERS_TOGETHER;
    given.round = given.seed = -1;
    form = is_given(argc, argv, "--results") ? 2 : is_given(argc, argv, "--provider");
    return vd_take_options(&vd_cmd_audit, argc, argv, &code)
               ? audits[form](argv + optind, argc - optind)
               : code;
}

static const vd_option options[] = {
    {"  --intervals K    execute so many stretches, drawn at random (default 1). A stretch is one\n"
     "                   checkpoint interval, or with --keep from one kept state to the next\n",
     &given.count, .least = 1, .most = INT32_MAX, .forms = "r"},
    {"  --all            execute the whole run\n", &given.all, .forms = "r"},
    {"  --seed N         draw the stretches from this number, to repeat an audit\n", &given.seed,
     .most = INT64_MAX, .forms = "r"},
    {"  --state FILE     keep in FILE which stretches were executed, and go on from there\n",
     &given.state, .forms = "r"},
    {"  --data DIR       where the run's data files are now, if they have moved\n", &given.data,
     .forms = "r"},
    {"\n"
     "Of a provider: has it sign its run root, draws steps that nobody could foresee, has it "
     "state\n"
     "what it did in them, and computes single elements of that. What is wrong ends as a proof of\n"
     "fraud by the provider's own signatures, which `verde verify` decides offline. Only what is\n"
     "drawn is looked at, and the report says how likely which cheat is found.\n"
     "\n"},
    {"  --provider URL   as `verde serve` or `verde provide` prints it, with its key\n", &given.url,
     .forms = "pa"},
    {"  --crumbs N       elements that are drawn and computed (default 3000)\n", &given.crumbs,
     .most = VD_AUDIT_CRUMBS_MAX, .forms = "p"},
    {"  --steps M        steps in which they lie (default 8); also in each of these: nodes that "
     "read\n"
     "                   data, and nodes of one element, whole\n",
     &given.steps, .most = VD_AUDIT_STEPS_MAX, .forms = "p"},
    {"  --intervals K    execute K drawn checkpoint intervals again, from the provider's states, "
     "and\n"
     "                   compare; --steps 0: nothing else. Takes the job's data, memory and time\n",
     &given.count, .least = 1, .most = VD_AUDIT_STEPS_MAX, .forms = "p"},
    {"  --all            execute all of the run, and compare; the same command goes on after a "
     "stop\n",
     &given.all, .forms = "p"},
    {"  --work DIR       where both lie meanwhile; it stays\n", &given.work, .forms = "pa"},
    {"  --beacon FILE    public randomness: the line of FILE, or of standard input for -, which "
     "is\n"
     "                   waited for once the provider has signed; default: this checker draws\n",
     &given.beacon, .forms = "pa"},
    {"  --beacon-source NAME, --beacon-round N\n"
     "                   which randomness it will be; the assignment names both\n",
     &given.source, .forms = "pa"},
    {"  --beacon-round N\n", &given.round, .most = LONG_MAX, .forms = "pa", .hidden = true},
    {"  --proof FILE     where a proof of fraud goes (default: fraud.json); must not exist yet\n",
     &given.proof, .forms = "p"},
    {"  --force          overwrite FILE, and forget an audit that was stopped, whose draw is kept "
     "in\n"
     "                   FILE.journal: without it the same command goes on with that one\n",
     &given.force, .forms = "pa"},
    {"  --prompt KEY     of a job with prompts: the one whose run is audited\n", &given.prompt,
     .forms = "p"},
    {"  --key DIR        the checker's identity (default: checker-keys, made if absent)\n",
     &given.key_dir, .forms = "pa"},
    {"  --cacert FILE    certificates to trust, beside the key in the URL\n", &given.ca,
     .forms = "pa"},
    {"  --timeout S      seconds for an answer, beside three times what its computing takes by "
     "the\n"
     "                   provider's own measure (default 120)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true, .forms = "pa"},
    {"  --step-time-max S  seconds that a step counts for at most, whatever a provider says\n"
     "                   (default: by the size of the job)\n",
     &given.step_s_max, .least = 1, .most = 1000, .forms = "pa"},
    {"\n"
     "Of answers, by a job with `task: generate`, that lie in DIR/results.jsonl: computes each by "
     "one\n"
     "pass over its prompt and itself, which takes a ninth to a third of the generation, and "
     "compares\n"
     "all that the lines say, to the bit: tokens, log-probabilities, `stopped`, their order. With\n"
     "DIR/results.proof the lines are those of its job root, too. The states that this root "
     "commits to\n"
     "are not looked at.\n"
     "\n"},
    {"  --results DIR    as `verde delegate`, `verde fetch` or `verde run` leaves it\n", &given.dir,
     .forms = "a"},
    {"  --answers N      check so many, drawn at random, or by --beacon (default: all)\n",
     &given.answers, .least = 1, .most = INT32_MAX, .forms = "a"},
    {"  --batch N        so many prompts in a pass, at most (default 8)\n", &given.together,
     .least = 1, .most = VD_BATCH_PROGRAMS_MAX, .forms = "a"},
    {"  --verdict FILE   with --provider URL and --work DIR: a wrong answer goes on to a dispute. "
     "Its\n"
     "                   prompt is run here, into DIR, which is the rival; the verdict goes to "
     "FILE\n",
     &given.verdict, .forms = "a"},
    VD_COMMON_ROWS(given.common),
    {NULL}};

static bool form_has(int f, const char *name) {
    const size_t size = strlen(name);
    for (const vd_option *o = options; o->help; o++)
        if (o->forms && strncmp(o->help + 4, name, size) == 0 &&
            strchr(" ,\n", o->help[4 + size]) && strchr(o->forms, forms[f].letter))
            return true;
    return false;
}

const vd_command vd_cmd_audit = {
    "audit",
    "check a run, or answers, without a rival: one's own, or a provider's",
    "Usage: verde audit RUN [options]\n"
    "       verde audit JOB --provider URL [options]\n"
    "       verde audit JOB --results DIR [options]\n\n"
    "Of one's own run: executes stretches of it again, each from its stored state to the next "
    "one,\n"
    "and compares the states with what the run commits to. Needs no keys and no servers: it is "
    "for\n"
    "machines of one's own that may err without a sign. By default it computes on another backend\n"
    "than the run did. What differs is narrowed to step, node, element and part of its sum. The\n"
    "report has apart what is proven, by the definition of the operators, and what the run states\n"
    "of the machine that computed it. docs/auditing.md tells how.\n\n",
    options,
    "\n"
    "Exit codes: 0 all that was looked at is right; 9 one's own run, or an answer, differs; 6 a "
    "file\n"
    "of the run is damaged; 3 fraud is proven; 4 the provider gave no answer, or none that is "
    "signed,\n"
    "which fails the audit by the checker's word alone; 2 its first word is a refusal: of the job, "
    "or\n"
    "of --key.\n\n"
    "Examples:\n"
    "  verde audit run --intervals 3\n"
    "  verde audit run --all --state audit.txt --backend scalar\n"
    "  verde audit models/jobs/demo.yaml --provider https://a.example:8443#KEY\n"
    "  verde audit generate.yaml --results result\n" VD_EXIT_HELP,
    audit,
    has_option,
    refuse};
