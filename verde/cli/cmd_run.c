/* This file is `verde run`, which executes a job into a directory. */
#include <string.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/cli/run_command.h"
#include "verde/exec/batch.h"
#include "verde/protocol/limits.h"
#include "verde/run/dry_run.h"
#include "verde/run/run_items.h"

static vd_status load(const char *job, const char *fault, const vd_common *common,
                      vd_loaded *loaded, vd_err *err) {
    vd_status status = vd_load_prompts(job, loaded, err);
    if (status == VD_OK)
        status = vd_need_weights(loaded, err);
    if (status == VD_OK && fault && !vd_job_has_prompts(&loaded->job))
        status = vd_fault_parse(fault, &loaded->program, &loaded->exec.fault, err);
    return status == VD_OK ? vd_load_backend(loaded, common, err) : status;
}

/* Refuses --batch where it has no effect: the user probably meant another job. */
static vd_status check_batch(const char *job, const vd_run_arguments *o, const vd_loaded *loaded,
                             vd_err *err) {
    if (o->batch && loaded->job.packed)
        return vd_fail(err, VD_ERR_USAGE, "--batch: how large batches are, %s says itself", job);
    return o->batch && !vd_job_has_prompts(&loaded->job)
               ? vd_fail(err, VD_ERR_USAGE, "--batch: %s has no prompts", job)
               : VD_OK;
}

static vd_status join(const char *job, const vd_loaded *loaded, bool logs,
                      vd_run_processes *processes, vd_err *err) {
    const bool prompts = vd_job_has_prompts(&loaded->job);
    if (vd_mpi_processes() > 1 && (logs || prompts))
        return vd_fail(err, VD_ERR_USAGE, "%s: a run %s is one process's, and MPI started %u", job,
                       prompts ? "of prompts" : "with --backend log", vd_mpi_processes());
    return vd_run_join(loaded, processes, err);
}

static vd_status follow(const vd_loaded *loaded, vd_run_processes *processes, vd_err *err) {
    vd_exec exec = loaded->exec;
    exec.part = vd_run_part(processes);
    return vd_member_follow(&processes->member, &exec, err);
}

static vd_status run_dry(const char *job, const vd_run_arguments *o, vd_err *err) {
    vd_loaded loaded = {0};
    const vd_dry_run_options options = {.job = job,
                                        .dir = o->dir,
                                        .keep = o->keep,
                                        .together = o->batch ? (uint64_t)o->batch : VD_TOGETHER,
                                        .json = o->common.json};
    const bool logs = o->common.backend && strcmp(o->common.backend, "log") == 0;
    if (logs || vd_has_log_options(&o->log))
        return vd_fail(err, VD_ERR_USAGE, "--dry-run: a run with --backend log is not timed");
    vd_status status = load(job, NULL, &o->common, &loaded, err);
    if (status == VD_OK)
        status = check_batch(job, o, &loaded, err);
    if (status == VD_OK)
        status = vd_dry_run(&options, &loaded, err);
    vd_loaded_free(&loaded);
    return status;
}

/* Loads the job and runs it. --backend log names no instruction set: free kernels use the best. */
static vd_status start(const char *job, vd_run_arguments *o, vd_loaded *loaded,
                       vd_run_processes *processes, vd_err *err) {
    static vd_log_role role;
    static vd_run_guard guard;
    const bool logs = o->common.backend && strcmp(o->common.backend, "log") == 0;
    if (!logs && vd_has_log_options(&o->log))
        return vd_fail(err, VD_ERR_USAGE,
                       "--role, --profile, --bits, --encoding, --thresholds, --follow, --key, "
                       "--trainer-key and --contest belong to --backend log");
    if (logs)
        o->common.backend = NULL;
    vd_status status = load(job, o->fault, &o->common, loaded, err);
    if (status == VD_OK)
        status = check_batch(job, o, loaded, err);
    if (status == VD_OK && logs && vd_job_has_prompts(&loaded->job))
        status =
            vd_fail(err, VD_ERR_USAGE, "--backend log: %s has prompts, which have no logs", job);
    if (status == VD_OK && logs)
        status = vd_take_role(&o->log, &loaded->program.rounding, &role, err);
    if (status == VD_OK && logs)
        status = vd_load_device(loaded, &role.profile, err);
    if (status == VD_OK)
        status = vd_run_guard_open(&guard, o->guard, logs, o->common.json, loaded, err);
    if (status == VD_OK)
        status = join(job, loaded, logs, processes, err);
    if (status == VD_OK)
        status = vd_run_follows(processes)
                     ? follow(loaded, processes, err)
                     : vd_lead_run(job, o, logs ? &role.backend : NULL, processes, loaded, err);
    vd_run_guard_close(&guard, loaded);
    vd_key_destroy(role.key);
    return status;
}

static vd_run_arguments given;

static vd_exit run(int argc, char **argv) {
    vd_exit code;
    if (!vd_take_options(&vd_cmd_run, argc, argv, &code))
        return code;
    if (argc - optind != 1 || !(given.dir || given.dry)) {
        fprintf(stderr, "verde: run takes one job file, and --out DIR or --dry-run\n");
        return VD_EXIT_USAGE;
    }
    vd_loaded loaded = {0};
    vd_err err = {0};
    if (given.dry)
        return run_dry(argv[optind], &given, &err) == VD_OK ? VD_EXIT_OK : vd_report(&err);
    static vd_run_processes processes;
    vd_status status = start(argv[optind], &given, &loaded, &processes, &err);
    code = status == VD_OK ? VD_EXIT_OK : vd_report(&err);
    vd_run_leave(&processes, status == VD_OK);
    vd_loaded_free(&loaded);
    return code;
}

