#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "repops/device.h"
#include "verde/cli/cli.h"
#include "verde/cli/export.h"
#include "verde/cli/stop.h"
#include "verde/job/profile.h"

typedef struct {
    double samples_per_step, last_line;
    const char *samples; /* "tokens", "images" */
    bool lost;           /* the loss is no number any more, and that was said */
} printer;

/* Says once at which step a run diverged. */
static void tell_divergence(printer *print, const vd_progress *p) {
    if (print->lost || p->loss - p->loss == 0)
        return;
    print->lost = true;
    fprintf(stderr, "%sstep %lld: the loss is %s\n", vd_is_terminal() ? "\r\033[K" : "",
            (long long)p->step, p->loss != p->loss ? "nan" : "infinite");
}

/* On a terminal one line that changes; otherwise a plain line every two seconds. */
static bool progress(void *user, const vd_progress *p) {
    printer *print = user;
    bool last = p->step == p->steps, terminal = vd_is_terminal();
    double every = terminal ? 0.1 : 2.0, now = vd_seconds();
    vd_stop_line("stopped after step %lld of %lld; `%s` goes on from the checkpoint at step %lld",
                 (long long)p->step, (long long)p->steps, vd_command_line(), (long long)p->saved);
    tell_divergence(print, p);
    if (!last && p->step > 1 && now - print->last_line < every)
        return true;
    print->last_line = now;
    double done = (double)(p->step - p->resumed_at);
    double rate = done / (p->seconds > 0 ? p->seconds : 1e-9);
    fprintf(stderr, "%sstep %lld/%lld  loss %.4f  %.0f %s/s  %.0f s left%s",
            terminal ? "\r\033[K" : "", (long long)p->step, (long long)p->steps, (double)p->loss,
            rate * print->samples_per_step, print->samples, (double)(p->steps - p->step) / rate,
            terminal && !last ? "" : "\n");
    fflush(stderr);
    return true;
}

static void announce_fault(const vd_loaded *loaded) {
    char text[160];
    if (loaded->exec.fault.kind == VD_FAULT_NONE)
        return;
    vd_fault_print(&loaded->exec.fault, &loaded->program, text, sizeof text);
    fprintf(stderr, "*** FAULT ON PURPOSE: %s. This run is dishonest; never use its result. ***\n",
            text);
}

/* A loss that is no number has no JSON number. */
static json_t *loss_json(float loss) {
    return loss - loss == 0 ? json_real((double)loss) : json_string(loss != loss ? "nan" : "inf");
}

/* What an evaluation arrived at is the only number of its last state. */
static vd_status read_mean(const char *dir, const vd_hash *state, float *mean, vd_err *err) {
    char path[1024];
    vd_buf bytes = {0};
    vd_store_state_path(path, dir, state);
    vd_status status = vd_read_file(path, sizeof *mean, &bytes, err);
    if (status == VD_OK && bytes.size == sizeof *mean) {
        vd_from_little(bytes.data, sizeof *mean, sizeof *mean);
        memcpy(mean, bytes.data, sizeof *mean);
    }
    vd_buf_free(&bytes);
    return status;
}

