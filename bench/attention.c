/* Speed of fused attention: forward, backward and decoding with head size 64, beside PyTorch's
 * scaled_dot_product_attention if --torch names a Python that has it. Both run in turn; medians.
 *
 * Usage: attention [--isa NAME] [--threads N] [--torch PYTHON] [--only causal|full|grouped|decode]
 * [--csv FILE] */
#include "bench/bench.h"
#include "bench/process.h"
#include "repops/fused.h"

enum { HEAD_SIZE = 64, TENSORS = 10, ROUNDS = 7 };
enum { OURS, PEER, SIDES };

static const double sample_s = 0.015; /* seconds of one side in a round; at least one call */

typedef struct {
    const char *name;
    int64_t batch, heads, kv_heads, queries, keys;
    int causal;
} work;

static const work works[] = {
    {"causal", 4, 12, 12, 64, 64, 1},         {"causal", 4, 12, 12, 128, 128, 1},
    {"causal", 4, 12, 12, 256, 256, 1},       {"causal", 1, 12, 12, 512, 512, 1},
    {"causal", 1, 12, 12, 1024, 1024, 1},     {"causal", 1, 12, 12, 2048, 2048, 1},
    {"full", 4, 12, 12, 64, 64, 0},           {"full", 4, 12, 12, 128, 128, 0},
    {"full", 4, 12, 12, 256, 256, 0},         {"full", 1, 12, 12, 512, 512, 0},
    {"full", 1, 12, 12, 1024, 1024, 0},       {"full", 1, 12, 12, 2048, 2048, 0},
    {"grouped", 4, 12, 3, 64, 64, 1},         {"grouped", 4, 12, 3, 256, 256, 1},
    {"grouped", 1, 12, 3, 512, 512, 1},       {"grouped", 1, 12, 3, 1024, 1024, 1},
    {"grouped", 1, 12, 3, 2048, 2048, 1},     {"decode", 1, 12, 12, 1, 128, 0},
    {"decode", 1, 12, 12, 1, 1024, 0},        {"decode", 1, 12, 12, 1, 8192, 0},
    {"decode", 1, 12, 12, 1, 65536, 0},       {"grouped decode", 1, 12, 3, 1, 1024, 0},
    {"grouped decode", 1, 12, 3, 1, 8192, 0}, {"grouped decode", 1, 12, 3, 1, 65536, 0},
};
enum { WORKS = sizeof works / sizeof works[0] };

typedef struct {
    ro_ctx *ctx;
    ro_attention a;
    float *x[TENSORS]; /* q k v out m l dout dq dk dv */
    process *peer;
    const work *work; /* what is measured: this, or its gradient if `backward` is set */
    int backward;
} problem;

static ro_status run(const problem *p) {
    float *const *x = p->x;
    return p->backward ? ro_attention_backward(p->ctx, &p->a, x[0], x[1], x[2], x[3], x[4], x[5],
                                               x[6], x[7], x[8], x[9])
                       : ro_attention_forward(p->ctx, &p->a, x[0], x[1], x[2], x[3], x[4], x[5]);
}

static double time_ours(const problem *p, int64_t passes) {
    const double from = clock_s(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < passes; i++)
        if (run(p) != RO_OK) {
            fprintf(stderr, "bench: %s\n", ro_ctx_error(p->ctx));
            exit(1);
        }
    return (clock_s(CLOCK_MONOTONIC) - from) / (double)passes;
}

static double time_peer(const problem *p, int64_t passes) {
    const work *w = p->work;
    char question[160], line[80];
    snprintf(question, sizeof question, "%d %lld %lld %lld %lld %lld %d %lld", p->backward,
             (long long)w->batch, (long long)w->heads, (long long)w->kv_heads,
             (long long)w->queries, (long long)w->keys, w->causal, (long long)passes);
    return p->peer->pid && process_ask(p->peer, question, line, sizeof line) ? atof(line) : 0;
}

static double sample(void *user, int way, int64_t passes) {
    return way == OURS ? time_ours(user, passes) : time_peer(user, passes);
}

typedef struct {
    double ours, peer; /* 0: there is no peer */
} times;

static times measure(problem *p, const work *w, int backward) {
    bench_turns t;
    p->work = w, p->backward = backward;
    bench_in_turn(&t, SIDES, ROUNDS, sample_s, sample, p);
    return (times){bench_seconds(&t, OURS), bench_seconds(&t, PEER)};
}

static void open_problem(problem *p, const work *w) {
    const int64_t rows = w->batch * w->heads * w->queries;
    const int64_t kv_rows = w->batch * w->kv_heads * w->keys;
    p->a = (ro_attention){.size = sizeof(ro_attention),
                          .batch = w->batch,
                          .heads = w->heads,
                          .kv_heads = w->kv_heads,
                          .queries = w->queries,
                          .keys = w->keys,
                          .head_size = HEAD_SIZE,
                          .causal = w->causal,
                          .scale = 0.125f};
    for (int i = 0; i < TENSORS; i++) {
        const bool statistic = i == 4 || i == 5, of_keys = i == 1 || i == 2 || i >= 8;
        p->x[i] = bench_normal((of_keys ? kv_rows : rows) * (statistic ? 1 : HEAD_SIZE),
                               (uint64_t)i << 40);
        if (!p->x[i])
            exit(1);
    }
}

