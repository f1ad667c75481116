/* The same training job under free binary32, free binary64, rounding logs (trainer and auditors),
 * and the order-fixed kernels: interleaved step by step, each way in a process of its own. Writes a
 * table, a CSV file, a JSON file and a page with plots. See usage(). */
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/determinism/determinism.h"
#include "verde/exec/calibrate.h"

static benchmark bench;
static child children[VARIANTS_MAX];

static void die(const char *what) {
    fprintf(stderr, "determinism: %s\n", what);
    exit(1);
}

/* Shared with children. */
static void *shared(size_t size) {
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

/* ---- options ---- */

static void usage(FILE *to) {
    fputs("Usage: determinism [--model gpt2|resnet50] [--size small|full] [--steps N]\n"
          "                   [--profiles A,B,...] [--pairs] [--bits N] [--threads N]\n"
          "                   [--batch N] [--sequence N] [--out DIR]\n"
          "Trains one job in every way and compares time, memory, logs and states. Profiles stand\n"
          "for devices and are simulated; default: the first two (full) or all (small).\n"
          "--pairs: an auditor on every profile for a trainer on every profile. --bits: to round "
          "to,\n"
          "default 32. --out: where table.txt, steps.csv, result.json and page.html go, default\n"
          "build/determinism.\n"
          "Example: determinism --model gpt2 --size small --steps 100 --pairs\n",
          to);
    exit(to == stdout ? 0 : 2);
}

static long number(const char *text, long low, long high) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (*text == 0 || *end != 0 || value < low || value > high) {
        fprintf(stderr, "determinism: expected %ld..%ld, got \"%s\"\n", low, high, text);
        exit(2);
    }
    return value;
}

static int profiles_of(char *list, const ro_profile **out) {
    int count = 0;
    for (char *name = list ? strtok(list, ",") : NULL; name; name = strtok(NULL, ",")) {
        if (count == 8 || !(out[count++] = ro_profile_by_name(name))) {
            fprintf(stderr, "determinism: no profile \"%s\"; there are", name);
            for (int i = 0; ro_profile_at(i); i++)
                fprintf(stderr, " %s", ro_profile_at(i)->name);
            fputc('\n', stderr);
            exit(2);
        }
    }
    return count;
}

static char *parse(int argc, char **argv) {
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'},    {"size", required_argument, NULL, 's'},
        {"steps", required_argument, NULL, 'n'},    {"profiles", required_argument, NULL, 'p'},
        {"pairs", no_argument, NULL, 'a'},          {"bits", required_argument, NULL, 'b'},
        {"threads", required_argument, NULL, 't'},  {"batch", required_argument, NULL, 'B'},
        {"sequence", required_argument, NULL, 'T'}, {"out", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    char *profiles = NULL;
    bench = (benchmark){.model = "gpt2", .size = "small", .out = "build/determinism", .bits = 32};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'm': bench.model = optarg; break;
        case 's': bench.size = optarg; break;
        case 'n': bench.steps = number(optarg, 1, STEPS_MAX - 1); break;
        case 'p': profiles = optarg; break;
        case 'a': bench.pairs = true; break;
        case 'b': bench.bits = (int32_t)number(optarg, 16, 32); break;
        case 't': bench.threads = number(optarg, 0, 1024); break;
        case 'B': bench.batch = number(optarg, 1, 1024); break;
        case 'T': bench.sequence = number(optarg, 1, 1024); break;
        case 'o': bench.out = optarg; break;
        default: usage(o == 'h' ? stdout : stderr);
        }
    }
    const bool model = !strcmp(bench.model, "gpt2") || !strcmp(bench.model, "resnet50");
    const bool size = !strcmp(bench.size, "small") || !strcmp(bench.size, "full");
    if (optind != argc || !model || !size)
        usage(stderr);
    return profiles;
}

/* ---- the job ---- */

static bool is_full(void) {
    return strcmp(bench.size, "full") == 0;
}

static void default_to(long *option, long value) {
    if (*option == 0)
        *option = value;
}