static void print_result(const vd_run_result *r, const vd_loaded *loaded, const vd_common *common,
                         bool rounded, const float *mean) {
    char root[2 * VD_HASH_SIZE + 1], state[2 * VD_HASH_SIZE + 1];
    vd_hex(r->run_root.b, VD_HASH_SIZE, root);
    vd_hex(r->final_state.b, VD_HASH_SIZE, state);
    if (common->json) {
        json_t *object = json_pack(
            "{ss ss sI sI sf so so ss ss si sI sI}", "run_root", root, "final_state_root", state,
            "steps", (json_int_t)r->steps, "resumed_at", (json_int_t)r->resumed_at, "seconds",
            r->seconds, "loss_first", loss_json(r->loss_first), "loss_last",
            loss_json(r->loss_last), "backend", ro_ctx_backend(loaded->ro), "device",
            ro_ctx_device(loaded->ro), "threads", ro_ctx_threads(loaded->ro), "peak_bytes",
            (json_int_t)vd_peak_bytes(), "device_peak_bytes", (json_int_t)ro_ctx_peak(loaded->ro));
        if (rounded)
            json_object_set_new(object, "rounded", vd_rounded_json(r));
        if (mean)
            json_object_set_new(object, "evaluation", loss_json(*mean));
        vd_print_json(object);
        return;
    }
    if (mean)
        printf("evaluation   %.6f, the mean loss of %lld batches, %.1f s\n", (double)*mean,
               (long long)r->steps, r->seconds);
    else
        printf("loss         %.4f -> %.4f in %lld steps, %.1f s\n", (double)r->loss_first,
               (double)r->loss_last, (long long)r->steps, r->seconds);
    if (!ro_ctx_in_host_memory(loaded->ro))
        printf("device       %s, peak %.1f MB\n", ro_ctx_device(loaded->ro),
               1e-6 * (double)ro_ctx_peak(loaded->ro));
    printf("final state  %s\nrun root     %s\n", state, root);
}

/* --backend log */
typedef struct {
    const char *role, *profile, *encoding, *thresholds, *trainer, *key, *trainer_key;
    long bits; /* 0: as the job says, or 32 */
    bool contest;
} log_options;

typedef struct {
    vd_run_rounding rounding;
    ro_profile profile;
    vd_thresholds thresholds;
    vd_key *key;
    vd_public_key trainer_key;
} log_role;

/* Takes the job's settings, which no option may contradict. */
static vd_status take_job(const log_options *o, const vd_program_rounding *job, log_role *out,
                          vd_err *err) {
    const char *encoding = job->encoding == VD_LOG_SYMBOLS ? "symbols" : "calls";
    if (o->bits && o->bits != job->bits)
        return vd_fail(err, VD_ERR_USAGE, "--bits is %ld, and the job's rounding.bits is %d",
                       o->bits, (int)job->bits);
    if (o->encoding && strcmp(o->encoding, encoding) != 0)
        return vd_fail(err, VD_ERR_USAGE, "--encoding is %s, and the job's rounding.encoding is %s",
                       o->encoding, encoding);
    if (o->thresholds)
        return vd_fail(err, VD_ERR_USAGE, "--thresholds are the job's, which has `rounding`");
    out->rounding.bits = job->bits;
    out->rounding.encoding = (vd_log_encoding)job->encoding;
    out->thresholds.bits = job->bits;
    memcpy(out->thresholds.of, job->threshold, sizeof job->threshold);
    out->rounding.thresholds = &out->thresholds;
    return VD_OK;
}

static vd_status take_encoding(const log_options *o, log_role *out, vd_err *err) {
    const char *encoding = o->encoding ? o->encoding : "calls";
    if (out->rounding.role == VD_AUDITOR)
        return o->bits || o->encoding || o->thresholds
                   ? vd_fail(err, VD_ERR_USAGE,
                             "--bits, --encoding and --thresholds are the trainer's: an auditor "
                             "takes them from its log")
                   : VD_OK;
    out->rounding.bits = o->bits ? (int32_t)o->bits : RO_ROUND_BITS_MAX;
    out->rounding.encoding = VD_LOG_CALLS;
    if (strcmp(encoding, "calls") == 0)
        return o->thresholds
                   ? vd_fail(err, VD_ERR_USAGE, "--thresholds belong to --encoding symbols")
                   : VD_OK;
    if (strcmp(encoding, "symbols") != 0)
        return vd_fail(err, VD_ERR_USAGE, "--encoding must be calls or symbols, got \"%s\"",
                       encoding);
    if (!o->thresholds)
        return vd_fail(err, VD_ERR_USAGE,
                       "--encoding symbols needs --thresholds FILE (verde calibrate makes it)");
    out->rounding.encoding = VD_LOG_SYMBOLS;
    out->rounding.thresholds = &out->thresholds;
    vd_status status = vd_thresholds_load(o->thresholds, &out->thresholds, err);
    if (status == VD_OK && out->thresholds.bits != out->rounding.bits)
        return vd_fail(err, VD_ERR_USAGE, "%s: thresholds for %d bits, and --bits is %d",
                       o->thresholds, (int)out->thresholds.bits, (int)out->rounding.bits);
    return status;
}

