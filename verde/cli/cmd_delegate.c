/* This file is `verde delegate`, which hands a job to daemons and fetches what is accepted. */
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/delegate/delegation.h"
#include "verde/tell/stop.h"

enum { DEADLINE_MAX_S = 366 * 86400 };

static vd_delegate_options given;

static vd_exit delegate(int argc, char **argv) {
    given = (vd_delegate_options){.patience_s = 120, .question_s = VD_PATIENCE_S};
    vd_exit code;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_delegate, argc, argv, &code))
        return code;
    if (argc - optind != 1 ||
        (!given.dry && (given.urls < (given.audit ? 1 : 2) || !given.out || !given.key_dir))) {
        fprintf(stderr, "verde: delegate takes one job file, --provider URL twice or more, --key "
                        "DIR and --out DIR; or --provider URL once and --audit; or --dry-run "
                        "alone\n");
        return VD_EXIT_USAGE;
    }
    if (given.audit && given.urls > 1) {
        fprintf(stderr, "verde: --audit is of one provider: of more, each is checked by the "
                        "others\n");
        return VD_EXIT_USAGE;
    }
    given.job = argv[optind];
    static vd_delegation d;
    d = (vd_delegation){.o = &given, .err = &err};
    return vd_delegate(&d);
}

static const vd_option options[] = {
    {"  --provider URL   as `verde provide` prints it, with its key; two to 16\n", given.url,
     vd_take_url, .most = VD_DOWNLOAD_PROVIDERS_MAX, .count = &given.urls, .often = true},
    {"  --audit LIST     there is one provider only, which is audited as by `verde audit`: "
     "crumbs=N,\n"
     "                   steps=M, intervals=K, or all; of a list such as intervals=2,crumbs=1000 "
     "the\n"
     "                   rest is as there. A proof of fraud is OUT/fraud.json. Of a job with\n"
     "                   `task: generate`: answers, all that were delivered by one pass each, or\n"
     "                   answers=N; a wrong one is disputed, and the verdict is OUT/verdict.json\n",
     &given.audit},
    {"  --key DIR        the client's identity, made if absent. Providers enrol its key.pub, and\n"
     "                   it signs the verdict, as the referee's\n",
     &given.key_dir},
    {"  --out DIR        made if it is not there\n", &given.out},
    {"  --dry-run        ask nobody: tell steps, memory and disk of each provider, what is "
     "uploaded,\n"
     "                   and the time that this machine would take, by some steps that are timed\n",
     &given.dry},
    {"  --force          overwrite a model in DIR, once all is there\n", &given.force},
    {"  --timeout S      seconds of trouble after which a provider is given up (default: 120)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true},
    {"  --deadline S     whoever is not done S seconds after the start is not waited for "
     "(default:\n"
     "                   whoever takes four times as long as the second one that is done, and\n"
     "                   longer than the job takes on a slow machine)\n",
     &given.deadline_s, .least = 1, .most = DEADLINE_MAX_S},
    {"  --step-time-max S  seconds that a step counts for at most in a dispute, whatever a\n"
     "                   provider says (default: by the size of the job)\n",
     &given.step_s_max, .least = 1, .most = 1000},
    {"  --no-challenge   do not ask a convicted provider to run the job again\n",
     &given.no_challenge},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_delegate = {
    "delegate",
    "hand a job to providers; get a result that is checked",
    "Usage: verde delegate JOB --provider URL --provider URL [...] --key DIR --out DIR [options]\n"
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
    "what is downloaded in OUT/partial or OUT/results.part.\n\n",
    options,
    "\n"
    "Exit codes of `verde arbitrate`: with 3, 4 or 7 there is a result, too, unless a line says\n"
    "that none is accepted. 5: fewer than two providers are left, or nothing is accepted.\n\n"
    "Example:\n"
    "  verde delegate models/jobs/demo.yaml --key client --out result \\\n"
    "    --provider https://a.example:8443#KEY --provider "
    "https://b.example:8443#KEY\n" VD_EXIT_HELP,
    delegate};