static void open_job(void) {
    vd_err err = {0};
    bool opened;
    default_to(&bench.steps, is_full() ? 5 : 20);
    if (strcmp(bench.model, "gpt2") == 0) {
        const vd_optimizer adamw = {6e-4f, 6e-5f, 0.9f, 0.95f, 1e-8f, 0.1f, 1, RO_LR_COSINE, 10};
        vd_model model = is_full() ? workload_gpt2(12, 12, 768) : workload_gpt2(2, 4, 64);
        if (!is_full())
            model.vocab = 512;
        default_to(&bench.batch, is_full() ? 8 : 4);
        default_to(&bench.sequence, is_full() ? 64 : 32);
        opened = workload_open(&bench.work, &model, &adamw, bench.batch, bench.sequence, 1, &err);
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
        opened = workload_open(&bench.work, &model, &sgd, bench.batch, 1, 1, &err);
    }
    if (!opened)
        die(err.text);
}

/* Parameters are the first leaves of the layout: up to the first moment. */
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

/* ---- the ways to train ---- */

static int add(variant_kind kind, const ro_profile *profile, const char *name) {
    if (bench.variants == VARIANTS_MAX)
        die("too many variants: name fewer profiles");
    variant *v = &bench.variant[bench.variants];
    *v = (variant){.kind = kind,
                   .profile = profile,
                   .encoding = VD_LOG_CALLS,
                   .threads = (int)bench.threads,
                   .result = calloc((size_t)bench.steps + 1, sizeof *v->result),
                   .distance = calloc((size_t)bench.steps + 1, sizeof *v->distance)};
    snprintf(v->name, sizeof v->name, "%s%s%s", name, profile ? ", " : "",
             profile ? profile->name : "");
    if (!v->result || !v->distance)
        die("out of memory");
    if (kind == FREE_F32 && !(v->weights = shared((size_t)bench.weights * sizeof(float))))
        die("out of memory");
    return bench.variants++;
}

static void add_logs(const ro_profile *const *profile, int count, int trainer,
                     vd_log_encoding encoding, const char *label) {
    char name[64];
    snprintf(name, sizeof name, "(3) trainer, %s", label);
    const int t = add(LOG_TRAINER, profile[trainer], name);
    bench.variant[t].encoding = encoding;
    for (int i = 0; i < count; i++) {
        if (i == trainer)
            continue;
        snprintf(name, sizeof name, "(4) auditor, %s", label);
        const int a = add(LOG_AUDITOR, profile[i], name);
        bench.variant[a].encoding = encoding;
        bench.variant[a].trainer = t;
    }
}

static void add_fixed(const char *isa, int threads) {
    char name[64];
    ro_ctx *probe;
    const ro_options options = {.threads = 1, .backend = isa};
    if (ro_ctx_create(&options, &probe) != RO_OK) /* this processor has it not */
        return;
    ro_ctx_destroy(probe);
    snprintf(name, sizeof name, "(5) order fixed, %s, %d thread%s", isa, threads,
             threads == 1 ? "" : "s");
    const int v = add(ORDER_FIXED, NULL, name);
    bench.variant[v].isa = isa;
    bench.variant[v].threads = threads;
}

static void add_variants(char *list) {
    const ro_profile *profile[8];
    int count = profiles_of(list, profile);
    if (count == 0)
        for (const ro_profile *p; count < (is_full() ? 2 : 8) && (p = ro_profile_at(count));)
            profile[count++] = p;
    if (count < 2)
        die("give at least two profiles: an auditor needs another device than the trainer's");
    for (int i = 0; i < count; i++)
        add(FREE_F32, profile[i], "(1) free f32");
    for (int i = 0; i < (is_full() ? 1 : count); i++)
        add(FREE_F64, profile[i], "(2) free f64");
    for (int i = 0; i < (bench.pairs ? count : 1); i++)
        add_logs(profile, count, i, VD_LOG_CALLS, "close calls");
    add_logs(profile, 2, 0, VD_LOG_SYMBOLS, "symbols");
    static const char *const isa[] = {"avx512", "avx2", "neon", "scalar"};
    for (int i = 0; i < (is_full() ? 3 : 4); i++)
        for (int threads = 2; threads >= 1; threads--)
            add_fixed(isa[i], threads);
}