static vd_status take_keys(const log_options *o, log_role *out, vd_err *err) {
    const bool audits = out->rounding.role == VD_AUDITOR;
    if (audits ? o->key != NULL : o->trainer_key || o->contest)
        return vd_fail(err, VD_ERR_USAGE, "%s",
                       audits ? "--key is the trainer's"
                              : "--trainer-key and --contest are an "
                                "auditor's");
    out->rounding.contest = o->contest;
    if (o->trainer_key && !vd_unhex(o->trainer_key, out->trainer_key.b, VD_KEY_SIZE))
        return vd_fail(err, VD_ERR_USAGE,
                       "--trainer-key must be 64 lower-case hexadecimal digits, got \"%.80s\"",
                       o->trainer_key);
    out->rounding.trainer_key = o->trainer_key ? &out->trainer_key : NULL;
    vd_status status = o->key ? vd_load_key(o->key, &out->key, err) : VD_OK;
    out->rounding.key = out->key;
    return status;
}

static vd_status take_role(const log_options *o, const vd_program_rounding *job, log_role *out,
                           vd_err *err) {
    const char *role = o->role ? o->role : "trainer";
    const bool audits = strcmp(role, "auditor") == 0;
    *out = (log_role){.rounding = {.role = audits ? VD_AUDITOR : VD_TRAINER}};
    if (!audits && strcmp(role, "trainer") != 0)
        return vd_fail(err, VD_ERR_USAGE, "--role must be trainer or auditor, got \"%s\"", role);
    if (audits != (o->trainer != NULL))
        return vd_fail(err, VD_ERR_USAGE, "--follow DIR and --role auditor go together");
    out->rounding.trainer = o->trainer;
    vd_status status = vd_profile_find(o->profile ? o->profile : "sim-wide", &out->profile, err);
    out->rounding.profile = &out->profile;
    if (status == VD_OK)
        status = take_keys(o, out, err);
    if (status == VD_OK)
        status = job->bits ? take_job(o, job, out, err) : take_encoding(o, out, err);
    return status;
}

/* Prints what was rounded in this execution; for a resumed run, since it was resumed. */
static void print_rounded(const vd_run_rounding *rounding, const vd_run_result *r) {
    const vd_rounded_count *c = &r->rounded;
    char size[32];
    vd_print_size(r->log_bytes, size);
    printf("rounded      %llu elements%s, %llu %s in the log, %llu of them escapes, %s\n",
           (unsigned long long)c->elements, r->resumed_at ? " since then" : "",
           (unsigned long long)c->decided,
           r->encoding == VD_LOG_SYMBOLS ? "directions" : "close calls",
           (unsigned long long)c->escapes, size);
    if (rounding->role == VD_AUDITOR)
        printf("corrected    %llu elements, as the log says\n", (unsigned long long)c->corrected);
    if (c->refused)
        printf("refused      %llu corrections that are not possible from the inputs here\n",
               (unsigned long long)c->refused);
}

static void print_rounding(const vd_run_rounding *rounding, const vd_run_result *r) {
    const bool executed = r->resumed_at < r->steps;
    if (executed)
        print_rounded(rounding, r);
    if (r->difference.found)
        printf("contested    %s\n", r->difference.text);
    if (executed)
        vd_print_rounded(r);
}

typedef struct {
    const char *dir, *fault;
    long keep; /* 0: all checkpoints */
    log_options log;
    vd_common common;
} run_options;