static const vd_option options[] = {
    {"  --out DIR        where the run goes\n", &given.dir},
    {"  --dry-run        tell steps, memory, disk and, by some steps that are timed, the time that "
     "the\n"
     "                   run would take; writes nothing. The run itself is refused if its state "
     "is\n"
     "                   more than this machine's memory, or its checkpoints more than the disk\n",
     &given.dry},
    {"  --keep N         keep at most N checkpoints, 2 or more, evenly apart, the first and the "
     "last\n"
     "                   among them (default: all). A dispute about a step then runs again from "
     "the\n"
     "                   nearest one before it; refused if that would take longer than a referee\n"
     "                   waits. Given once, it holds for the run\n",
     &given.keep, .least = VD_KEEP_MIN, .most = INT32_MAX},
    {"  --guard          check products while they are computed: what does not fit is\n"
     "                   computed again once, told with its place, and stated in run.json; the\n"
     "                   second time the run ends (docs/guard.md)\n",
     &given.guard},
    {"  --batch N        of a job with prompts: so many run together (default 8). More are faster\n"
     "                   and take more memory; no bit depends on it\n",
     &given.batch, .least = 1, .most = VD_BATCH_PROGRAMS_MAX},
    {"  --fault KIND[@step[:node]]\n"
     "                   be dishonest on purpose, for tests and demonstrations: element, lr, "
     "skip,\n"
     "                   poison, seed, attr, weights, history, input; step -1 is initialisation, "
     "the\n"
     "                   node is a number or a name of `verde graph`; field@SEED errs as hardware\n"
     "                   does, where and how the seed says; sum flips a bit that --guard finds; of "
     "a job with prompts in that of a\n"
     "                   key, KEY/KIND..., or else in the first; with logs also steer,\n"
     "                   drop-record, forge-record, forge-both, two-logs\n",
     &given.fault},
    VD_COMMON_ROWS(given.common),
    {"\n"
     "On free kernels (any order of additions, binary64, rounded), --backend log:\n"},
    {"  --role NAME      trainer (default) logs what it rounds; auditor follows a trainer's log\n",
     &given.log.role},
    {"  --profile NAME   device that is simulated: sim-wide (default), sim-narrow, sim-deep,\n"
     "                   sim-plain, or a .yaml file with lanes, split, pairwise, ...; or cuda: "
     "the\n"
     "                   first CUDA device computes, in its own order, and the CPU rounds\n",
     &given.log.profile},
    {"  --follow DIR     auditor: the trainer's run\n", &given.log.trainer},
    {"  --key DIR        trainer: signs its log at each checkpoint, as `verde serve` will sign\n",
     &given.log.key},
    {"  --trainer-key KEY  auditor: refuses a log that this key (hexadecimal) has not signed\n",
     &given.log.trainer_key},
    {"  --contest        auditor: where the log cannot be followed, goes on by itself, to have "
     "the\n"
     "                   first difference judged by `verde arbitrate`; default: the run ends "
     "there\n",
     &given.log.contest},
    {"A job with `rounding` says the rest itself:\n"},
    {"  --bits N         to round to, 16..32 (default 32)\n", &given.log.bits,
     .least = RO_ROUND_BITS_MIN, .most = RO_ROUND_BITS_MAX},
    {"  --encoding NAME  calls (default): roundings that another order could change; symbols: one\n"
     "                   symbol for every element, as published\n",
     &given.log.encoding},
    {"  --thresholds FILE\n"
     "                   of symbols, made by `verde calibrate`\n",
     &given.log.thresholds},
    {NULL}};

const vd_command vd_cmd_run = {
    "run",
    "execute a job and commit to every checkpoint",
    "Usage: verde run JOB --out DIR [options]\n"
    "       verde run JOB --dry-run [options]\n\n"
    "Executes the training job and writes checkpoints and their commitments to DIR. If DIR holds "
    "an\n"
    "unfinished run of the same job, goes on from its last whole checkpoint. Ctrl-C, SIGTERM and\n"
    "even SIGKILL lose no more than the steps since then. JOB is a file, as in docs/jobs.md,\n"
    "or a folder with a program, or with a pack of them. A job with\n"
    "`weights: {run: RUN, root: S}` begins with a state of another run, which `verde inspect RUN`\n"
    "lists; with `task: evaluate` it computes that state's mean loss on the job's data. A job "
    "with\n"
    "prompts (`task: generate` or `score`) has a run of each in DIR/prompts/KEY, and what the "
    "model\n"
    "says in DIR/results.jsonl; a pack of answers likewise, and the answers in DIR/answers.\n\n"
    "With --json there is a line for each step, or prompt, that is done; the last line is the one\n"
    "that all commands have.\n\n"
    "Processes that MPI starts (mpirun, srun) share a run, at most as many as a step has\n"
    "micro-batches. All read JOB and its files, the first one alone reads and writes DIR; a run\n"
    "that was stopped may go on with another number. Needs libverde_mpi.so.1 (`make mpi`).\n\n",
    options,
    "\n"
    "A job is a YAML file: docs/jobs.md has all its keys, models/jobs examples.\n\n"
    "Examples:\n"
    "  verde run models/jobs/demo.yaml --dry-run\n"
    "  verde run models/jobs/demo.yaml --out run\n"
    "  verde run models/jobs/toy.yaml --out liar --fault element@7\n"
    "  mpirun -n 4 verde run models/jobs/demo.yaml --out run   # the same bits, by 4 processes\n"
    "  verde run models/jobs/toy.yaml --out a --backend log --profile sim-wide\n"
    "  verde run models/jobs/toy.yaml --out b --backend log --profile sim-deep --role auditor "
    "--follow a\n" VD_EXIT_HELP,
    run};