/* Returns the speed: the multiply-adds of `products` products that the mask leaves, in GFLOP/s; for
 * decoding, GB/s of the cache. */
static double speed(const work *w, int products, double seconds) {
    if (w->queries == 1)
        return 8e-9 * (double)(w->batch * w->kv_heads * w->keys * HEAD_SIZE) / seconds;
    const double pairs = (double)(w->batch * w->heads * w->queries) *
                         (double)(w->causal ? w->keys + 1 : 2 * w->keys) / 2;
    return 2e-9 * products * pairs * HEAD_SIZE / seconds;
}

static bench_csv csv;

static double report(const work *w, const char *shape, int products, times t) {
    char peer[24] = "", ratio[24] = "", row[120];
    if (t.peer > 0) {
        snprintf(peer, sizeof peer, "%.3f", 1e3 * t.peer);
        snprintf(ratio, sizeof ratio, "%.2f", t.peer / t.ours);
    }
    printf(" %8.3f | %6.1f | %8s | %5s |", 1e3 * t.ours, speed(w, products, t.ours), peer, ratio);
    fflush(stdout);
    snprintf(row, sizeof row, "%s %s %s", w->name, shape, products == 2 ? "forward" : "backward");
    bench_csv_row(&csv, row, t.ours, t.peer);
    return t.peer > 0 ? t.peer / t.ours : 0;
}

static process open_peer(const char *python, const char *isa, int thread_count) {
    char threads[24], line[200];
    snprintf(threads, sizeof threads, "%d", thread_count);
    process p =
        torch_open((const char *[]){python, "bench/attention_torch.py", threads, NULL}, isa);
    if (process_ask(&p, "hello", line, sizeof line))
        printf("peer: %s\n\n", line);
    else
        process_close(&p);
    return p;
}

static void run_work(const work *w, problem *p, bench_mean mean[2]) {
    char shape[64];
    snprintf(shape, sizeof shape, "B=%lld H=%lld/%lld T=%lld S=%lld", (long long)w->batch,
             (long long)w->heads, (long long)w->kv_heads, (long long)w->queries,
             (long long)w->keys);
    printf("| %-14s | %-28s |", w->name, shape);
    open_problem(p, w);
    bench_add(&mean[0], report(w, shape, 2, measure(p, w, 0)));
    if (w->queries > 1)
        bench_add(&mean[1], report(w, shape, 5, measure(p, w, 1)));
    else
        printf(" | | | |");
    printf("\n");
    for (int i = 0; i < TENSORS; i++)
        free(p->x[i]);
}

static const char usage[] =
    "Usage: attention [--isa NAME] [--threads N] [--torch PYTHON] [--only TEXT]\n"
    "                 [--csv FILE]\n"
    "Attention, forward and backward; --torch: beside PyTorch, of a Python that has it.\n"
    "--only: rows with TEXT in their names: causal, full, grouped, decode. --csv: lines added\n"
    "to FILE.\n"
    "Example: attention --isa avx2 --threads 2 --only causal --torch python3";

int main(int argc, char **argv) {
    ro_options options = {.size = sizeof options, .threads = 1};
    const char *python = NULL, *only = NULL, *table = NULL;
    const bench_option known[] = {{"--isa", &options.backend, NULL, 0, 0},
                                  {"--threads", NULL, &options.threads, 1, 1024},
                                  {"--torch", &python, NULL, 0, 0},
                                  {"--csv", &table, NULL, 0, 0},
                                  {"--only", &only, NULL, 0, 0}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    process peer = {0};
    problem p = {.peer = &peer};
    bench_mean mean[2] = {{0}};
    if (ro_ctx_create(&options, &p.ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    printf("%s, %d threads\n", ro_ctx_backend(p.ctx), options.threads);
    csv = bench_csv_open(table, "attention", ro_ctx_backend(p.ctx), options.threads);
    if (python)
        peer = open_peer(python, options.backend, options.threads);
    printf("| | | forward: ms | GFLOP/s; decoding: GB/s | PyTorch | ratio "
           "| backward: ms | GFLOP/s | PyTorch | ratio |\n"
           "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < WORKS; i++)
        if (!only || strstr(works[i].name, only))
            run_work(&works[i], &p, mean);
    printf("\nGeometric mean of PyTorch's time / ours: forward %.2f, backward %.2f.\n",
           bench_value(&mean[0]), bench_value(&mean[1]));
    process_close(&peer);
    ro_ctx_destroy(p.ctx);
    return bench_csv_close(&csv);
}