/* ---- thresholds of the symbols, in a process of its own ---- */

static void calibrate(const ro_profile *a, const ro_profile *b) {
    vd_thresholds *found = shared(sizeof *found);
    if (!found)
        die("out of memory");
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        static vd_calibration c;
        vd_err err = {0};
        const ro_options options = {.threads = (int)bench.threads};
        vd_exec exec = {.program = &bench.work.program, .data = {bench.work.data}};
        if (ro_ctx_create(&options, &exec.ro) != RO_OK ||
            vd_calibrate(&exec, a, b, bench.bits, 1, NULL, NULL, &c, &err) != VD_OK)
            die(err.text);
        *found = c.thresholds;
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die("calibration failed");
    bench.thresholds = *found;
}

/* ---- running ---- */

static void measure_distance(variant *v, const variant *base, long step) {
    double sum = 0;
    for (int64_t i = 0; i < bench.weights; i++) {
        const double d = (double)v->weights[i] - (double)base->weights[i];
        sum += d * d;
    }
    v->distance[step] = sqrt(sum);
}

static void run_variant(int i, long step) {
    variant *v = &bench.variant[i];
    step_result *r = &v->result[step];
    if (v->error)
        return;
    if (!child_step(&children[i], r))
        snprintf(r->error, sizeof r->error, "the process ended");
    v->error = r->error[0] ? r->error : NULL;
    if (v->error)
        fprintf(stderr, "\n%s, step %ld: %s\n", v->name, step, r->error);
    else if (v->weights)
        measure_distance(v, &bench.variant[0], step);
}

static void run(void) {
    const double start = vd_seconds();
    for (int i = 0; i < bench.variants; i++)
        if (!child_open(&children[i], &bench, i))
            die("cannot start a process");
    for (long step = 0; step <= bench.steps; step++) {
        for (int i = 0; i < bench.variants; i++)
            run_variant(i, step);
        const double seconds = vd_seconds() - start;
        fprintf(stderr, "%sstep %ld/%ld of %d ways, %.0f s, %.0f s left%s",
                isatty(2) ? "\r\033[K" : "", step, bench.steps, bench.variants, seconds,
                seconds / (double)(step + 1) * (double)(bench.steps - step),
                isatty(2) && step < bench.steps ? "" : "\n");
    }
    for (int i = 0; i < bench.variants; i++)
        child_close(&children[i]);
}

/* ---- results ---- */

static void write_files(void) {
    char path[1100];
    vd_err err = {0};
    if (vd_make_dir(bench.out, &err) != VD_OK)
        die(err.text);
    snprintf(path, sizeof path, "%s/table.txt", bench.out);
    FILE *table = fopen(path, "w");
    bool written = table != NULL;
    if (table) {
        print_table(&bench, table);
        print_words(&bench, table);
        written = fclose(table) == 0;
    }
    snprintf(path, sizeof path, "%s/steps.csv", bench.out);
    written = written && write_csv(&bench, path);
    snprintf(path, sizeof path, "%s/result.json", bench.out);
    written = written && write_json(&bench, path);
    snprintf(path, sizeof path, "%s/page.html", bench.out);
    written = written && write_page(&bench, path);
    if (!written) {
        perror(path);
        exit(1);
    }
    printf("\n%s: table.txt, steps.csv, result.json, page.html\n", bench.out);
}

int main(int argc, char **argv) {
    char *profiles = parse(argc, argv);
    open_job();
    bench.weights = count_weights(&bench.work.program);
    add_variants(profiles);
    strcpy(bench.dir, "/tmp/verde-determinism-XXXXXX");
    if (!mkdtemp(bench.dir))
        die("cannot make a directory under /tmp");
    calibrate(bench.variant[0].profile, bench.variant[1].profile);
    run();
    print_table(&bench, stdout);
    print_words(&bench, stdout);
    write_files();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", bench.dir);
    bool failed = system(command) != 0;
    for (int i = 0; i < bench.variants; i++)
        failed |= bench.variant[i].error != NULL;
    workload_close(&bench.work);
    return failed;
}
