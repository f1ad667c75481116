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

/* It has three forms, each with options of its own. */
typedef enum { VD_AUDIT_OF_RUN, VD_AUDIT_OF_PROVIDER, VD_AUDIT_OF_ANSWERS } audit_form;

/* The letters of all options of all forms. */
enum {
    VD_OPTION_ALL = 'A',
    VD_OPTION_ANSWERS = 'n',
    VD_OPTION_BATCH = 'g',
    VD_OPTION_BEACON = 'B',
    VD_OPTION_BEACON_ROUND = 'R',
    VD_OPTION_BEACON_SOURCE = 'S',
    VD_OPTION_CACERT = 'c',
    VD_OPTION_CRUMBS = 'N',
    VD_OPTION_DATA = 'D',
    VD_OPTION_FORCE = 'F',
    VD_OPTION_INTERVALS = 'K',
    VD_OPTION_KEY = 'k',
    VD_OPTION_PROMPT = 'P',
    VD_OPTION_PROOF = 'o',
    VD_OPTION_PROVIDER = 'p',
    VD_OPTION_RESULTS = 'r',
    VD_OPTION_SEED = 'e',
    VD_OPTION_STATE = 'T',
    VD_OPTION_STEPS = 'M',
    VD_OPTION_LONGEST_STEP = 's',
    VD_OPTION_TIMEOUT = 'q',
    VD_OPTION_VERDICT = 'v',
    VD_OPTION_WORK = 'w',
};

static const struct option options[] = {
    {"all", no_argument, NULL, VD_OPTION_ALL},
    {"answers", required_argument, NULL, VD_OPTION_ANSWERS},
    {"batch", required_argument, NULL, VD_OPTION_BATCH},
    {"beacon", required_argument, NULL, VD_OPTION_BEACON},
    {"beacon-round", required_argument, NULL, VD_OPTION_BEACON_ROUND},
    {"beacon-source", required_argument, NULL, VD_OPTION_BEACON_SOURCE},
    {"cacert", required_argument, NULL, VD_OPTION_CACERT},
    {"crumbs", required_argument, NULL, VD_OPTION_CRUMBS},
    {"data", required_argument, NULL, VD_OPTION_DATA},
    {"force", no_argument, NULL, VD_OPTION_FORCE},
    {"intervals", required_argument, NULL, VD_OPTION_INTERVALS},
    {"key", required_argument, NULL, VD_OPTION_KEY},
    {"prompt", required_argument, NULL, VD_OPTION_PROMPT},
    {"proof", required_argument, NULL, VD_OPTION_PROOF},
    {"provider", required_argument, NULL, VD_OPTION_PROVIDER},
    {"results", required_argument, NULL, VD_OPTION_RESULTS},
    {"seed", required_argument, NULL, VD_OPTION_SEED},
    {"state", required_argument, NULL, VD_OPTION_STATE},
    {"steps", required_argument, NULL, VD_OPTION_STEPS},
    {"step-time-max", required_argument, NULL, VD_OPTION_LONGEST_STEP},
    {"timeout", required_argument, NULL, VD_OPTION_TIMEOUT},
    {"verdict", required_argument, NULL, VD_OPTION_VERDICT},
    {"work", required_argument, NULL, VD_OPTION_WORK},
    VD_COMMON_OPTIONS};

/* ---- forms ---- */

enum { FORMS = 3 };
static const struct {
    const char *usage, *letters;
} forms[FORMS] = {
    [VD_AUDIT_OF_RUN] = {"verde audit RUN", "AKeTD"},
    [VD_AUDIT_OF_PROVIDER] = {"verde audit JOB --provider URL", "ABRScNFKkPopMsqw"},
    [VD_AUDIT_OF_ANSWERS] = {"verde audit JOB --results DIR", "BRScFkprsqvwng"},
};

static const char *name_of(int letter) {
    const struct option *o = options;
    while (o->val != letter)
        o++;
    return o->name;
}

static void refuse(int letter, audit_form form) {
    const char *between = "";
    fprintf(stderr, "verde audit: --%s is of ", name_of(letter));
    for (int i = 0; i < FORMS; i++)
        if (strchr(forms[i].letters, letter)) {
            fprintf(stderr, "%s`%s`", between, forms[i].usage);
            between = " and ";
        }
    fprintf(stderr, ", and this is `%s`\n", forms[form].usage);
}

