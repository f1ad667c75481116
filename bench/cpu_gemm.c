/* Speed of ro_sgemm against those of OpenBLAS, BLIS and oneDNN that are installed.
 *
 * Usage: cpu_gemm [--isa avx512|avx2|scalar] [--threads N] [--rounds N] [--only TEXT] [--csv FILE]
 *
 * A ratio is the peer's time over ours, the median of the rounds: above 1 we are faster. One thread
 * is measured by its CPU time, several by wall-clock time. A pause precedes each measurement with
 * several threads, since idle workers of some libraries keep polling. */
#include "bench/bench.h"
#include "bench/peers.h"
#include "repops/repops.h"

enum { PAUSE_MS = 40, OURS = PEERS, LIBRARIES };

static const double sample_s = 0.02; /* seconds of one library in a round; at least one call */
static const double settle_s = 0.06; /* woken threads share a core for so long, with any library */
static const double turn_s = 0.015;  /* few rows are slower for so long after another library */

typedef enum { SQUARE, MODEL, SKINNY, SMALL, BATCH, GROUPS } group;
static const char *const group_names[] = {"squares", "models", "skinny", "small", "batches"};

typedef struct {
    group group;
    const char *name;
    int trans_a, trans_b;
    int64_t batch, m, n, k;
} shape;

