/* This file is `verde run`, which executes a job into a directory. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "verde/cli/cli.h"
#include "verde/cli/run_command.h"
#include "verde/exec/batch.h"
#include "verde/load/export.h"
#include "verde/protocol/limits.h"
#include "verde/protocol/pace.h"
#include "verde/run/dry_run.h"
#include "verde/run/evaluation.h"
#include "verde/run/out_dir.h"
#include "verde/run/run_items.h"
#include "verde/run/run_one.h"
#include "verde/run/run_processes.h"
#include "verde/tell/stop.h"

typedef struct {
    const char *dir, *fault;
    long keep;  /* 0: all checkpoints */
    long batch; /* prompts that run together; 0: nothing was said */
    bool guard;
    bool dry; /* tell what it would take, and run nothing */
    vd_log_options log;
    vd_common common;
} run_options;

static vd_status load(const char *job, const char *fault, const vd_common *common,
                      vd_loaded *loaded, vd_err *err) {
    vd_status status = vd_load_prompts(job, loaded, err);
    if (status == VD_OK)
        status = vd_need_weights(loaded, err);
    if (status == VD_OK && fault && !vd_job_has_prompts(&loaded->job))
        status = vd_fault_parse(fault, &loaded->program, &loaded->exec.fault, err);
    return status == VD_OK ? vd_load_backend(loaded, common, err) : status;
}

/* Two runs into one directory would mix their files. File systems without locks go without. */
static vd_status take_dir(const char *dir, int *fd, uint32_t *made, vd_err *err) {
    vd_status status = vd_open_run_dir(dir, made, err);
    *fd = status == VD_OK ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s: another process is running there", dir);
    return status;
}

/* What an evaluation arrived at are the only numbers of its last state. */
static vd_status read_score(const char *dir, const vd_hash *state, vd_score *out, vd_err *err) {
    char path[1024];
    vd_buf bytes = {0};
    float number[2] = {0};
    vd_store_state_path(path, dir, state);
    vd_status status = vd_read_file(path, sizeof number, &bytes, err);
    if (status == VD_OK && bytes.size) {
        vd_from_little(bytes.data, bytes.size, sizeof *number);
        memcpy(number, bytes.data, bytes.size);
    }
    *out = (vd_score){number[0], number[1], bytes.size == sizeof number};
    vd_buf_free(&bytes);
    return status;
}

static vd_status execute(const char *job, const char *dir, const run_options *o,
                         const vd_run_backend *backend, const vd_run_processes *processes,
                         vd_loaded *loaded, vd_evaluation *evaluation, vd_err *err) {
    const char *fault = o->fault;
    const vd_common *common = &o->common;
    const vd_training *t = &loaded->job.training;
    vd_announce_run(job, loaded);
    vd_status status = vd_check_memory(job, loaded, err);
    if (status == VD_OK)
        status = vd_check_disk(job, dir, &loaded->program, o->keep, err);
    if (status != VD_OK)
        return status;
    vd_tell_disk(dir, &loaded->program, o->keep);
    vd_run_printer print = {.samples_per_step = (double)(t->batch * t->sequence),
                            .samples = vd_samples_name(&loaded->job),
                            .json = common->json};
    vd_exec exec = loaded->exec;
    exec.part = vd_run_part(processes);
    vd_one_run run = {.loaded = loaded};
    run.options = (vd_run_options){
        .exec = &exec,
        .dir = dir,
        .fault = fault,
        .progress = vd_tell_progress,
        .user = &print,
        .backend = backend,
        .team = exec.part ? &processes->lead : NULL,
        .samples = {loaded->job.program ? NULL : print.samples, t->batch * t->sequence},
        .keep = (int32_t)o->keep,
        .dispute_s = 2 * VD_REACH_S,
        .evaluate = evaluation->trained ? vd_evaluate : NULL,
        .evaluation = evaluation};
    vd_stop_line("stopped before a step was done; `%s` goes on", vd_command_line());
    status = vd_run_one(&run, err);
    const vd_run_result *result = &run.result;
    if (status == VD_OK)
        status = vd_config_save(dir, loaded, err);
    vd_score score;
    if (status == VD_OK && t->evaluates)
        status = read_score(dir, &result->final_state, &score, err);
    if (status != VD_OK)
        return status;
    if (result->resumed_at == result->steps)
        fprintf(stderr, "%s holds this run, finished: nothing was executed\n", dir);
    else if (result->resumed_at)
        fprintf(stderr, "went on from the checkpoint at step %lld\n",
                (long long)result->resumed_at);
    vd_print_result(result, loaded, common, backend, t->evaluates ? &score : NULL);
    if (backend && !common->json)
        vd_print_rounded(backend, result);
    return VD_OK;
}

static vd_status run_prompts(const char *job, const run_options *o, vd_loaded *loaded,
                             vd_err *err) {
    const uint32_t together = o->batch ? (uint32_t)o->batch : VD_TOGETHER;
    const vd_prompt_options options = {job, o->dir, o->fault, together, o->common};
    if (o->keep)
        return vd_fail(err, VD_ERR_USAGE, "--keep: %s has prompts, which keep what they need", job);
    return vd_run_prompts(&options, loaded, err);
}

/* --batch is of no use elsewhere: a job that is not meant would be hidden. */
static vd_status check_batch(const char *job, const run_options *o, const vd_loaded *loaded,
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

static vd_status run_dry(const char *job, const run_options *o, vd_err *err) {
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

/* Does the work of the process that writes the directory. */
static vd_status lead(const char *job, const run_options *o, const vd_run_backend *backend,
                      const vd_run_processes *processes, vd_loaded *loaded, vd_err *err) {
    static vd_evaluation evaluation;
    int fd = -1; /* of the directory, locked */
    uint32_t made = 0;
    vd_status status = take_dir(o->dir, &fd, &made, err);
    const bool prompts = status == VD_OK && vd_job_has_prompts(&loaded->job);
    if (prompts)
        status = run_prompts(job, o, loaded, err);
    if (status == VD_OK && !prompts)
        status = vd_evaluation_open(loaded, o->dir, &evaluation, err);
    if (status == VD_OK && !prompts)
        status = execute(job, o->dir, o, backend, processes, loaded, &evaluation, err);
    vd_evaluation_close(&evaluation);
    if (status != VD_OK)
        vd_drop_dirs(o->dir, made); /* a refused run leaves nothing; one that began, its files */
    if (fd >= 0)
        close(fd);
    return status;
}

/* "--backend log" runs free kernels on the best instruction set. */
static vd_status start(const char *job, run_options *o, vd_loaded *loaded,
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
                     : lead(job, o, logs ? &role.backend : NULL, processes, loaded, err);
    vd_run_guard_close(&guard, loaded);
    vd_key_destroy(role.key);
    return status;
}

static run_options given;

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
