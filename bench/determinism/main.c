/* Runs the same training job with free binary32, free binary64, rounding logs (trainer and
 * auditors), and the order-fixed kernels. Ways take turns, each in a process of its own, as many at
 * a time as memory allows. Prints a table; writes a CSV file, a JSON file and a page with plots. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/determinism/determinism.h"

benchmark bench = {.model = "gpt2",
                   .size = "small",
                   .out = "build/determinism",
                   .ways = "12345",
                   .bits = 32,
                   .memory = 12e9};

void die(const char *what) {
    fprintf(stderr, "determinism: %s\n", what);
    exit(1);
}

/* ---- thresholds of rounding symbols, which another process computes ---- */

typedef struct {
    vd_thresholds thresholds;
    vd_calibration_count count[RO_OP_END];
} calibrated;

/* Merges calibrations of pairs of profiles: takes the least thresholds and the largest distances,
 * and sums counts. */
static void merge(calibrated *all, const vd_calibration *c) {
    all->thresholds.bits = c->thresholds.bits;
    for (int op = 0; op < RO_OP_END; op++) {
        all->count[op].elements += c->count[op].elements;
        all->count[op].apart += c->count[op].apart;
        all->count[op].largest = fmax(all->count[op].largest, c->count[op].largest);
        all->thresholds.of[op] = fmin(all->thresholds.of[op], c->thresholds.of[op]);
    }
}

static void calibrate_pairs(calibrated *out) {
    static vd_calibration c;
    vd_err err = {0};
    const int profiles = strchr(bench.size, 'f') ? 2 : bench.profiles;
    const ro_options options = {.size = sizeof options, .threads = (int)bench.threads};
    vd_exec exec = {.program = &bench.work.program, .data = (const void *[]){bench.work.data}};
    if (ro_ctx_create(&options, &exec.ro) != RO_OK)
        die(ro_ctx_error(NULL));
    for (int op = 0; op < RO_OP_END; op++)
        out->thresholds.of[op] = 1;
    for (int a = 0; a < profiles; a++)
        for (int b = 0; b < a; b++) {
            if (vd_calibrate(&exec, bench.profile[a], bench.profile[b], bench.bits,
                             bench.calibration, NULL, NULL, &c, &err) != VD_OK)
                die(err.text);
            merge(out, &c);
        }
}

static void calibrate(void) {
    calibrated *found = shared(sizeof *found);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        calibrate_pairs(found);
        _exit(0);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        die("calibration failed");
    bench.thresholds = found->thresholds;
    memcpy(bench.calibrated, found->count, sizeof bench.calibrated);
}

/* ---- running ---- */

typedef struct {
    child child[VARIANTS_MAX];
    uint64_t resting[VARIANTS_MAX]; /* bytes that each living process holds between steps */
    double seconds[2][STEPS_MAX];   /* of the bases in this group, from step 1 on */
    float *weights[2], *left;       /* of the bases, and of the process that ran last */
} runner;

static runner run;

/* Sets the distance of the weights from those of the base of the same precision. */
static void measure_distance(variant *v, long step) {
    const int base = v->kind == FREE_F64;
    double sum = 0;
    if (v == &bench.variant[bench.base[base]])
        memcpy(run.weights[base], run.left, (size_t)bench.weights * sizeof(float));
    for (int64_t i = 0; i < bench.weights; i++) {
        const double d = (double)run.left[i] - (double)run.weights[base][i];
        sum += d * d;
    }
    v->distance[step] = (double)(float)sqrt(sum);
}

/* Stops before processes take memory that the machine needs. */
static void watch_memory(int way, const step_result *r) {
    char why[160];
    uint64_t all = weights_bytes();
    run.resting[way] = r->resting_bytes;
    for (int i = 0; i < bench.variants; i++)
        all += run.resting[i];
    all += r->peak_bytes > r->resting_bytes ? r->peak_bytes - r->resting_bytes : 0;
    bench.peak = all > bench.peak ? all : bench.peak;
    if ((double)all <= bench.memory)
        return;
    snprintf(
        why, sizeof why,
        "the processes take %.1f GB and --memory allows %.1f; this one has %.2f GB, %.2f GB in "
        "a step",
        (double)all / 1e9, bench.memory / 1e9, (double)r->resting_bytes / 1e9,
        (double)r->peak_bytes / 1e9);
    die(why);
}

static void fail(variant *v, long step, const char *why) {
    snprintf(v->result[step].error, sizeof v->result[step].error, "step %ld: %.480s", step, why);
    v->error = v->result[step].error;
    fprintf(stderr, "\n%s, %s\n", v->name, v->error);
}

/* Stores the results of a turn. The bases (bench.base) run again in each later group: such a
 * repetition is only checked, as it must end in the same state. */
static void keep(int way, long first, long steps, const step_result *r, bool again) {
    variant *v = &bench.variant[way];
    const long step = first + steps - 1;
    const step_result *end = &r[steps - 1];
    if (!again)
        memcpy(&v->result[first], r, (size_t)steps * sizeof *r);
    if (end->error[0])
        fail(v, step, end->error);
    else if (again && !vd_hash_equal(&end->state, &v->result[step].state))
        fail(v, step, "another state than when it ran before");
    else if (is_free(v))
        measure_distance(v, step);
}

