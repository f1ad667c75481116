#include <string.h>

#include "verde/cli/audit.h"
#include "verde/cli/audit_answers.h"
#include "verde/cli/audit_provider.h"
#include "verde/cli/recheck.h"

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

static void refuse(int letter, vd_audit_form form) {
    const char *between = "";
    fprintf(stderr, "verde audit: --%s is of ", name_of(letter));
    for (int i = 0; i < FORMS; i++)
        if (strchr(forms[i].letters, letter)) {
            fprintf(stderr, "%s`%s`", between, forms[i].usage);
            between = " and ";
        }
    fprintf(stderr, ", and this is `%s`\n", forms[form].usage);
}

int vd_audit_option(int argc, char **argv, vd_audit_form form) {
    const int letter = vd_next_option(argc, argv, "h", options, "");
    if (letter <= 0 || strchr("tbjh?", letter) || strchr(forms[form].letters, letter))
        return letter;
    refuse(letter, form);
    return '?';
}

static bool has_option(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, strlen(name)) == 0)
            return true;
    return false;
}

/* Delivered answers, or a provider's run, if they are named; else one's own run. */
static vd_exit audit(int argc, char **argv) {
    return has_option(argc, argv, "--results")    ? vd_audit_answers_command(argc, argv)
           : has_option(argc, argv, "--provider") ? vd_audit_provider(argc, argv)
                                                  : vd_recheck_command(argc, argv);
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
