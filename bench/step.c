/* Time of a whole training step of GPT-2 or ResNet-50, with products in FP32 or fixed ones, beside
 * PyTorch's in FP32 and under autocast to bf16: all in the same run, step by step in turn. One
 * thread is measured by its CPU time, several by wall-clock time.
 *
 * The peer is bench/step_torch.py, a separate process, which is told when to run a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/process.h"
#include "bench/workload.h"
#include "verde/exec/guard.h"

/* PyTorch gets faster during its first five steps, while its allocator settles. */
enum { STEPS_MAX = WORKLOAD_STEPS_MAX, WARM_UP = 5 };

typedef struct {
    int layers, heads, channels, batch, sequence, micro_batches, steps, threads;
    const char *isa, *python, *csv, *products;
    bool resnet, llama, profile, unfused, autocast;
} arguments;

enum { WAYS = 10, PEERS = 2 };
static const struct {
    const char *name;
    int forward, gradients; /* bits of fixed products in each pass; 0: FP32 */
    bool guard;             /* products are checked, as by `verde run --guard` */
} ways[WAYS] = {{"fp32", 0, 0, false},
                {"fixed24", RO_FIXED_24, RO_FIXED_24, false},
                {"fixed16", RO_FIXED_16, RO_FIXED_16, false},
                {"fixed8", RO_FIXED_8, RO_FIXED_8, false},
                {"forward8", RO_FIXED_8, 0, false},
                {"mixed8", RO_FIXED_8, RO_FIXED_16, false},
                {"fp32+guard", 0, 0, true},
                {"fixed24+guard", RO_FIXED_24, RO_FIXED_24, true},
                {"fixed16+guard", RO_FIXED_16, RO_FIXED_16, true},
                {"fixed8+guard", RO_FIXED_8, RO_FIXED_8, true}};
static const char *const peer_names[PEERS] = {"torch fp32", "torch bf16"};

/* ---- ours ---- */

typedef struct {
    workload work;
    const void *data[1]; /* what exec.data points to */
    vd_exec exec;
    vd_guard guard;
    vd_state state;
    const char *name; /* the name of its products; NULL: this trainer is not used */
    int threads;
} trainer;

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void check(vd_status status, const vd_err *err) {
    if (status != VD_OK)
        die(err->text);
}

static void open_workload(trainer *t, const arguments *a, vd_products products) {
    const vd_model model = a->resnet  ? workload_resnet50()
                           : a->llama ? workload_llama()
                                      : workload_gpt2(a->layers, a->heads, a->channels);
    const vd_optimizer adamw = {.lr = 6e-4f,
                                .min_lr = 6e-5f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .eps = 1e-8f,
                                .weight_decay = 0.1f,
                                .clip_norm = 1,
                                .schedule = RO_LR_COSINE,
                                .warmup = 10};
    vd_err err = {0};
    if (!workload_open(&t->work, &model, &adamw, a->batch, a->sequence, a->micro_batches, products,
                       &err))
        die(err.text);
}

static ro_ctx *open_context(const arguments *a) {
    ro_options options = {.size = sizeof options, .threads = a->threads, .backend = a->isa};
    ro_ctx *ro;
    if (ro_ctx_create(&options, &ro) != RO_OK)
        die(ro_ctx_error(NULL));
    printf("ours         %s, %d threads\n", ro_ctx_backend(ro), ro_ctx_threads(ro));
    return ro;
}

/* A context that has begun to check never stops, so a trainer with checks has its own. */
static void open_trainer(trainer *t, const arguments *a, ro_ctx *shared, int way) {
    vd_err err = {0};
    ro_ctx *ro = ways[way].guard ? open_context(a) : shared;
    open_workload(t, a, (vd_products){ways[way].forward, ways[way].gradients, ways[way].gradients});
    t->data[0] = t->work.data;
    t->exec =
        (vd_exec){.program = &t->work.program, .ro = ro, .data = t->data, .unfused = a->unfused};
    if (ways[way].guard) {
        check(vd_guard_open(&t->guard, ro, &err), &err);
        t->exec.guard = &t->guard;
    }
    t->name = ways[way].name;
    t->threads = ro_ctx_threads(ro);
    check(vd_exec_place(&t->exec, &err), &err);
    check(vd_exec_init(&t->exec, NULL, &t->state, &err), &err);
}

static void close_trainer(trainer *t) {
    ro_ctx *own = t->guard.ro;
    vd_exec_drop(&t->exec);
    if (t->guard.found_all)
        die("a guard found something");
    vd_guard_close(&t->guard);
    ro_ctx_destroy(own);
    vd_state_free(&t->state);
    workload_close(&t->work);
}

static double our_step(trainer *t, const vd_observer *observer, float *loss) {
    vd_err err = {0};
    double start = bench_now(t->threads);
    check(vd_exec_step(&t->exec, observer, &t->state, loss, &err), &err);
    return bench_now(t->threads) - start;
}

/* ---- where the time goes ---- */

typedef struct {
    const vd_graph *graph;
    double last, seconds[RO_OP_END];
    int count[RO_OP_END];
} profile;