static const shape shapes[] = {
    {SQUARE, "square", 0, 0, 1, 512, 512, 512},
    {SQUARE, "square", 0, 0, 1, 1024, 1024, 1024},
    {SQUARE, "square", 0, 0, 1, 2048, 2048, 2048},
    {SQUARE, "square", 0, 0, 1, 4096, 4096, 4096},
    {MODEL, "gpt2 qkv", 0, 0, 1, 512, 2304, 768},
    {MODEL, "gpt2 qkv, input gradient", 0, 1, 1, 512, 768, 2304},
    {MODEL, "gpt2 qkv, weight gradient", 1, 0, 1, 768, 2304, 512},
    {MODEL, "gpt2 projection", 0, 0, 1, 512, 768, 768},
    {MODEL, "gpt2 up", 0, 0, 1, 512, 3072, 768},
    {MODEL, "gpt2 up, input gradient", 0, 1, 1, 512, 768, 3072},
    {MODEL, "gpt2 up, weight gradient", 1, 0, 1, 768, 3072, 512},
    {MODEL, "gpt2 down", 0, 0, 1, 512, 768, 3072},
    {MODEL, "gpt2 down, input gradient", 0, 1, 1, 512, 3072, 768},
    {MODEL, "gpt2 down, weight gradient", 1, 0, 1, 3072, 768, 512},
    {MODEL, "gpt2 logits", 0, 1, 1, 512, 50257, 768},
    {MODEL, "gpt2 logits, input gradient", 0, 0, 1, 512, 768, 50257},
    {MODEL, "gpt2 logits, weight gradient", 1, 0, 1, 50257, 768, 512},
    {MODEL, "resnet 3x3 of 64", 0, 0, 1, 64, 4096, 576},
    {MODEL, "resnet 3x3 of 256", 0, 0, 1, 256, 4096, 2304},
    {MODEL, "resnet 3x3, weight gradient", 0, 1, 1, 64, 576, 65536},
    {MODEL, "resnet 1x1, 64 to 256", 0, 0, 1, 65536, 256, 64},
    {MODEL, "resnet 1x1, 256 to 64", 0, 0, 1, 65536, 64, 256},
    {MODEL, "resnet 1x1, 512 to 2048", 0, 0, 1, 1024, 2048, 512},
    {MODEL, "resnet 1x1, 2048 to 512", 0, 0, 1, 1024, 512, 2048},
    {SKINNY, "gpt2 qkv, 1 row", 0, 0, 1, 1, 2304, 768},
    {SKINNY, "gpt2 qkv, 2 rows", 0, 0, 1, 2, 2304, 768},
    {SKINNY, "gpt2 qkv, 4 rows", 0, 0, 1, 4, 2304, 768},
    {SKINNY, "gpt2 qkv, 8 rows", 0, 0, 1, 8, 2304, 768},
    {SKINNY, "gpt2 qkv, 16 rows", 0, 0, 1, 16, 2304, 768},
    {SKINNY, "gpt2 up, 1 row", 0, 0, 1, 1, 3072, 768},
    {SKINNY, "gpt2 up, 8 rows", 0, 0, 1, 8, 3072, 768},
    {SKINNY, "gpt2 down, 1 row", 0, 0, 1, 1, 768, 3072},
    {SKINNY, "gpt2 down, 4 rows", 0, 0, 1, 4, 768, 3072},
    {SKINNY, "gpt2 down, 16 rows", 0, 0, 1, 16, 768, 3072},
    {SKINNY, "gpt2 qkv, b transposed", 0, 1, 1, 1, 2304, 768},
    {SKINNY, "gpt2 qkv, b transposed", 0, 1, 1, 4, 2304, 768},
    {SKINNY, "gpt2 qkv, b transposed", 0, 1, 1, 16, 2304, 768},
    {SKINNY, "gpt2 logits, 1 row", 0, 1, 1, 1, 50257, 768},
    {SKINNY, "gpt2 logits, 8 rows", 0, 1, 1, 8, 50257, 768},
    {SKINNY, "llama, 1 row", 0, 0, 1, 1, 4096, 4096},
    {SKINNY, "llama, 4 rows", 0, 0, 1, 4, 4096, 4096},
    {SKINNY, "llama, 8 rows", 0, 0, 1, 8, 11008, 4096},
    {SKINNY, "llama, 16 rows", 0, 0, 1, 16, 4096, 4096},
    {SKINNY, "one column", 0, 0, 1, 2304, 1, 768},
    {SKINNY, "one column, a transposed", 1, 0, 1, 2304, 1, 768},
    {SKINNY, "8 columns", 0, 0, 1, 2304, 8, 768},
    {SMALL, "square", 0, 0, 1, 16, 16, 16},
    {SMALL, "square", 0, 0, 1, 24, 24, 24},
    {SMALL, "square", 0, 0, 1, 32, 32, 32},
    {SMALL, "square", 0, 0, 1, 48, 48, 48},
    {SMALL, "square", 0, 0, 1, 64, 64, 64},
    {SMALL, "square", 0, 0, 1, 96, 96, 96},
    {SMALL, "square", 0, 0, 1, 128, 128, 128},
    {SMALL, "square, b transposed", 0, 1, 1, 32, 32, 32},
    {SMALL, "square, b transposed", 0, 1, 1, 64, 64, 64},
    {SMALL, "square, a transposed", 1, 0, 1, 64, 64, 64},
    {SMALL, "odd", 0, 0, 1, 100, 100, 100},
    {SMALL, "odd", 0, 0, 1, 33, 65, 77},
    {BATCH, "heads", 0, 0, 96, 64, 64, 64},
    {BATCH, "heads, scores", 0, 1, 48, 64, 64, 64},
    {BATCH, "heads, scores", 0, 1, 48, 128, 128, 64},
    {BATCH, "heads, values", 0, 0, 48, 128, 64, 128},
    {BATCH, "heads, value gradient", 1, 0, 48, 128, 64, 128},
    {BATCH, "heads, scores", 0, 1, 12, 512, 512, 64},
    {BATCH, "heads, values", 0, 0, 12, 512, 64, 512},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static struct {
    const char *isa, *only, *csv;
    int threads, rounds;
} options = {NULL, "", NULL, 1, 7};

static FILE *csv;

/* ---- one library, one shape ---- */

static void run(int library, ro_ctx *ctx, const product *p) {
    if (library != OURS) {
        peers[library].run(p);
        return;
    }
    const int64_t lda = p->trans_a ? p->m : p->k, ldb = p->trans_b ? p->k : p->n;
    if (ro_sgemm_batch(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, 1, p->a, lda, p->b, ldb, 0,
                       p->c, p->n, p->m * p->k, p->k * p->n, p->m * p->n, p->batch) != RO_OK)
        fprintf(stderr, "%s\n", ro_ctx_error(ctx)), exit(1);
}

/* A product, computed by a library's threads or, as another way, by one thread. */
typedef struct {
    ro_ctx *ctx, *one;
    product p;
} measured;

static double sample(void *user, int library, int64_t calls) {
    const measured *m = user;
    const int threads = options.threads;
    if (library != OURS &&
        !(peers[library].loaded && (!peers[library].prepare || peers[library].prepare(&m->p))))
        return 0;
    if (threads > 1)
        bench_pause(PAUSE_MS);
    const double until = bench_now(threads) + (threads > 1 ? settle_s : calls > 1 ? turn_s : 0);
    while (bench_now(threads) < until)
        run(library, m->ctx, &m->p); /* wakes the workers up */
    const double start = bench_now(threads);
    for (int64_t i = 0; i < calls; i++)
        run(library, m->ctx, &m->p);
    return (bench_now(threads) - start) / (double)calls;
}

static product product_of(const shape *s) {
    product p = {s->trans_a, s->trans_b, s->batch, s->m, s->n, s->k, NULL, NULL, NULL};
    p.a = bench_uniform(s->batch * s->m * s->k, 1);
    p.b = bench_uniform(s->batch * s->k * s->n, UINT64_C(1) << 40);
    p.c = bench_uniform(s->batch * s->m * s->n, UINT64_C(1) << 41);
    if (!p.a || !p.b || !p.c)
        fprintf(stderr, "no memory\n"), exit(1);
    return p;
}

static void release(product *p) {
    free((void *)p->a);
    free((void *)p->b);
    free(p->c);
}

static int wanted(const shape *s) {
    return strstr(group_names[s->group], options.only) || strstr(s->name, options.only);
}

static void print_shape(const shape *s) {
    char dims[40];
    snprintf(dims, sizeof dims, s->batch > 1 ? "%lldx%lldx%lld x%lld" : "%lldx%lldx%lld",
             (long long)s->m, (long long)s->n, (long long)s->k, (long long)s->batch);
    printf("%-8s %-29s %c%c %-20s", group_names[s->group], s->name, s->trans_a ? 'T' : 'N',
           s->trans_b ? 'T' : 'N', dims);
}

static double gflop(const shape *s) {
    return 2e-9 * (double)s->batch * (double)s->m * (double)s->n * (double)s->k;
}

/* ---- against the peers ---- */

/* Gives the median of our time, and of each peer's ratio (0: the peer is missing). */
static void measure(ro_ctx *ctx, const shape *s, double *ours, double ratio[PEERS]) {
    bench_turns t;
    measured m = {ctx, NULL, product_of(s)};
    bench_in_turn(&t, LIBRARIES, options.rounds, sample_s, sample, &m);
    for (int l = 0; l < PEERS; l++)
        ratio[l] = bench_ratio(&t, l, OURS);
    *ours = bench_seconds(&t, OURS);
    release(&m.p);
}

static void print_row(const shape *s, double ours, const double ratio[PEERS]) {
    print_shape(s);
    printf(" %10.1f %8.1f", 1e6 * ours, gflop(s) / ours);
    for (int l = 0; l < PEERS; l++)
        printf(ratio[l] > 0 ? " %8.3f" : "        -", ratio[l]);
    printf("\n");
    fflush(stdout);
    if (!csv)
        return;
    fprintf(csv, "gemm,%s,%d,%s,\"%s\",%d,%d,%lld,%lld,%lld,%lld,%.9g,%.4g", options.isa,
            options.threads, group_names[s->group], s->name, s->trans_a, s->trans_b,
            (long long)s->batch, (long long)s->m, (long long)s->n, (long long)s->k, ours,
            gflop(s) / ours);
    for (int l = 0; l < PEERS; l++)
        fprintf(csv, ratio[l] > 0 ? ",%.4f" : ",", ratio[l]);
    fprintf(csv, "\n");
}

static void print_header(void) {
    printf("\n%s kernels, %d thread%s; peer's time / our time\n", options.isa, options.threads,
           options.threads > 1 ? "s" : "");
    printf("%-8s %-29s %2s %-20s %10s %8s", "group", "product", "op", "MxNxK xbatch", "us",
           "GFLOP/s");
    for (int l = 0; l < PEERS; l++)
        printf(" %8s", peers[l].name);
    printf("\n");
}

static void print_means(bench_mean mean[GROUPS + 1][PEERS]) {
    for (int g = 0; g <= GROUPS; g++) {
        int any = 0;
        for (int l = 0; l < PEERS; l++)
            any |= mean[g][l].count;
        if (!any)
            continue;
        printf("geometric mean, %-66s", g < GROUPS ? group_names[g] : "squares and models");
        for (int l = 0; l < PEERS; l++)
            printf(" %8.3f", bench_value(&mean[g][l]));
        printf("\n");
    }
}

static void against_peers(ro_ctx *ctx) {
    bench_mean mean[GROUPS + 1][PEERS] = {0};
    for (int l = 0; l < PEERS; l++)
        if (peers[l].loaded)
            peers[l].threads(options.threads);
    print_header();
    for (int i = 0; i < SHAPES; i++) {
        double ours, ratio[PEERS];
        if (!wanted(&shapes[i]))
            continue;
        measure(ctx, &shapes[i], &ours, ratio);
        print_row(&shapes[i], ours, ratio);
        for (int l = 0; l < PEERS; l++) {
            bench_add(&mean[shapes[i].group][l], ratio[l]);
            if (shapes[i].group <= MODEL)
                bench_add(&mean[GROUPS][l], ratio[l]);
        }
    }
    print_means(mean);
}

/* ---- two threads over one ---- */

enum { MANY, ONE, COUNTS };

static double sample_threads(void *user, int way, int64_t calls) {
    const measured *m = user;
    if (way == MANY)
        return sample(user, OURS, calls);
    const double start = clock_s(CLOCK_MONOTONIC);
    for (int64_t j = 0; j < calls; j++)
        run(OURS, m->one, &m->p);
    return (clock_s(CLOCK_MONOTONIC) - start) / (double)calls;
}

static void threads_table(ro_ctx *many) {
    measured m = {.ctx = many};
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .backend = options.isa, .threads = 1},
            &m.one) != RO_OK)
        return;
    printf("\n%s kernels, time of 1 thread / time of %d, by the wall\n", options.isa,
           options.threads);
    for (int i = 0; i < SHAPES; i++) {
        const shape *s = &shapes[i];
        bench_turns t;
        if (!wanted(s))
            continue;
        m.p = product_of(s);
        bench_in_turn(&t, COUNTS, options.rounds, sample_s, sample_threads, &m);
        const double ratio = bench_ratio(&t, ONE, MANY);
        print_shape(s);
        printf(" %8.3f\n", ratio);
        fflush(stdout);
        if (csv)
            fprintf(csv, "threads,%s,%d,%s,\"%s\",%d,%d,%lld,%lld,%lld,%lld,,,%.4f\n", options.isa,
                    options.threads, group_names[s->group], s->name, s->trans_a, s->trans_b,
                    (long long)s->batch, (long long)s->m, (long long)s->n, (long long)s->k, ratio);
        release(&m.p);
    }
    ro_ctx_destroy(m.one);
}

