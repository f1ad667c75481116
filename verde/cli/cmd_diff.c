/* This file is `verde diff`, which finds where two runs, programs or models part. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "verde/audit/diff.h"
#include "verde/cli/cli.h"
#include "verde/protocol/arbiter.h"
#include "verde/run/checks.h"
#include "verde/tell/stop.h"
#include "verde/weights/weights.h"

typedef enum { A_RUN, A_JOB_OF_PROMPTS, A_MODEL, A_PROGRAM, A_PROVIDER } compared;
static const char *const names[] = {"a run", "a run of prompts", "a model", "a program",
                                    "a provider"};

static bool ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

static bool is_folder_of_model(const char *dir) {
    return vd_is_model(dir) || vd_lies_in(dir, VD_WEIGHTS_SINGLE) ||
           vd_lies_in(dir, VD_WEIGHTS_INDEX) || vd_lies_in(dir, VD_WEIGHTS_ADAPTER);
}

static vd_status find_kind(const char *path, compared *out, vd_err *err) {
    struct stat info;
    if (vd_is_remote(path)) {
        *out = A_PROVIDER;
        return VD_OK;
    }
    if (strlen(path) > 900)
        return vd_fail(err, VD_ERR_USAGE, "%.60s...: path longer than 900 bytes", path);
    if (stat(path, &info) != 0)
        return vd_fail(err, VD_ERR_USAGE, "%s: no such file or directory", path);
    if (!S_ISDIR(info.st_mode))
        *out = ends_with(path, ".safetensors") ? A_MODEL : A_PROGRAM;
    else if (vd_lies_in(path, "run.json"))
        *out = vd_items_are_in(path) ? A_JOB_OF_PROMPTS : A_RUN;
    else if (is_folder_of_model(path))
        *out = A_MODEL;
    else if (vd_lies_in(path, "program"))
        *out = A_PROGRAM;
    else
        return vd_fail(err, VD_ERR_USAGE, "%s: holds no run, no model and no program", path);
    return VD_OK;
}

static vd_status diff_any(const vd_diff_options *o, bool *differs, vd_err *err) {
    static vd_status (*const compare[])(const vd_diff_options *, bool *, vd_err *) = {
        [A_RUN] = vd_diff_runs,
        [A_JOB_OF_PROMPTS] = vd_diff_items,
        [A_MODEL] = vd_diff_models,
        [A_PROGRAM] = vd_diff_programs,
    };
    compared a, b;
    vd_status status = find_kind(o->path[0], &a, err);
    if (status == VD_OK)
        status = find_kind(o->path[1], &b, err);
    if (status == VD_OK && a != b && (a == A_PROVIDER || b == A_PROVIDER)) {
        const compared own = a == A_PROVIDER ? b : a;
        if (own == A_RUN)
            return vd_diff_runs(o, differs, err);
        return vd_fail(err, VD_ERR_USAGE, "%s is %s; with a provider a run is compared%s",
                       o->path[a == A_PROVIDER], names[own],
                       own == A_JOB_OF_PROMPTS ? ", of prompts one: RUN/prompts/KEY" : "");
    }
    if (status == VD_OK && a == A_PROVIDER)
        return vd_fail(err, VD_ERR_USAGE, "one of the two must be a run of your own");
    if (status == VD_OK && a != b)
        status = vd_fail(err, VD_ERR_USAGE, "%s is %s, and %s is %s; expected two of one kind",
                         o->path[0], names[a], o->path[1], names[b]);
    if (status == VD_OK && a != A_RUN && a != A_JOB_OF_PROMPTS && (o->no_run || o->data))
        status = vd_fail(err, VD_ERR_USAGE, "--no-run and --data go with two runs");
    return status == VD_OK ? compare[a](o, differs, err) : status;
}

/* --backend is "NAME" for both sides, or "NAME,NAME". */
static bool take_backends(vd_diff_options *o, char both[64]) {
    if (!o->common.backend)
        return true;
    const int size = snprintf(both, 64, "%s", o->common.backend);
    char *comma = size < 64 ? strchr(both, ',') : NULL;
    o->backend[0] = o->backend[1] = both;
    if (comma) {
        *comma = 0;
        o->backend[1] = comma + 1;
    }
    if (size < 64 && *o->backend[0] && *o->backend[1])
        return true;
    fprintf(stderr, "verde: --backend must be one name, or two with a comma, got \"%s\"\n",
            o->common.backend);
    return false;
}

