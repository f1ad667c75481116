/* The job, and the ways to train it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/determinism/determinism.h"

/* ---- the job ---- */

static bool is_full(void) {
    return strcmp(bench.size, "full") == 0;
}

static void default_to(long *option, long value) {
    if (*option == 0)
        *option = value;
}

/* Counts the elements of parameters: the leaves of the layout before the first moment. */
static int64_t count_weights(const vd_program *p) {
    int64_t weights = 0;
    for (uint32_t i = 0; i < p->leaf_count; i++) {
        const char *dot = strrchr(p->leaf[i].name, '.');
        if (dot && strcmp(dot, ".m") == 0)
            break;
        weights += ro_shape_numel(&p->leaf[i].shape);
    }
    return weights;
}

/* Returns "AMD EPYC, 2 cores", where the system tells the processor's name. */
static const char *find_machine(void) {
    static char text[160];
    char line[256], cpu[128] = "a processor that does not tell its name";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strstr(line, ": ");
        if (strncmp(line, "model name", 10) != 0 || !value)
            continue;
        snprintf(cpu, sizeof cpu, "%.*s", (int)strcspn(value + 2, "\n"), value + 2);
        break;
    }
    if (file)
        fclose(file);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(text, sizeof text, "%s, %ld core%s", cpu, cores, cores == 1 ? "" : "s");
    return text;
}

void open_job(void) {
    vd_err err = {0};
    bool opened;
    bench.machine = find_machine();
    default_to(&bench.threads, sysconf(_SC_NPROCESSORS_ONLN));
    default_to(&bench.steps, is_full() ? 5 : 20);
    default_to(&bench.interval, is_full() ? 1 : 10);
    default_to(&bench.calibration, is_full() ? 1 : 4);
    const vd_products fp32 = vd_products_alike(0);
    if (strcmp(bench.model, "gpt2") == 0) {
        const vd_optimizer adamw = {.lr = 6e-4f,
                                    .min_lr = 6e-5f,
                                    .beta1 = 0.9f,
                                    .beta2 = 0.95f,
                                    .eps = 1e-8f,
                                    .weight_decay = 0.1f,
                                    .clip_norm = 1,
                                    .schedule = RO_LR_COSINE,
                                    .warmup = 10};
        vd_model model = is_full() ? workload_gpt2(12, 12, 768) : workload_gpt2(2, 4, 64);
        if (!is_full())
            model.vocab = 512;
        default_to(&bench.batch, is_full() ? 8 : 4);
        default_to(&bench.sequence, is_full() ? 64 : 32);
        opened =
            workload_open(&bench.work, &model, &adamw, bench.batch, bench.sequence, 1, fp32, &err);
    } else {
        const vd_optimizer sgd = {.lr = 0.05f,
                                  .min_lr = 0,
                                  .weight_decay = 5e-4f,
                                  .schedule = RO_LR_COSINE,
                                  .warmup = 5,
                                  .kind = VD_OPTIMIZER_SGD,
                                  .momentum = 0.9f};
        vd_model model = workload_resnet50();
        if (!is_full())
            model = (vd_model){.kind = VD_MODEL_RESNET,
                               .vocab = 10,
                               .channels = 8,
                               .image = 16,
                               .stages = 3,
                               .blocks = {1, 1, 1}};
        default_to(&bench.batch, is_full() ? 64 : 16);
        opened = workload_open(&bench.work, &model, &sgd, bench.batch, 1, 1, fp32, &err);
    }
    if (!opened)
        die(err.text);
    bench.weights = count_weights(&bench.work.program);
}

/* ---- the ways to train ---- */

static bool wanted(char kind) {
    return strchr(bench.ways, kind) != NULL;
}

static int add(variant_kind kind, const ro_profile *profile, const char *name) {
    if (bench.variants == VARIANTS_MAX)
        die("too many ways: name fewer profiles");
    variant *v = &bench.variant[bench.variants];
    *v = (variant){.kind = kind,
                   .profile = profile,
                   .encoding = VD_LOG_CALLS,
                   .threads = (int)bench.threads,
                   .result = calloc((size_t)bench.steps + 1, sizeof *v->result),
                   .distance = calloc((size_t)bench.steps + 1, sizeof *v->distance),
                   .of = shared(RO_OP_END * sizeof *v->of)};
    snprintf(v->name, sizeof v->name, "%s%s%s", name, profile ? ", " : "",
             profile ? profile->name : "");
    if (!v->result || !v->distance)
        die("out of memory");
    for (long s = 0; s <= bench.steps; s++)
        v->distance[s] = NAN;
    return bench.variants++;
}

static void add_logs(int trainer, int auditors, vd_log_encoding encoding, const char *label) {
    char name[64];
    snprintf(name, sizeof name, "(3) trainer, %s", label);
    bench.symbols |= encoding == VD_LOG_SYMBOLS;
    const int t = add(LOG_TRAINER, bench.profile[trainer], name);
    bench.variant[t].encoding = encoding;
    for (int i = 0; i < auditors; i++) {
        if (i == trainer)
            continue;
        snprintf(name, sizeof name, "(4) auditor, %s", label);
        const int a = add(LOG_AUDITOR, bench.profile[i], name);
        bench.variant[a].encoding = encoding;
        bench.variant[a].trainer = t;
    }
}

/* Returns whether this machine has the backend. A process of its own tries it, since a CUDA device
 * that is open in this process is of no use to its children. */
static bool is_here(const char *backend) {
    ro_ctx *probe;
    const ro_options options = {.size = sizeof options, .threads = 1, .backend = backend};
    int status;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(ro_ctx_create(&options, &probe) == RO_OK ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void add_fixed(const char *isa, int threads) {
    char name[64];
    if (!is_here(isa))
        return;
    snprintf(name, sizeof name, "(5) order fixed, %s, %d thread%s", isa, threads,
             threads == 1 ? "" : "s");
    const int v = add(ORDER_FIXED, NULL, name);
    bench.variant[v].isa = isa;
    bench.variant[v].threads = threads;
}

static void choose_profiles(void) {
    if (bench.profiles == 0)
        for (const ro_profile *p; bench.profiles < (is_full() ? 2 : PROFILES_MAX) &&
                                  (p = ro_profile_at(bench.profiles));)
            bench.profile[bench.profiles++] = p;
    if (bench.profiles < 2)
        die("give at least two profiles: an auditor needs another device than the trainer's");
}

void add_ways(void) {
    choose_profiles();
    const int count = bench.profiles, all = bench.pairs ? count : 1;
    for (int i = 0; i < (wanted('1') ? count : 1); i++)
        add(FREE_F32, bench.profile[i], "(1) free f32");
    bench.base[1] = bench.variants;
    for (int i = 0; i < (wanted('2') ? count : 1); i++)
        add(FREE_F64, bench.profile[i], "(2) free f64");
    const int followed = wanted('4') ? count : 0;
    for (int i = 0; i < all && wanted('3'); i++)
        add_logs(i, followed, VD_LOG_CALLS, "close calls");
    for (int i = 0; i < (is_full() ? 1 : all) && wanted('3') && !wanted('s'); i++)
        add_logs(i, is_full() && followed ? 2 : followed, VD_LOG_SYMBOLS, "symbols");
    static const char *const isa[] = {"avx512", "avx2", "neon", "scalar"};
    for (int i = 0; i < (is_full() ? 3 : 4) && wanted('5'); i++)
        for (int threads = 2; threads >= 1; threads--)
            add_fixed(isa[i], threads);
    if (wanted('5'))
        add_fixed("cuda:0", 1);
}