static int next_option(int argc, char **argv, audit_form form) {
    const int letter = vd_next_option(argc, argv, "h", options, "");
    if (letter <= 0 || strchr("tbjh?", letter) || strchr(forms[form].letters, letter))
        return letter;
    refuse(letter, form);
    return '?';
}

/* ---- of one's own run ---- */

static bool take_run_option(vd_recheck_options *o, int option, bool *all, bool *exit_now) {
    long number;
    switch (option) {
    case VD_OPTION_DATA: o->data = optarg; return true;
    case VD_OPTION_STATE: o->state = optarg; return true;
    case VD_OPTION_ALL: *all = true; return true;
    case VD_OPTION_INTERVALS: return vd_parse_number("intervals", optarg, 1, INT32_MAX, &o->count);
    case VD_OPTION_SEED:
        if (!vd_parse_number("seed", optarg, 0, INT64_MAX, &number))
            return false;
        o->seed = (uint64_t)number;
        o->seeded = true;
        return true;
    default: return vd_take_common(&vd_cmd_audit, option, &o->common, exit_now);
    }
}

/* Nobody can foresee what is drawn, unless the seed is given. */
static void choose_seed(vd_recheck_options *o) {
    if (!o->seeded && getrandom(&o->seed, sizeof o->seed, 0) == (ssize_t)sizeof o->seed)
        o->seed >>= 1; /* as --seed takes it */
}