/* ---- accuracy ---- */

/* Returns the root mean square error against double precision, relative to that of the result. */
static double error_of(const product *p) {
    double error = 0, size = 0;
    for (int64_t e = 0; e < p->m * p->n; e++) {
        const float *a = p->a + e / p->n * p->k, *b = p->b + e % p->n;
        double want = 0;
        for (int64_t k = 0; k < p->k; k++)
            want += (double)a[k] * (double)b[k * p->n];
        error += (p->c[e] - want) * (p->c[e] - want);
        size += want * want;
    }
    return sqrt(error / size);
}

static void accuracy(ro_ctx *ctx) {
    static const int64_t depths[] = {768, 3072, 50257};
    printf("\nrms error against double precision, units of 2^-24, normal data, 96 x 96\n%-12s %8s",
           "K", "repops");
    for (int l = 0; l < PEERS; l++)
        printf(" %8s", peers[l].name);
    printf("\n");
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        product p = {0, 0, 1, 96, 96, depths[i], NULL, NULL, NULL};
        p.a = bench_normal(p.m * p.k, 7);
        p.b = bench_normal(p.n * p.k, UINT64_C(1) << 42);
        p.c = bench_uniform(p.m * p.n, 0);
        run(OURS, ctx, &p);
        printf("%-12lld %8.3f", (long long)p.k, 0x1p24 * error_of(&p));
        for (int l = 0; l < PEERS; l++) {
            if (peers[l].loaded)
                run(l, ctx, &p);
            printf(peers[l].loaded ? " %8.3f" : "        -", 0x1p24 * error_of(&p));
        }
        printf("\n");
        release(&p);
    }
}