static void run_way(int way, int group, long first, long steps) {
    static step_result r[STEPS_MAX];
    if (bench.variant[way].error)
        return;
    if (!child_turn(&run.child[way], r, steps)) {
        memset(r, 0, sizeof r);
        snprintf(r[steps - 1].error, sizeof r->error, "the process ended");
    }
    for (int k = 0; k < 2 && first > 0; k++)
        for (long i = 0; i < steps && way == bench.base[k]; i++)
            run.seconds[k][first + i - 1] = r[i].seconds;
    watch_memory(way, &r[steps - 1]);
    keep(way, first, steps, r, group > bench.variant[way].group);
}

static double median_seconds(const variant *v) {
    static double seconds[STEPS_MAX];
    for (long s = 1; s <= bench.steps; s++)
        seconds[s - 1] = v->result[s].seconds;
    return bench_median(seconds, (int)bench.steps);
}

static void close_group(int group) {
    for (int k = 0; k < 2; k++) {
        const double base = bench_median(run.seconds[k], (int)bench.steps);
        for (int i = 0; i < bench.variants; i++)
            if (bench.variant[i].group == group && !bench.variant[i].error)
                bench.variant[i].sum.ratio[k] = median_seconds(&bench.variant[i]) / base;
    }
    for (int i = 0; i < bench.variants; i++)
        child_close(&run.child[i]);
    memset(run.resting, 0, sizeof run.resting);
}

static void run_group(int group, double start) {
    for (int i = 0; i < bench.variants; i++)
        if (in_group(i, group) && !child_open(&run.child[i], &bench, i))
            die("cannot start a process");
    for (long first = 0, step; first <= bench.steps; first = step + 1) {
        step = first + turn_of(&bench, first) - 1;
        for (int i = 0; i < bench.variants; i++)
            if (in_group(i, group))
                run_way(i, group, first, step + 1 - first);
        fprintf(stderr, "%sgroup %d/%d, step %ld/%ld, %.0f s%s", isatty(2) ? "\r\033[K" : "",
                group + 1, bench.groups, step, bench.steps, vd_seconds() - start,
                isatty(2) && step < bench.steps ? "" : "\n");
    }
    close_group(group);
}

/* ---- results ---- */

const char not_run[] = "not run";

/* Marks the ways of this group and of later ones as without results. */
static void set_not_run(int group, const char *why) {
    for (int i = 0; i < bench.variants; i++)
        if (bench.variant[i].group >= group)
            bench.variant[i].error = why;
}

static void run_all(void) {
    const double start = vd_seconds();
    const size_t size = (size_t)bench.weights * sizeof(float);
    bench.weights_file = memfd_create("weights", 0);
    if (bench.weights_file < 0 || ftruncate(bench.weights_file, (off_t)size) != 0)
        die("cannot share memory");
    run.weights[0] = malloc(size);
    run.weights[1] = malloc(size);
    run.left = mmap(NULL, size, PROT_READ, MAP_SHARED, bench.weights_file, 0);
    if (!run.weights[0] || !run.weights[1] || run.left == MAP_FAILED)
        die("out of memory");
    for (int group = 0; group < bench.groups; group++) {
        if (bench.minutes && group > 0 && vd_seconds() - start > 60 * (double)bench.minutes) {
            set_not_run(group, not_run);
            break;
        }
        run_group(group, start);
        set_not_run(group + 1, not_run);
        summarise(&bench);
        write_files(&bench);
        set_not_run(group + 1, NULL);
    }
}

/* Runs at exit of this process only: the ways' processes leave by _exit. */
static void remove_logs(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", bench.dir);
    if (system(command) != 0)
        fprintf(stderr, "determinism: %s is left\n", bench.dir);
}

static pid_t owner;

/* Logs and checkpoints of large jobs take gigabytes, so an interrupted run must remove them. */
static void stop(int number) {
    const pid_t remover = getpid() == owner ? fork() : -1;
    if (remover == 0) {
        execl("/bin/rm", "rm", "-rf", bench.dir, (char *)NULL);
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, NULL, 0);
    _exit(128 + number);
}

static void remove_if_stopped(void) {
    const struct sigaction action = {.sa_handler = stop};
    owner = getpid();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static void print_results(void) {
    print_rows(&bench, stdout);
    if (bench.all) {
        print_ways(&bench, stdout);
        print_operators(&bench, stdout);
    }
    print_words(&bench, stdout);
}

/* Makes the page again from the files of an earlier run. */
static void render(const char *dir) {
    read_results(&bench, dir);
    write_rendered(&bench, dir);
    print_results();
    printf("\n%s/page.html\n", dir);
}

int main(int argc, char **argv) {
    vd_err err = {0};
    vd_keep_pages();
    const char *dir = parse_options(argc, argv);
    if (dir) {
        render(dir);
        return 0;
    }
    open_job();
    add_ways();
    if (vd_make_dir(bench.out, &err) != VD_OK)
        die(err.text);
    plan_groups();
    strcpy(bench.dir, "/tmp/verde-determinism-XXXXXX");
    if (!mkdtemp(bench.dir))
        die("cannot make a directory under /tmp");
    atexit(remove_logs);
    remove_if_stopped();
    if (bench.symbols)
        calibrate();
    run_all();
    summarise(&bench);
    print_results();
    write_files(&bench);
    printf("\n%s: steps.csv, result.json, page.html\n", bench.out);
    bool failed = false;
    for (int i = 0; i < bench.variants; i++)
        failed |= bench.variant[i].error && bench.variant[i].error != not_run;
    workload_close(&bench.work);
    return failed;
}
