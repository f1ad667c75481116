#include <string.h>

#include "repops/device.h"
#include "verde/cli/cli.h"

typedef struct {
    double samples_per_step, last_line;
    const char *samples; /* "tokens", "images" */
} printer;

/* On a terminal one line that changes; otherwise a plain line every two seconds. */
static bool progress(void *user, const vd_progress *p) {
    printer *print = user;
    bool last = p->step == p->steps, terminal = vd_is_terminal();
    double every = terminal ? 0.1 : 2.0, now = vd_seconds();
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

static void print_result(const vd_run_result *r, const vd_loaded *loaded, const vd_common *common) {
    char root[2 * VD_HASH_SIZE + 1], state[2 * VD_HASH_SIZE + 1];
    vd_hex(r->run_root.b, VD_HASH_SIZE, root);
    vd_hex(r->final_state.b, VD_HASH_SIZE, state);
    if (common->json) {
        vd_print_json(json_pack(
            "{ss ss sI sI sf so so ss ss si sI sI}", "run_root", root, "final_state_root", state,
            "steps", (json_int_t)r->steps, "resumed_at", (json_int_t)r->resumed_at, "seconds",
            r->seconds, "loss_first", loss_json(r->loss_first), "loss_last",
            loss_json(r->loss_last), "backend", ro_ctx_backend(loaded->ro), "device",
            ro_ctx_device(loaded->ro), "threads", ro_ctx_threads(loaded->ro), "peak_bytes",
            (json_int_t)vd_peak_bytes(), "device_peak_bytes", (json_int_t)ro_ctx_peak(loaded->ro)));
        return;
    }
    printf("loss         %.4f -> %.4f in %lld steps, %.1f s\n", (double)r->loss_first,
           (double)r->loss_last, (long long)r->steps, r->seconds);
    if (!ro_ctx_in_host_memory(loaded->ro))
        printf("device       %s, peak %.1f MB\n", ro_ctx_device(loaded->ro),
               1e-6 * (double)ro_ctx_peak(loaded->ro));
    printf("final state  %s\nrun root     %s\n", state, root);
}

static vd_status execute(const char *job, const char *dir, const char *fault,
                         const vd_common *common, vd_loaded *loaded, vd_err *err) {
    vd_run_result result;
    vd_status status = vd_load_job(job, loaded, err);
    if (status == VD_OK && fault)
        status = vd_fault_parse(fault, &loaded->program, &loaded->exec.fault, err);
    if (status == VD_OK)
        status = vd_load_backend(loaded, common, err);
    if (status == VD_OK)
        status = vd_make_dir(dir, err);
    if (status != VD_OK)
        return status;
    announce_fault(loaded);
    const vd_training *t = &loaded->job.training;
    const char *samples = vd_record_size(&t->model) ? "images" : "tokens";
    fprintf(stderr, "%s: %lld parameters, %lld steps of %lld %s, backend %s, %d threads\n", job,
            (long long)vd_model_parameters(&t->model), (long long)t->steps,
            (long long)(t->batch * t->sequence), samples, ro_ctx_backend(loaded->ro),
            ro_ctx_threads(loaded->ro));
    printer print = {.samples_per_step = (double)(t->batch * t->sequence), .samples = samples};
    vd_run_options options = {&loaded->exec, dir, fault, progress, &print};
    status = vd_run(&options, &result, err);
    if (status == VD_OK)
        status = vd_save_data(dir, loaded, err);
    if (status != VD_OK)
        return status;
    if (result.resumed_at)
        fprintf(stderr, "went on from the checkpoint at step %lld\n", (long long)result.resumed_at);
    print_result(&result, loaded, common);
    return VD_OK;
}

static vd_exit run(int argc, char **argv) {
    static const struct option options[] = {{"out", required_argument, NULL, 'o'},
                                            {"fault", required_argument, NULL, 'f'},
                                            VD_COMMON_OPTIONS};
    const char *dir = NULL, *fault = NULL;
    vd_common common = {0};
    bool exit_now = false;
    for (int o; (o = getopt_long(argc, argv, "o:", options, NULL)) != -1;) {
        if (o == 'o')
            dir = optarg;
        else if (o == 'f')
            fault = optarg;
        else if (!vd_take_common(&vd_cmd_run, o, &common, &exit_now))
            return VD_EXIT_USAGE;
        if (exit_now)
            return VD_EXIT_OK;
    }
    if (argc - optind != 1 || !dir) {
        fprintf(stderr, "verde: run takes one job file and --out DIR\n");
        return VD_EXIT_USAGE;
    }
    vd_loaded loaded = {0};
    vd_err err = {0};
    vd_status status = execute(argv[optind], dir, fault, &common, &loaded, &err);
    vd_loaded_free(&loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

const vd_command vd_cmd_run = {
    "run", "execute a job and commit to every checkpoint",
    "Usage: verde run JOB --out DIR [options]\n\n"
    "Executes the training job and writes checkpoints and their commitments to DIR. If DIR holds "
    "an\n"
    "unfinished run of the same job, goes on from its last whole checkpoint.\n\n"
    "  --out DIR        where the run goes\n"
    "  --fault KIND[@step[:node]]\n"
    "                   be dishonest on purpose, for tests and demonstrations: element, lr, skip,\n"
    "                   poison, seed, attr, weights, history; step -1 is initialisation, the node\n"
    "                   is a number or a name of `verde graph`\n" VD_COMMON_HELP "\nExamples:\n"
    "  verde run models/jobs/demo.yaml --out run\n"
    "  verde run models/jobs/toy.yaml --out liar --fault element@7\n" VD_EXIT_HELP,
    run};