/* ---- the whole ---- */

static const char usage[] =
    "Usage: cpu_gemm [--isa avx512|avx2|scalar] [--threads N] [--rounds N] [--only TEXT]\n"
    "                [--csv FILE]\n"
    "Products beside OpenBLAS, BLIS and oneDNN, those that are installed, held to the same\n"
    "instructions. Default: the widest that this processor has, 1 thread, 7 rounds, all groups.\n"
    "--only: groups or products with TEXT in their names. --csv: lines added to FILE.\n"
    "Example: cpu_gemm --isa avx2 --threads 2 --only squares";

static void parse(int argc, char **argv) {
    const bench_option known[] = {{"--isa", &options.isa, NULL, 0, 0},
                                  {"--only", &options.only, NULL, 0, 0},
                                  {"--csv", &options.csv, NULL, 0, 0},
                                  {"--threads", NULL, &options.threads, 1, 1024},
                                  {"--rounds", NULL, &options.rounds, 1, BENCH_ROUNDS}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
}

int main(int argc, char **argv) {
    ro_ctx *ctx;
    parse(argc, argv);
    csv = bench_csv_file(options.csv, "table,isa,threads,group,product,trans_a,trans_b,batch,m,n,k,"
                                      "seconds,gflops,openblas,blis,onednn");
    if (!options.isa)
        options.isa = bench_widest();
    peers_environment(options.isa);
    peers_load();
    const ro_options wants = {
        .size = sizeof wants, .backend = options.isa, .threads = options.threads};
    if (ro_ctx_create(&wants, &ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    for (int l = 0; l < PEERS; l++)
        printf("%s: %s\n", peers[l].name, peers[l].detail);
    against_peers(ctx);
    if (options.threads > 1)
        threads_table(ctx);
    if (options.threads == 1 && !*options.only)
        accuracy(ctx);
    ro_ctx_destroy(ctx);
    return csv ? fclose(csv) != 0 : 0;
}
