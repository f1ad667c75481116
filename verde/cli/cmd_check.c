/* This file is `verde check`, which hashes every byte of a run, a state or a model. */
#include "verde/cli/cli.h"
#include "verde/run/checks.h"
#include "verde/tell/stop.h"

static vd_common common;
static vd_check_options given;

static vd_exit check(int argc, char **argv) {
    given = (vd_check_options){.step = -1, .common = &common};
    vd_exit code;
    if (!vd_take_options(&vd_cmd_check, argc, argv, &code))
        return code;
    if (argc - optind != 1 || (given.referee && !given.verdict)) {
        fprintf(stderr,
                "verde: check takes one directory of a run, one state's file, or one exported "
                "model; --referee goes with --verdict\n");
        return VD_EXIT_USAGE;
    }
    given.path = argv[optind];
    if (given.step >= 0 && !vd_is_model(given.path)) {
        fprintf(stderr, "verde: --step goes with an exported model, a directory with proof.json\n");
        return VD_EXIT_USAGE;
    }
    return vd_check_path(&given);
}

static const vd_option options[] = {
    {"  --verdict FILE   verified first, as by `verde verify`: its signature, and the decision\n"
     "                   again from its evidence\n",
     &given.verdict},
    {"  --referee KEY    whose verdict it must be (hexadecimal); default: whoever signed it\n",
     &given.referee},
    {"  --data DIR       where the run's data files are now, if they have moved\n", &given.data},
    {"  --job JOB        also check that the run is of this job; its data and weights' manifest "
     "must\n"
     "                   be where it says\n",
     &given.job},
    {"  --step N         MODEL must be of the checkpoint after step N (default: the last one)\n",
     &given.step, .least = 0, .most = INT32_MAX},
    VD_COMMON_ROWS(common),
    {NULL}};

const vd_command vd_cmd_check = {
    "check",
    "hash a run, a state or a model; compare it with a verdict",
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
    "nothing and needs no network.\n\n",
    options,
    "\n"
    "Exit code 0: all fits. 6: something does not; one line names the file, what was expected\n"
    "and what was found. 5: MODEL holds rounded weights, of which nothing can be said. 1: a file\n"
    "cannot be read. 2: no run lies there, or wrong options.\n\n"
    "Examples:\n"
    "  verde check run\n"
    "  verde check run --verdict verdict.json --job models/jobs/demo.yaml\n"
    "  verde check tuned --verdict verdict.json\n"
    "  verde check delivered/state-4f0c... --verdict verdict.json\n" VD_EXIT_HELP,
    check};