static vd_exit audit_run(int argc, char **argv) {
    vd_recheck_options o = {0};
    bool exit_now = false, all = false;
    vd_stop_command(argc, argv);
    for (int option; (option = next_option(argc, argv, VD_AUDIT_OF_RUN)) != -1;) {
        if (!take_run_option(&o, option, &all, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1) {
        fprintf(stderr, "verde: audit takes one run's directory, got %d arguments\n",
                argc - optind);
        return VD_EXIT_USAGE;
    }
    if (all && o.count) {
        fprintf(stderr, "verde: audit takes --all or --intervals, not both\n");
        return VD_EXIT_USAGE;
    }
    o.dir = argv[optind];
    o.count = all ? 0 : o.count ? o.count : 1;
    choose_seed(&o);
    vd_stop_line("stopped before all was executed; %s`%s` %s", o.state ? "" : "with --state FILE ",
                 vd_command_line(), o.state ? "goes on" : "could go on");
    return vd_recheck_all(&o);
}

/* ---- of a provider ---- */

static bool take_provider_option(int o, vd_audit_arguments *a, bool *exit_now) {
    switch (o) {
    case VD_OPTION_PROVIDER: a->url = optarg; return true;
    case VD_OPTION_PROOF: a->proof = optarg; return true;
    case VD_OPTION_KEY: a->key_dir = optarg; return true;
    case VD_OPTION_CACERT: a->ca = optarg; return true;
    case VD_OPTION_PROMPT: a->prompt = optarg; return true;
    case VD_OPTION_FORCE: a->force = a->anew = true; return true;
    case VD_OPTION_WORK: a->work = optarg; return true;
    case VD_OPTION_ALL: a->all = true; return true;
    case VD_OPTION_INTERVALS:
        return vd_parse_number("intervals", optarg, 1, VD_AUDIT_STEPS_MAX, &a->intervals);
    case VD_OPTION_BEACON: a->beacon = optarg; return true;
    case VD_OPTION_BEACON_SOURCE: a->beacon_source = optarg; return true;
    case VD_OPTION_BEACON_ROUND:
        return vd_parse_number("beacon-round", optarg, 0, LONG_MAX, &a->beacon_round);
    case VD_OPTION_STEPS: return vd_parse_number("steps", optarg, 0, VD_AUDIT_STEPS_MAX, &a->steps);
    case VD_OPTION_CRUMBS:
        return vd_parse_number("crumbs", optarg, 0, VD_AUDIT_CRUMBS_MAX, &a->crumbs);
    case VD_OPTION_TIMEOUT: return vd_parse_number("timeout", optarg, 1, 86400, &a->patience_s);
    case VD_OPTION_LONGEST_STEP:
        return vd_parse_number("step-time-max", optarg, 1, 1000, &a->step_s_max);
    default: return vd_take_common(&vd_cmd_audit, o, &a->common, exit_now);
    }
}

static bool provider_fits(const vd_audit_arguments *a, int files) {
    if (files != 1 || !a->url || strlen(a->proof) > 1000) {
        fprintf(stderr, "verde: audit takes one job file and --provider URL\n");
        return false;
    }
    if (!a->beacon != !a->beacon_source || !a->beacon != (a->beacon_round < 0)) {
        fprintf(stderr, "verde: --beacon, --beacon-source and --beacon-round belong together\n");
        return false;
    }
    if (a->beacon && !vd_is_beacon_source(a->beacon_source)) {
        fprintf(stderr, "verde: --beacon-source must be 1 to %d printable ASCII characters\n",
                VD_BEACON_SOURCE_MAX);
        return false;
    }
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

static vd_exit audit_provider(int argc, char **argv) {
    vd_audit_arguments a = {.key_dir = "checker-keys", .proof = "fraud.json", VD_AUDIT_DEFAULTS};
    vd_hash root;
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = next_option(argc, argv, VD_AUDIT_OF_PROVIDER)) != -1;) {
        if (!take_provider_option(o, &a, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (!provider_fits(&a, argc - optind))
        return VD_EXIT_USAGE;
    a.job = argv[optind];
    return vd_audit_run(&a, &root);
}

/* ---- of answers ---- */

static bool take_answers_option(int o, vd_answers_arguments *a, bool *exit_now) {
    switch (o) {
    case VD_OPTION_RESULTS: a->dir = optarg; return true;
    case VD_OPTION_BEACON: a->beacon = optarg; return true;
    case VD_OPTION_BEACON_SOURCE: a->source = optarg; return true;
    case VD_OPTION_BEACON_ROUND:
        return vd_parse_number("beacon-round", optarg, 0, LONG_MAX, &a->round);
    case VD_OPTION_ANSWERS: return vd_parse_number("answers", optarg, 1, INT32_MAX, &a->count);
    case VD_OPTION_PROVIDER: a->url = optarg; return true;
    case VD_OPTION_KEY: a->key_dir = optarg; return true;
    case VD_OPTION_VERDICT: a->verdict = optarg; return true;
    case VD_OPTION_WORK: a->work = optarg; return true;
    case VD_OPTION_CACERT: a->ca = optarg; return true;
    case VD_OPTION_FORCE: a->force = true; return true;
    case VD_OPTION_TIMEOUT: return vd_parse_number("timeout", optarg, 1, 86400, &a->patience_s);
    case VD_OPTION_LONGEST_STEP:
        return vd_parse_number("step-time-max", optarg, 1, 1000, &a->step_s_max);
    case VD_OPTION_BATCH:
        return vd_parse_number("batch", optarg, 1, VD_BATCH_PROGRAMS_MAX, &a->together);
    default: return vd_take_common(&vd_cmd_audit, o, &a->common, exit_now);
    }
}

static bool answers_fit(const vd_answers_arguments *a, int files) {
    if (files != 1 || strlen(a->dir) > 900) {
        fprintf(stderr, "verde: audit --results DIR takes one job file\n");
        return false;
    }
    if (!a->beacon != !a->source || !a->beacon != (a->round < 0)) {
        fprintf(stderr, "verde: --beacon, --beacon-source and --beacon-round belong together\n");
        return false;
    }
    if (a->source && !vd_is_beacon_source(a->source)) {
        fprintf(stderr, "verde: --beacon-source must be 1 to %d printable ASCII characters\n",
                VD_BEACON_SOURCE_MAX);
        return false;
    }
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

static vd_exit audit_answers(int argc, char **argv) {
    vd_answers_arguments a = {.together = VD_ANSWERS_TOGETHER,
                              .round = -1,
                              .key_dir = "checker-keys",
                              .patience_s = VD_PATIENCE_S};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = next_option(argc, argv, VD_AUDIT_OF_ANSWERS)) != -1;) {
        if (!take_answers_option(o, &a, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (!answers_fit(&a, argc - optind))
        return VD_EXIT_USAGE;
    a.job = argv[optind];
    return vd_audit_answers(&a);
}

/* ---- the command ---- */

static bool has_option(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* Delivered answers, or a provider's run, if they are named; else one's own run. */
static vd_exit audit(int argc, char **argv) {
    return has_option(argc, argv, "--results")    ? audit_answers(argc, argv)
           : has_option(argc, argv, "--provider") ? audit_provider(argc, argv)
                                                  : audit_run(argc, argv);
}

const vd_command vd_cmd_audit = {
    "audit", "check a run, or answers, without a rival: one's own, or a provider's",
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
    "of the machine that computed it. docs/auditing.md tells how.\n\n"
    "  --intervals K    execute so many stretches, drawn at random (default 1). A stretch is one\n"
    "                   checkpoint interval, or with --keep from one kept state to the next\n"
    "  --all            execute the whole run\n"
    "  --seed N         draw the stretches from this number, to repeat an audit\n"
    "  --state FILE     keep in FILE which stretches were executed, and go on from there\n"
    "  --data DIR       where the run's data files are now, if they have moved\n\n"
    "Of a provider: has it sign its run root, draws steps that nobody could foresee, has it state\n"
    "what it did in them, and computes single elements of that. What is wrong ends as a proof of\n"
    "fraud by the provider's own signatures, which `verde verify` decides offline. Only what is\n"
    "drawn is looked at, and the report says how likely which cheat is found.\n\n"
    "  --provider URL   as `verde serve` or `verde provide` prints it, with its key\n"
    "  --crumbs N       elements that are drawn and computed (default 3000)\n"
    "  --steps M        steps in which they lie (default 8); also in each of these: nodes that "
    "read\n"
    "                   data, and nodes of one element, whole\n"
    "  --intervals K    execute K drawn checkpoint intervals again, from the provider's states, "
    "and\n"
    "                   compare; --steps 0: nothing else. Takes the job's data, memory and time\n"
    "  --all            execute all of the run, and compare; the same command goes on after a "
    "stop\n"
    "  --work DIR       where both lie meanwhile; it stays\n"
    "  --beacon FILE    public randomness: the line of FILE, or of standard input for -, which is\n"
    "                   waited for once the provider has signed; default: this checker draws\n"
    "  --beacon-source NAME, --beacon-round N\n"
    "                   which randomness it will be; the assignment names both\n"
    "  --proof FILE     where a proof of fraud goes (default: fraud.json); must not exist yet\n"
    "  --force          overwrite FILE, and forget an audit that was stopped, whose draw is kept "
    "in\n"
    "                   FILE.journal: without it the same command goes on with that one\n"
    "  --prompt KEY     of a job with prompts: the one whose run is audited\n"
    "  --key DIR        the checker's identity (default: checker-keys, made if absent)\n"
    "  --cacert FILE    certificates to trust, beside the key in the URL\n"
    "  --timeout S      seconds for an answer, beside three times what its computing takes by the\n"
    "                   provider's own measure (default 120)\n"
    "  --step-time-max S  seconds that a step counts for at most, whatever a provider says\n"
    "                   (default: by the size of the job)\n"
    "\nOf answers, by a job with `task: generate`, that lie in DIR/results.jsonl: computes each by "
    "one\n"
    "pass over its prompt and itself, which takes a ninth to a third of the generation, and "
    "compares\n"
    "all that the lines say, to the bit: tokens, log-probabilities, `stopped`, their order. With\n"
    "DIR/results.proof the lines are those of its job root, too. The states that this root commits "
    "to\n"
    "are not looked at.\n\n"
    "  --results DIR    as `verde delegate`, `verde fetch` or `verde run` leaves it\n"
    "  --answers N      check so many, drawn at random, or by --beacon (default: all)\n"
    "  --batch N        so many prompts in a pass, at most (default 8)\n"
    "  --verdict FILE   with --provider URL and --work DIR: a wrong answer goes on to a dispute. "
    "Its\n"
    "                   prompt is run here, into DIR, which is the rival; the verdict goes to "
    "FILE\n" VD_COMMON_HELP
    "\nExit codes: 0 all that was looked at is right; 9 one's own run, or an answer, differs; 6 a "
    "file\n"
    "of the run is damaged; 3 fraud is proven; 4 the provider gave no answer, or none that is "
    "signed,\n"
    "which fails the audit by the checker's word alone; 2 its first word is a refusal: of the job, "
    "or\n"
    "of --key.\n"
    "\nExamples:\n"
    "  verde audit run --intervals 3\n"
    "  verde audit run --all --state audit.txt --backend scalar\n"
    "  verde audit models/jobs/demo.yaml --provider https://a.example:8443#KEY\n"
    "  verde audit generate.yaml --results result\n" VD_EXIT_HELP,
    audit};