static bool take_option(run_options *o, int option, bool *exit_now) {
    switch (option) {
    case 'o': o->dir = optarg; return true;
    case 'f': o->fault = optarg; return true;
    case 'k': return vd_parse_number("keep", optarg, VD_KEEP_MIN, INT32_MAX, &o->keep);
    case 'R': o->log.role = optarg; return true;
    case 'P': o->log.profile = optarg; return true;
    case 'E': o->log.encoding = optarg; return true;
    case 'T': o->log.thresholds = optarg; return true;
    case 'F': o->log.trainer = optarg; return true;
    case 'K': o->log.key = optarg; return true;
    case 'U': o->log.trainer_key = optarg; return true;
    case 'C': o->log.contest = true; return true;
    case 'B':
        return vd_parse_number("bits", optarg, RO_ROUND_BITS_MIN, RO_ROUND_BITS_MAX, &o->log.bits);
    default: return vd_take_common(&vd_cmd_run, option, &o->common, exit_now);
    }
}

static bool has_log_options(const log_options *l) {
    return l->role || l->profile || l->encoding || l->thresholds || l->trainer || l->bits ||
           l->key || l->trainer_key || l->contest;
}

static vd_status load(const char *job, const char *fault, const vd_common *common,
                      vd_loaded *loaded, vd_err *err) {
    vd_status status = vd_load_job(job, loaded, err);
    if (status == VD_OK)
        status = vd_need_weights(loaded, err);
    if (status == VD_OK && fault)
        status = vd_fault_parse(fault, &loaded->program, &loaded->exec.fault, err);
    return status == VD_OK ? vd_load_backend(loaded, common, err) : status;
}

static void announce(const char *job, const vd_loaded *loaded) {
    const vd_training *t = &loaded->job.training;
    const int64_t trained = vd_model_trained(&t->model);
    char frozen[64] = "";
    if (!t->evaluates && trained < vd_model_parameters(&t->model))
        snprintf(frozen, sizeof frozen, ", of which %lld are trained", (long long)trained);
    announce_fault(loaded);
    if (loaded->start.present)
        fprintf(stderr, "goes on from step %lld of the run in %s: %s\n",
                (long long)loaded->start.step, loaded->job.start.run,
                t->evaluates    ? "its weights are evaluated"
                : t->start_bare ? "weights alone"
                                : "weights and what the optimizer keeps");
    fprintf(stderr, "%s: %lld parameters%s, %lld steps of %lld %s, backend %s, %d thread%s\n", job,
            (long long)vd_model_parameters(&t->model), frozen, (long long)t->steps,
            (long long)(t->batch * t->sequence), vd_record_size(&t->model) ? "images" : "tokens",
            ro_ctx_backend(loaded->ro), ro_ctx_threads(loaded->ro),
            ro_ctx_threads(loaded->ro) == 1 ? "" : "s");
}

/* Two runs into one directory would mix their files. File systems without locks go without. */
static vd_status take_dir(const char *dir, int *fd, vd_err *err) {
    vd_status status = vd_make_dir(dir, err);
    *fd = status == VD_OK ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        status = vd_fail(err, VD_ERR_LOCAL, "%s: another process is running there", dir);
    return status;
}

/* Says what checkpoints take, and warns if the file system has less for those to come. One more
 * than is kept lies there while it is written. */
static void tell_disk(const char *dir, const vd_program *p, long keep) {
    const uint64_t leaves = vd_run_leaves(p), bytes = vd_state_bytes(p);
    const uint64_t kept = keep && (uint64_t)keep < leaves ? (uint64_t)keep + 1 : leaves;
    struct statvfs disk;
    vd_run_log log = {0};
    char each[32], all[32], left[32];
    const bool resumes = vd_store_load_log(dir, &log, NULL) == VD_OK;
    const uint64_t there = resumes ? vd_run_log_kept_count(&log) : 0;
    const double needs = there < kept ? (double)(kept - there) * (double)bytes : 0;
    vd_run_log_free(&log);
    vd_print_size(bytes, each);
    vd_print_size(kept * bytes, all);
    fprintf(stderr, "%llu checkpoint%s of %s: %s on disk\n", (unsigned long long)kept,
            kept == 1 ? "" : "s", each, all);
    if (statvfs(dir, &disk) != 0)
        return;
    const double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    vd_print_size((uint64_t)free_bytes, left);
    if (needs > free_bytes)
        fprintf(stderr,
                "warning: %s has %s left, which is less; --keep N keeps at most N checkpoints\n",
                dir, left);
}