static bool see_node(void *user, uint32_t node, const void *const *input, const void *output) {
    profile *p = user;
    int op = vd_node_stored(p->graph, node)->op;
    double now = vd_seconds();
    (void)input, (void)output;
    p->seconds[op] += now - p->last;
    p->count[op]++;
    p->last = vd_seconds();
    return true;
}

static void print_profile(const profile *p) {
    bool printed[RO_OP_END] = {false};
    double total = 0;
    for (int op = 1; op < RO_OP_END; op++)
        total += p->seconds[op];
    printf("\n%-18s %6s %10s %6s\n", "operator", "nodes", "ms", "share");
    for (;;) {
        int most = 0;
        for (int op = 1; op < RO_OP_END; op++)
            if (!printed[op] && p->count[op] && (!most || p->seconds[op] > p->seconds[most]))
                most = op;
        if (!most)
            break;
        printed[most] = true;
        printf("%-18s %6d %10.2f %5.1f%%\n", ro_op_describe(most)->name, p->count[most],
               1e3 * p->seconds[most], 100 * p->seconds[most] / total);
    }
    printf("%-18s %6s %10.2f\n", "all", "", 1e3 * total);
}

static void profile_step(trainer *t) {
    static profile p;
    p = (profile){0};
    printf("\n%s", t->name);
    p.graph = &t->work.program.step;
    our_step(t, &(vd_observer){see_node, &p},
             NULL); /* warms up: node by node it takes other memory than fused */
    memset(p.seconds, 0, sizeof p.seconds);
    memset(p.count, 0, sizeof p.count);
    p.last = vd_seconds();
    our_step(t, &(vd_observer){see_node, &p}, NULL);
    print_profile(&p);
}

/* ---- theirs ---- */

static process open_peer(const arguments *a, int peer) {
    static char number[8][24];
    const int value[] = {a->layers,   a->heads,   a->channels, a->batch,
                         a->sequence, a->threads, a->resnet,   peer};
    const char *argv[11] = {a->python, "bench/step_torch.py"};
    char line[200];
    for (int i = 0; i < 8; i++) {
        snprintf(number[i], sizeof number[i], "%d", value[i]);
        argv[2 + i] = number[i];
    }
    process p = torch_open(argv, a->isa);
    if (process_ask(&p, "hello", line, sizeof line))
        printf("%s   %s\n", peer_names[peer], line);
    return p;
}

static bool their_step(process *p, double *seconds, float *loss, double *peak_mb) {
    char line[200];
    return process_ask(p, "step", line, sizeof line) &&
           sscanf(line, "%lf %f %lf", seconds, loss, peak_mb) == 3;
}

/* ---- both ---- */

static double peak_mb(void) {
    return (double)vd_peak_bytes() / (1 << 20);
}

/* The seconds of a step of each way and each peer; 0: not available. */
typedef struct {
    double ours[WAYS][STEPS_MAX], theirs[PEERS][STEPS_MAX];
} times;

static void put_row(const arguments *a, const trainer *t, double us, double them) {
    bench_csv csv = bench_csv_open(a->csv, "step", ro_ctx_backend(t->exec.ro), a->threads);
    char row[120];
    snprintf(row, sizeof row, "%s%s%s%s layers %d channels %d B=%d T=%d",
             a->resnet ? "resnet50" : "gpt2", a->unfused ? " unfused" : "",
             strcmp(t->name, "fp32") ? " " : "", strcmp(t->name, "fp32") ? t->name : "",
             a->resnet ? 0 : a->layers, a->resnet ? 0 : a->channels, a->batch,
             a->resnet ? 0 : a->sequence);
    bench_csv_row(&csv, row, us, them);
    if (bench_csv_close(&csv) != 0)
        die("the CSV could not be written");
}

/* Runs one step of each way and each peer, in turn. */
static void run_all(trainer *t, process *p, double ours[WAYS], double theirs[PEERS],
                    double mb[PEERS]) {
    float loss;
    for (int w = 0; w < WAYS; w++) {
        if (!t[w].name)
            continue;
        ours[w] = our_step(&t[w], NULL, &loss);
        fprintf(stderr, "  %s %.0f ms, loss %.4f", t[w].name, 1e3 * ours[w], (double)loss);
    }
    for (int i = 0; i < PEERS; i++) {
        if (p[i].pid == 0)
            continue;
        if (!their_step(&p[i], &theirs[i], &loss, &mb[i]))
            die("the peer failed: see above");
        fprintf(stderr, "  %s %.0f ms, loss %.4f", peer_names[i], 1e3 * theirs[i], (double)loss);
    }
    fputc('\n', stderr);
}

static double mean_of(const double *x, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i];
    return sum / count;
}

