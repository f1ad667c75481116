/* This file is `verde arbitrate`, which settles a dispute between providers. */
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/client/arbitrate.h"
#include "verde/tell/stop.h"

static vd_arbitrate_arguments given;

static vd_exit arbitrate(int argc, char **argv) {
    given = (vd_arbitrate_arguments){.key_dir = "referee-keys", .patience_s = VD_PATIENCE_S};
    vd_exit code;
    if (!vd_take_options(&vd_cmd_arbitrate, argc, argv, &code))
        return code;
    if (argc - optind != 1 || given.urls < 2 || !given.verdict || strlen(given.verdict) > 1000) {
        fprintf(stderr,
                "verde: arbitrate takes one job file, --provider URL twice or more often, and "
                "--verdict FILE\n");
        return VD_EXIT_USAGE;
    }
    given.job = argv[optind];
    return vd_arbitrate(&given);
}

static const vd_option options[] = {
    {"  --provider URL   as `verde serve` prints it: https://host:port#key; of a job with\n"
     "                   `rounding` the trainer's first, then its auditors'\n",
     given.url, vd_take_url, .least = 2, .most = VD_PARTIES_MAX, .count = &given.urls,
     .often = true},
    {"  --verdict FILE   where the verdict goes; must not exist yet\n", &given.verdict},
    {"  --force          overwrite FILE\n", &given.force},
    {"  --prompt KEY     of a job with prompts: the dispute is about this one alone, whose run\n"
     "                   each provider serves from its prompts/KEY; else it is about all of them\n",
     &given.prompt},
    {"  --key DIR        the referee's identity (default: referee-keys, made if absent)\n",
     &given.key_dir},
    {"  --cacert FILE    certificates to trust for URLs without a key\n", &given.ca},
    {"  --timeout S      seconds for an answer, beside three times what its computing takes by\n"
     "                   the provider's own measure (default 120)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true},
    {"  --step-time-max S  seconds that a step counts for at most, whatever a provider says "
     "(default:\n"
     "                   by the size of the job)\n",
     &given.step_s_max, .least = 1, .most = 1000},
    {"  --resume JOURNAL go on with a dispute that was interrupted, from FILE.journal beside its\n"
     "                   verdict: nothing that was answered is asked again\n",
     &given.resume},
    {"  --no-challenge   do not ask a convicted provider to run the job again and contest the "
     "claim\n"
     "                   left standing, which takes as long as the job; said when a dispute "
     "begins\n",
     &given.no_challenge},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_arbitrate = {
    "arbitrate",
    "settle a dispute between providers",
    "Usage: verde arbitrate JOB --provider URL --provider URL ... --verdict FILE [options]\n\n"
    "Asks 2 to 64 providers for the job's result. If two differ, finds the first step, node and\n"
    "element where they do, computes that element, and writes a signed verdict with all\n"
    "evidence. Of more than two, those with one result speak one after the other, until one\n"
    "result is left; disputes between different providers run at the same time.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde arbitrate models/jobs/demo.yaml --verdict verdict.json \\\n"
    "    --provider https://a.example:8443#KEY --provider "
    "https://b.example:8443#KEY\n" VD_EXIT_HELP,
    arbitrate};