static vd_status execute(const char *job, const char *dir, const run_options *o,
                         const vd_run_rounding *rounding, vd_loaded *loaded,
                         vd_evaluation *evaluation, vd_err *err) {
    const char *fault = o->fault;
    const vd_common *common = &o->common;
    vd_run_result result;
    const vd_training *t = &loaded->job.training;
    announce(job, loaded);
    tell_disk(dir, &loaded->program, o->keep);
    printer print = {.samples_per_step = (double)(t->batch * t->sequence),
                     .samples = vd_record_size(&t->model) ? "images" : "tokens"};
    vd_run_options options = {&loaded->exec,
                              dir,
                              fault,
                              progress,
                              &print,
                              rounding,
                              {print.samples, t->batch * t->sequence},
                              (int32_t)o->keep,
                              evaluation->trained ? vd_evaluate : NULL,
                              evaluation};
    vd_stop_line("stopped before a step was done; `%s` goes on", vd_command_line());
    vd_status status = vd_run(&options, &result, err);
    if (status == VD_OK)
        status = vd_save_data(dir, loaded, err);
    if (status == VD_OK)
        status = vd_config_save(dir, loaded, err);
    float mean = 0;
    if (status == VD_OK && t->evaluates)
        status = read_mean(dir, &result.final_state, &mean, err);
    if (status != VD_OK)
        return status;
    if (result.resumed_at == result.steps)
        fprintf(stderr, "%s holds this run, finished: nothing was executed\n", dir);
    else if (result.resumed_at)
        fprintf(stderr, "went on from the checkpoint at step %lld\n", (long long)result.resumed_at);
    print_result(&result, loaded, common, rounding != NULL, t->evaluates ? &mean : NULL);
    if (rounding && !common->json)
        print_rounding(rounding, &result);
    return VD_OK;
}

/* "--backend log" runs free kernels on the best instruction set. */
static vd_status start(const char *job, run_options *o, vd_loaded *loaded, vd_err *err) {
    static log_role role;
    static vd_evaluation evaluation;
    int fd = -1; /* of the directory, locked */
    const bool logs = o->common.backend && strcmp(o->common.backend, "log") == 0;
    if (!logs && has_log_options(&o->log))
        return vd_fail(err, VD_ERR_USAGE,
                       "--role, --profile, --bits, --encoding, --thresholds, --follow, --key, "
                       "--trainer-key and --contest belong to --backend log");
    if (logs)
        o->common.backend = NULL;
    vd_status status = load(job, o->fault, &o->common, loaded, err);
    if (status == VD_OK && logs)
        status = take_role(&o->log, &loaded->program.rounding, &role, err);
    if (status == VD_OK && logs)
        status = vd_load_device(loaded, &role.profile, err);
    if (status == VD_OK)
        status = take_dir(o->dir, &fd, err);
    if (status == VD_OK)
        status = vd_evaluation_open(loaded, o->dir, &evaluation, err);
    if (status == VD_OK)
        status = execute(job, o->dir, o, logs ? &role.rounding : NULL, loaded, &evaluation, err);
    vd_evaluation_close(&evaluation);
    vd_key_destroy(role.key);
    if (fd >= 0)
        close(fd);
    return status;
}