static void report(const arguments *a, const trainer *t, times *x, const double mb[PEERS]) {
    double them[PEERS];
    for (int i = 0; i < PEERS; i++) {
        them[i] = bench_median(x->theirs[i], a->steps);
        if (them[i] > 0)
            printf("%-12s %8.1f ms a step, peak %.0f MB\n", peer_names[i], 1e3 * them[i], mb[i]);
    }
    for (int w = 0; w < WAYS; w++) {
        if (!t[w].name)
            continue;
        const double us = bench_median(x->ours[w], a->steps);
        printf("ours %-13s %8.1f ms a step", t[w].name, 1e3 * us);
        if (ways[w].guard) /* the rows that it computes again are random, so steps differ */
            printf(", mean %.1f ms", 1e3 * mean_of(x->ours[w], a->steps));
        for (int i = 0; i < PEERS; i++)
            if (them[i] > 0)
                printf(", %.3f (%s / ours)", them[i] / us, peer_names[i]);
        printf("\n");
        put_row(a, &t[w], us, them[0]);
    }
    printf("ours         peak %.0f MB, all together\n", peak_mb());
}

static void run_steps(const arguments *a, trainer *t, process *p) {
    static times x;
    double mb[PEERS] = {0};
    for (int i = -WARM_UP; i < a->steps; i++) {
        double ours[WAYS] = {0}, theirs[PEERS] = {0};
        fprintf(stderr, "step %d", i + WARM_UP + 1);
        run_all(t, p, ours, theirs, mb);
        for (int w = 0; i >= 0 && w < WAYS; w++)
            x.ours[w][i] = ours[w];
        for (int k = 0; i >= 0 && k < PEERS; k++)
            x.theirs[k][i] = theirs[k];
    }
    report(a, t, &x, mb);
}

static const char usage[] =
    "Usage: step [--layers N] [--heads N] [--channels N] [--batch N] [--sequence N]\n"
    "            [--micro-batches N] [--steps N] [--threads N] [--isa NAME] [--products NAMES]\n"
    "            [--resnet50] [--llama] [--torch PYTHON] [--autocast] [--profile] [--unfused]\n"
    "            [--csv FILE]\n"
    "GPT-2 with 50,257 tokens; default: 12 layers, 12 heads, 768 channels (124M), B=4, T=64,\n"
    "5 steps after 5 to warm up. --resnet50: that instead, on CIFAR's shapes, B=64.\n"
    "--llama: SmolLM 135M's sizes. --products: of fp32, fixed24, fixed16, fixed8, forward8\n"
    "(with gradients in fp32) and mixed8 (with gradients in fixed16), those that NAMES has\n"
    "(fp32); fixed16+guard is fixed16 with and without checks.\n"
    "--torch: a Python that has PyTorch, run in turn; --autocast: under bf16 too.\n"
    "--profile: time by operator, of one step more, node by node. --unfused: all node by node.\n"
    "--csv: a line added to FILE.";

static arguments parse(int argc, char **argv) {
    enum { MOST = 1 << 20 };
    arguments a = {.layers = 12,
                   .heads = 12,
                   .channels = 768,
                   .sequence = 64,
                   .micro_batches = 1,
                   .steps = 5,
                   .products = "fp32"};
    const bench_option known[] = {{"--layers", NULL, &a.layers, 1, MOST},
                                  {"--heads", NULL, &a.heads, 1, MOST},
                                  {"--channels", NULL, &a.channels, 1, MOST},
                                  {"--batch", NULL, &a.batch, 1, MOST},
                                  {"--sequence", NULL, &a.sequence, 1, MOST},
                                  {"--micro-batches", NULL, &a.micro_batches, 1, MOST},
                                  {"--steps", NULL, &a.steps, 1, STEPS_MAX - WARM_UP - 1},
                                  {"--threads", NULL, &a.threads, 1, 1024},
                                  {"--isa", &a.isa, NULL, 0, 0},
                                  {"--torch", &a.python, NULL, 0, 0},
                                  {"--csv", &a.csv, NULL, 0, 0},
                                  {"--products", &a.products, NULL, 0, 0},
                                  {.name = "--resnet50", .flag = &a.resnet},
                                  {.name = "--llama", .flag = &a.llama},
                                  {.name = "--unfused", .flag = &a.unfused},
                                  {.name = "--autocast", .flag = &a.autocast},
                                  {.name = "--profile", .flag = &a.profile}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    if (a.batch == 0)
        a.batch = a.resnet ? 64 : 4;
    return a;
}

int main(int argc, char **argv) {
    arguments a = parse(argc, argv);
    static trainer t[WAYS];
    process p[PEERS] = {{0}};
    vd_keep_pages();
    ro_ctx *ro = open_context(&a);
    if (a.threads == 0)
        a.threads = ro_ctx_threads(ro);
    for (int w = 0; w < WAYS; w++)
        if (strstr(a.products, ways[w].name))
            open_trainer(&t[w], &a, ro, w);
    for (int i = 0; a.python && i < (a.autocast ? PEERS : 1); i++)
        p[i] = open_peer(&a, i);
    run_steps(&a, t, p);
    for (int w = 0; w < WAYS && a.profile; w++)
        if (t[w].name)
            profile_step(&t[w]);
    for (int i = PEERS; i-- > 0;) /* a later process holds the pipes of earlier ones */
        process_close(&p[i]);
    for (int w = 0; w < WAYS; w++)
        if (t[w].name)
            close_trainer(&t[w]);
    ro_ctx_destroy(ro);
    return 0;
}
