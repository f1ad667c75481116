#include <string.h>

#include "verde/cli/cli.h"
#include "verde/client/arbitrate.h"
#include "verde/tell/stop.h"

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