static vd_exit run(int argc, char **argv) {
    static const struct option options[] = {{"out", required_argument, NULL, 'o'},
                                            {"fault", required_argument, NULL, 'f'},
                                            {"keep", required_argument, NULL, 'k'},
                                            {"role", required_argument, NULL, 'R'},
                                            {"profile", required_argument, NULL, 'P'},
                                            {"bits", required_argument, NULL, 'B'},
                                            {"encoding", required_argument, NULL, 'E'},
                                            {"thresholds", required_argument, NULL, 'T'},
                                            {"follow", required_argument, NULL, 'F'},
                                            {"key", required_argument, NULL, 'K'},
                                            {"trainer-key", required_argument, NULL, 'U'},
                                            {"contest", no_argument, NULL, 'C'},
                                            VD_COMMON_OPTIONS};
    run_options given = {0};
    bool exit_now = false;
    vd_stop_command(argc, argv);
    for (int o; (o = getopt_long(argc, argv, "ho:", options, NULL)) != -1;) {
        if (!take_option(&given, o, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || !given.dir) {
        fprintf(stderr, "verde: run takes one job file and --out DIR\n");
        return VD_EXIT_USAGE;
    }
    vd_loaded loaded = {0};
    vd_err err = {0};
    vd_status status = start(argv[optind], &given, &loaded, &err);
    vd_loaded_free(&loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

const vd_command vd_cmd_run = {
    "run", "execute a job and commit to every checkpoint",
    "Usage: verde run JOB --out DIR [options]\n\n"
    "Executes the training job and writes checkpoints and their commitments to DIR. If DIR holds "
    "an\n"
    "unfinished run of the same job, goes on from its last whole checkpoint. Ctrl-C, SIGTERM and\n"
    "even SIGKILL lose no more than the steps since then. A job with `weights: {run: RUN, root: "
    "S}`\n"
    "begins with a state of another run, which `verde inspect RUN` lists; with `task: evaluate` "
    "it\n"
    "computes that state's mean loss on the job's data.\n\n"
    "  --out DIR        where the run goes\n"
    "  --keep N         keep at most N checkpoints, 2 or more, evenly apart, the first and the "
    "last\n"
    "                   among them (default: all). A dispute about a step then runs again from "
    "the\n"
    "                   nearest one before it. Given once, it holds for the run\n"
    "  --fault KIND[@step[:node]]\n"
    "                   be dishonest on purpose, for tests and demonstrations: element, lr, skip,\n"
    "                   poison, seed, attr, weights, history; step -1 is initialisation, the node\n"
    "                   is a number or a name of `verde graph`; with logs also steer, "
    "drop-record,\n"
    "                   forge-record, forge-both, two-logs\n" VD_COMMON_HELP
    "\nOn free kernels (any order of additions, binary64, rounded), --backend log:\n"
    "  --role NAME      trainer (default) logs what it rounds; auditor follows a trainer's log\n"
    "  --profile NAME   device that is simulated: sim-wide (default), sim-narrow, sim-deep,\n"
    "                   sim-plain, or a .yaml file with lanes, split, pairwise, ...; or cuda: the\n"
    "                   first CUDA device computes, in its own order, and the CPU rounds\n"
    "  --follow DIR     auditor: the trainer's run\n"
    "  --key DIR        trainer: signs its log at each checkpoint, as `verde serve` will sign\n"
    "  --trainer-key KEY  auditor: refuses a log that this key (hexadecimal) has not signed\n"
    "  --contest        auditor: where the log cannot be followed, goes on by itself, to have the\n"
    "                   first difference judged by `verde arbitrate`; default: the run ends there\n"
    "A job with `rounding` says the rest itself:\n"
    "  --bits N         to round to, 16..32 (default 32)\n"
    "  --encoding NAME  calls (default): roundings that another order could change; symbols: one\n"
    "                   symbol for every element, as published\n"
    "  --thresholds FILE\n"
    "                   of symbols, made by `verde calibrate`\n"
    "\nExamples:\n"
    "  verde run models/jobs/demo.yaml --out run\n"
    "  verde run models/jobs/toy.yaml --out liar --fault element@7\n"
    "  verde run models/jobs/toy.yaml --out a --backend log --profile sim-wide\n"
    "  verde run models/jobs/toy.yaml --out b --backend log --profile sim-deep --role auditor "
    "--follow a\n" VD_EXIT_HELP,
    run};
