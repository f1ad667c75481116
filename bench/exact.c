/* Fixed products of 24, 16 and 8 bits, whose sums are exact, beside products in FP32: our own, and
 * the best of those of OpenBLAS, BLIS and oneDNN that are installed.
 *
 * Usage: exact [--isa avx512|avx2|neon|scalar] [--threads N] [--rounds N] [--only TEXT] [--json
 * FILE]
 *
 * Each round times every library and every kind of product once, in turn, so that a slow moment of
 * the machine affects all of them. A ratio is FP32's time over the fixed product's, the median of
 * the rounds: above 1 the fixed product is faster. One thread is measured by its CPU time, several
 * by wall-clock time. */
#include "repops/op_product.h"
#include "bench/bench.h"
#include "bench/peers.h"

enum { FP32 = PEERS, FIXED_24, FIXED_16, FIXED_8, KINDS, PAUSE_MS = 40 };
enum { WAYS = KINDS - FIXED_24 };

static const int way_bits[WAYS] = {RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};

static const double sample_s = 0.02; /* seconds of one kind in a round; at least one call */
static const double settle_s = 0.06; /* woken threads share a core for so long */

typedef struct {
    const char *name;
    int trans_a, trans_b;
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {"square", 0, 0, 512, 512, 512},
    {"square", 0, 0, 1024, 1024, 1024},
    {"square", 0, 0, 2048, 2048, 2048},
    {"square", 0, 0, 4096, 4096, 4096},
    {"gpt2 qkv", 0, 0, 512, 2304, 768},
    {"gpt2 qkv, input gradient", 0, 1, 512, 768, 2304},
    {"gpt2 qkv, weight gradient", 1, 0, 768, 2304, 512},
    {"gpt2 projection", 0, 0, 512, 768, 768},
    {"gpt2 up", 0, 0, 512, 3072, 768},
    {"gpt2 up, input gradient", 0, 1, 512, 768, 3072},
    {"gpt2 up, weight gradient", 1, 0, 768, 3072, 512},
    {"gpt2 down", 0, 0, 512, 768, 3072},
    {"gpt2 down, input gradient", 0, 1, 512, 3072, 768},
    {"gpt2 down, weight gradient", 1, 0, 3072, 768, 512},
    {"gpt2 logits", 0, 1, 512, 50257, 768},
    {"gpt2 logits, input gradient", 0, 0, 512, 768, 50257},
    {"gpt2 logits, weight gradient", 1, 0, 50257, 768, 512},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static struct {
    const char *isa, *only, *csv;
    int threads, rounds;
} options = {NULL, "", NULL, 1, 7};

/* ---- engines: repops/cpu/gemm/fixed.h ---- */

typedef const char *engine_name(int bits, int number);
engine_name ro_fixed_engine_name_scalar;
#if defined(__x86_64__)
engine_name ro_fixed_engine_name_avx2, ro_fixed_engine_name_avx512;
#elif defined(__aarch64__)
engine_name ro_fixed_engine_name_neon;
#endif

static const char *engine_of(int bits) {
#if defined(__x86_64__)
    if (strcmp(options.isa, "avx512") == 0)
        return ro_fixed_engine_name_avx512(bits, 0);
    if (strcmp(options.isa, "avx2") == 0)
        return ro_fixed_engine_name_avx2(bits, 0);
#elif defined(__aarch64__)
    if (strcmp(options.isa, "neon") == 0)
        return ro_fixed_engine_name_neon(bits, 0);
#endif
    return ro_fixed_engine_name_scalar(bits, 0);
}

/* ---- one kind, one shape ---- */

static void multiply(ro_ctx *ctx, int bits, const product *p) {
    const ro_shape in[] = {{RO_F32, 2, {p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k}},
                           {RO_F32, 2, {p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n}}};
    const int64_t trans = p->trans_a | p->trans_b << 1, one = ro_attr_f32(1.0f);
    ro_call call = {RO_OP_MATMUL_FIXED, 2, {0, trans, one, bits}, in, {0}};
    if (!bits)
        call = (ro_call){RO_OP_MATMUL, 2, {0, trans, one, RO_DOT_CHUNK}, in, {0}};
    if (ro_infer(&call, NULL, 0) != RO_OK ||
        ro_run(ctx, &call, (const void *[]){p->a, p->b}, p->c) != RO_OK)
        fprintf(stderr, "exact: %s\n", ro_ctx_error(ctx)), exit(1);
}

static void run(int kind, ro_ctx *ctx, const product *p) {
    if (kind < PEERS)
        peers[kind].run(p);
    else
        multiply(ctx, kind == FP32 ? 0 : way_bits[kind - FIXED_24], p);
}

typedef struct {
    ro_ctx *ctx;
    product p;
} measured;

static double sample(void *user, int kind, int64_t calls) {
    const measured *m = user;
    if (kind < PEERS && !peers[kind].loaded)
        return 0;
    if (options.threads > 1)
        bench_pause(PAUSE_MS);
    const double until = bench_now(options.threads) + (options.threads > 1 ? settle_s : 0);
    do
        run(kind, m->ctx, &m->p); /* wakes the workers, and brings the operands into the cache */
    while (bench_now(options.threads) < until);
    const double start = bench_now(options.threads);
    for (int64_t i = 0; i < calls; i++)
        run(kind, m->ctx, &m->p);
    return (bench_now(options.threads) - start) / (double)calls;
}

static product product_of(const shape *s) {
    product p = {s->trans_a, s->trans_b, 1, s->m, s->n, s->k, NULL, NULL, NULL};
    p.a = bench_uniform(s->m * s->k, 1);
    p.b = bench_uniform(s->k * s->n, UINT64_C(1) << 40);
    p.c = bench_uniform(s->m * s->n, UINT64_C(1) << 41);
    if (!p.a || !p.b || !p.c)
        fprintf(stderr, "exact: no memory for %s\n", s->name), exit(1);
    return p;
}

/* ---- a row ---- */

typedef struct {
    double seconds[KINDS]; /* medians; 0: the library is missing */
    int best;              /* the fastest other library; -1: none is installed */
    double to_best[WAYS];  /* ratio of each fixed product to the best other library */
    double to_ours[WAYS];
} row;

static row measure(ro_ctx *ctx, const shape *s) {
    bench_turns t;
    measured m = {ctx, product_of(s)};
    row x = {.best = -1};
    bench_in_turn(&t, KINDS, options.rounds, sample_s, sample, &m);
    for (int k = 0; k < KINDS; k++) {
        x.seconds[k] = bench_seconds(&t, k);
        if (k < PEERS && x.seconds[k] > 0 && (x.best < 0 || x.seconds[k] < x.seconds[x.best]))
            x.best = k;
    }
    for (int i = 0; i < WAYS; i++) {
        x.to_best[i] = x.best < 0 ? 0 : bench_ratio(&t, x.best, FIXED_24 + i);
        x.to_ours[i] = bench_ratio(&t, FP32, FIXED_24 + i);
    }
    free((void *)m.p.a);
    free((void *)m.p.b);
    free(m.p.c);
    return x;
}

/* ---- tables ---- */

static double gflops(const shape *s, double seconds) {
    return 2e-9 * (double)s->m * (double)s->n * (double)s->k / seconds;
}

static void print_number(double x, const char *format) {
    if (x > 0)
        printf(format, x);
    else
        printf("        -");
}

static void print_header(void) {
    printf("\n%s kernels, %d thread%s. 24 bits by %s, 16 by %s, 8 by %s\n", options.isa,
           options.threads, options.threads > 1 ? "s" : "", engine_of(RO_FIXED_24),
           engine_of(RO_FIXED_16), engine_of(RO_FIXED_8));
    printf("%-29s %2s %-14s %8s %8s %8s %8s %8s  %-8s | FP32's time over that of\n", "", "",
           "GFLOP/s:", "fp32", "fixed24", "fixed16", "fixed8", "best", "");
    printf("%-29s %2s %-14s %44s  %-8s |", "product", "op", "MxNxK", "", "");
    for (int i = 0; i < WAYS; i++)
        printf(" fixed%d: %8s %8s ", way_bits[i], "best", "ours");
    putchar('\n');
}

static void print_row(const shape *s, const row *x) {
    char dims[40];
    snprintf(dims, sizeof dims, "%lldx%lldx%lld", (long long)s->m, (long long)s->n,
             (long long)s->k);
    printf("%-29s %c%c %-14s", s->name, s->trans_a ? 'T' : 'N', s->trans_b ? 'T' : 'N', dims);
    for (int k = FP32; k < KINDS; k++)
        print_number(gflops(s, x->seconds[k]), " %8.1f");
    print_number(x->best < 0 ? 0 : gflops(s, x->seconds[x->best]), " %8.1f");
    printf("  %-8s |", x->best < 0 ? "" : peers[x->best].name);
    for (int i = 0; i < WAYS; i++) {
        printf("%9s", "");
        print_number(x->to_best[i], " %8.3f");
        print_number(x->to_ours[i], " %8.3f");
    }
    putchar('\n');
    fflush(stdout);
}

/* Writes a fixed product beside our own FP32, and beside the best other library. */
static void write_row(const bench_csv *csv, const shape *s, const row *x) {
    char text[120];
    for (int w = 0; w < WAYS; w++) {
        const double seconds = x->seconds[FIXED_24 + w];
        snprintf(text, sizeof text, "%s, fixed%d beside FP32", s->name, way_bits[w]);
        bench_csv_row(csv, text, seconds, x->seconds[FP32]);
        if (x->best < 0)
            continue;
        snprintf(text, sizeof text, "%s, fixed%d beside %s", s->name, way_bits[w],
                 peers[x->best].name);
        bench_csv_row(csv, text, seconds, x->seconds[x->best]);
    }
}

static void table(ro_ctx *ctx, const bench_csv *csv) {
    bench_mean mean[WAYS][2] = {{{0}}}; /* of ratios to the best library, and to ours */
    print_header();
    for (int i = 0; i < SHAPES; i++) {
        if (!strstr(shapes[i].name, options.only))
            continue;
        const row x = measure(ctx, &shapes[i]);
        print_row(&shapes[i], &x);
        write_row(csv, &shapes[i], &x);
        for (int b = 0; b < WAYS; b++) {
            bench_add(&mean[b][0], x.to_best[b]);
            bench_add(&mean[b][1], x.to_ours[b]);
        }
    }
    printf("%-103s |", "geometric mean");
    for (int b = 0; b < WAYS; b++) {
        printf("%9s", "");
        print_number(bench_value(&mean[b][0]), " %8.3f");
        print_number(bench_value(&mean[b][1]), " %8.3f");
    }
    putchar('\n');
}

/* ---- the whole ---- */

static const char usage[] =
    "Usage: exact [--isa avx512|avx2|neon|scalar] [--threads N] [--rounds N] [--only TEXT]\n"
    "             [--csv FILE]\n"
    "Fixed products beside FP32: the better of OpenBLAS, BLIS and oneDNN, those that are\n"
    "installed, held to the same instructions, and our own. Default: the widest that this\n"
    "processor has, 1 thread, 7 rounds, all products.\n"
    "--only: products with TEXT in their names. --csv: lines added to FILE.\n"
    "Example: exact --isa avx2 --threads 2 --only square";

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
    if (!options.isa)
        options.isa = bench_widest();
    peers_environment(options.isa);
    peers_load();
    const ro_options wants = {
        .size = sizeof wants, .backend = options.isa, .threads = options.threads};
    if (ro_ctx_create(&wants, &ctx) != RO_OK)
        return fprintf(stderr, "exact: %s\n", ro_ctx_error(NULL)), 1;
    for (int k = 0; k < PEERS; k++) {
        printf("%s: %s\n", peers[k].name, peers[k].detail);
        if (peers[k].loaded)
            peers[k].threads(options.threads);
    }
    bench_csv csv = bench_csv_open(options.csv, "exact", options.isa, options.threads);
    table(ctx, &csv);
    ro_ctx_destroy(ctx);
    return bench_csv_close(&csv);
}
