#include <string.h>

#include "verde/cli/cli.h"
#include "verde/delegate/delegation.h"
#include "verde/tell/stop.h"

enum { DEADLINE_MAX_S = 366 * 86400 };

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
    return vd_delegate(&d);
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