static vd_diff_options given;

static vd_exit diff(int argc, char **argv) {
    given = (vd_diff_options){.key_dir = "checker-keys", .patience_s = VD_PATIENCE_S};
    char backends[64];
    vd_exit code;
    bool differs = false;
    vd_err err = {0};
    if (!vd_take_options(&vd_cmd_diff, argc, argv, &code))
        return code;
    if (argc - optind != 2) {
        fprintf(stderr,
                "verde: diff takes two runs, two models or two programs, got %d argument%s\n",
                argc - optind, vd_plural((uint64_t)(argc - optind)));
        return VD_EXIT_USAGE;
    }
    if (!take_backends(&given, backends))
        return VD_EXIT_USAGE;
    given.path[0] = argv[optind];
    given.path[1] = argv[optind + 1];
    vd_stop_line("stopped before a difference was found, which says nothing; `%s` begins again",
                 vd_command_line());
    const vd_status status = diff_any(&given, &differs, &err);
    if (status != VD_OK)
        return vd_report(&err);
    return differs ? VD_EXIT_DIFFERS : VD_EXIT_OK;
}

static const vd_option options[] = {
    {"  --no-run         execute nothing: the checkpoint that differs, and the tensor in it\n",
     &given.no_run},
    {"  --data DIR       where the runs' data files are now, if they have moved\n", &given.data},
    {"  --key DIR        who asks a provider (default: checker-keys, made if absent)\n",
     &given.key_dir},
    {"  --cacert FILE    certificates to trust, beside the key in its URL\n", &given.ca},
    {"  --timeout S      seconds for its answer, beside three times what it computes (default "
     "120)\n",
     &given.patience_s, .least = 1, .most = 86400, .often = true},
    {"  --backend NAME   cpu, scalar, avx2, avx512, neon or cuda:0, to execute both runs on, or\n"
     "                   NAME,NAME for A and B (default: what each says that it ran on)\n",
     VD_BACKEND_ROW(given.common)},
    {"  --threads N      worker threads (default: one per core)\n", VD_THREADS_ROW(given.common)},
    {"  --json           one JSON object on standard output at the end\n", &given.common.json},
    {"  --help, -h       this text\n"},
    {NULL}};

const vd_command vd_cmd_diff = {
    "diff",
    "find where two runs, models or programs part",
    "Usage: verde diff A B [options]\n\n"
    "A and B are two runs (folders that `verde run` wrote), two models (folders or files of\n"
    "safetensors), or two programs (job files, captured jobs, or files `program`). Of two runs\n"
    "the first divergence is told: step, node, operator and element, both values with their\n"
    "distance in units of the last place (ULP), whether each input of the node was equal, what\n"
    "the operator's definition makes of them, and what fits. Runs of two programs are compared\n"
    "node by node too, by names, and how the programs differ is listed. Each run is executed\n"
    "again for one checkpoint interval from its last state that is equal, and the step in\n"
    "question twice more. One of two runs may be a provider's, named by its URL: it is asked for\n"
    "what differs alone, and executes of its run what is here called for. docs/diff.md explains\n"
    "every line.\n\n",
    options,
    "\n"
    "Exit code 0: equal to the bit. 9: not.\n\n"
    "Examples:\n"
    "  verde diff run-monday run-tuesday\n"
    "  verde diff run-a run-b --backend scalar,avx2\n"
    "  verde diff run https://a.example:8443#KEY\n"
    "  verde diff models/jobs/toy.yaml mine.yaml\n" VD_EXIT_HELP,
    diff};
