#include "verde/cli/cli.h"
#include "verde/run/checks.h"
#include "verde/tell/stop.h"

static bool take_option(vd_check_options *a, vd_common *common, int option, bool *exit_now) {
    switch (option) {
    case 'v': a->verdict = optarg; return true;
    case 'r': a->referee = optarg; return true;
    case 'J': a->job = optarg; return true;
    case 'D': a->data = optarg; return true;
    case 's': return vd_parse_number("step", optarg, 0, INT32_MAX, &a->step);
    default: return vd_take_common(&vd_cmd_check, option, common, exit_now);
    }
}

static vd_exit check(int argc, char **argv) {
    static const struct option options[] = {
        {"verdict", required_argument, NULL, 'v'}, {"referee", required_argument, NULL, 'r'},
        {"job", required_argument, NULL, 'J'},     {"data", required_argument, NULL, 'D'},
        {"step", required_argument, NULL, 's'},    VD_COMMON_OPTIONS};
    vd_common common = {0};
    vd_check_options a = {.step = -1, .common = &common};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = vd_next_option(argc, argv, "h", options, "")) != -1;) {
        if (!take_option(&a, &common, o, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || (a.referee && !a.verdict)) {
        fprintf(stderr,
                "verde: check takes one directory of a run, one state's file, or one exported "
                "model; --referee goes with --verdict\n");
        return VD_EXIT_USAGE;
    }
    a.path = argv[optind];
    if (a.step >= 0 && !vd_is_model(a.path)) {
        fprintf(stderr, "verde: --step goes with an exported model, a directory with proof.json\n");
        return VD_EXIT_USAGE;
    }
    return vd_check_path(&a);
}

const vd_command vd_cmd_check = {
    "check", "hash a run, a state or a model; compare it with a verdict",
    "Usage: verde check DIR   [--verdict FILE] [options]\n"
    "       verde check FILE  [--verdict FILE] [options]\n"
    "       verde check MODEL [--verdict FILE] [options]\n\n"
    "Hashes every byte of every state of the run in DIR, and of its rounding logs and data, and\n"
    "compares with run.json, whose hashes give the run root. With --verdict also says whether "
    "this\n"
    "is the run that the verdict accepts. FILE is one state, such as trained weights that were\n"
    "delivered, under any name; run.json and program of its run must lie beside it, and prove "
    "that\n"
    "it is a state of that run. MODEL is a directory that `verde export` wrote, with safetensors\n"
    "files and proof.json, which lead to the run root. In the folder of a job with prompts, all\n"
    "runs, results.jsonl and the job root are checked; in a folder with results that were\n"
    "downloaded, each line of results.jsonl, by results.proof, which needs --job. Executes\n"
    "nothing and needs no network.\n\n"
    "  --verdict FILE   verified first, as by `verde verify`: its signature, and the decision\n"
    "                   again from its evidence\n"
    "  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n"
    "  --data DIR       where the run's data files are now, if they have moved\n"
    "  --job JOB        also check that the run is of this job; its data and weights' manifest "
    "must\n"
    "                   be where it says\n"
    "  --step N         MODEL must be of the checkpoint after step N (default: the last "
    "one)\n" VD_COMMON_HELP
    "\nExit code 0: all fits. 6: something does not; one line names the file, what was expected\n"
    "and what was found. 5: MODEL holds rounded weights, of which nothing can be said. 1: a file\n"
    "cannot be read. 2: no run lies there, or wrong options.\n"
    "\nExamples:\n"
    "  verde check run\n"
    "  verde check run --verdict verdict.json --job models/jobs/demo.yaml\n"
    "  verde check tuned --verdict verdict.json\n"
    "  verde check delivered/state-4f0c... --verdict verdict.json\n" VD_EXIT_HELP,
    check};
