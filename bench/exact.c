/* Fixed products of 24, 16 and 8 bits, whose sums are exact, beside products in FP32: the better of
 * OpenBLAS, BLIS and oneDNN, those that are installed, and our own.
 *
 * Usage: exact [--isa avx512|avx2|neon|scalar] [--threads N] [--rounds N] [--only TEXT] [--json
 * FILE]
 *
 * Each round times every library and every kind of product once, in turn, so that a slow moment of
 * the machine meets all of them. A ratio is FP32's time over the fixed product's, the median of the
 * rounds: above 1 the fixed product is faster. One thread is measured by its own CPU time, several
 * by the wall's. */
#include "repops/op_product.h"
#include "bench/bench.h"
#include "bench/peers.h"

enum { FP32 = PEERS, FIXED_24, FIXED_16, FIXED_8, KINDS, MAX_ROUNDS = 99, PAUSE_MS = 40 };
enum { WAYS = KINDS - FIXED_24 };

static const int way_bits[WAYS] = {RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};

static const double sample_s = 0.02; /* of one kind in one round, at least one call */
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
    const char *isa, *only, *json;
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

/* Seconds of a call. */
static double sample(int kind, ro_ctx *ctx, const product *p, int64_t calls) {
    if (options.threads > 1)
        bench_pause(PAUSE_MS);
    const double until = bench_now(options.threads) + (options.threads > 1 ? settle_s : 0);
    do
        run(kind, ctx, p); /* wakes the workers up, brings the operands to a cache */
    while (bench_now(options.threads) < until);
    const double start = bench_now(options.threads);
    for (int64_t i = 0; i < calls; i++)
        run(kind, ctx, p);
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
    double to_best[WAYS];  /* ratios of each number of bits */
    double to_ours[WAYS];
} row;

static double ratio_of(double time[KINDS][MAX_ROUNDS], int to, int kind) {
    double ratio[MAX_ROUNDS];
    for (int r = 0; r < options.rounds; r++)
        ratio[r] = time[to][r] / time[kind][r];
    return bench_median(ratio, options.rounds);
}

static void time_all(ro_ctx *ctx, const shape *s, double time[KINDS][MAX_ROUNDS]) {
    int64_t calls[KINDS] = {0};
    product p = product_of(s);
    for (int k = 0; k < KINDS; k++)
        if (k >= PEERS || peers[k].loaded)
            calls[k] = (int64_t)fmax(1, sample_s / sample(k, ctx, &p, 1));
    for (int r = 0; r < options.rounds; r++)
        for (int i = 0; i < KINDS; i++) {
            const int k = (i + r) % KINDS;
            time[k][r] = calls[k] ? sample(k, ctx, &p, calls[k]) : 0;
        }
    free((void *)p.a);
    free((void *)p.b);
    free(p.c);
}

static row measure(ro_ctx *ctx, const shape *s) {
    static double time[KINDS][MAX_ROUNDS];
    row x = {.best = -1};
    time_all(ctx, s, time);
    for (int k = 0; k < KINDS; k++) {
        double sorted[MAX_ROUNDS];
        memcpy(sorted, time[k], sizeof sorted);
        x.seconds[k] = bench_median(sorted, options.rounds);
        if (k < PEERS && x.seconds[k] > 0 && (x.best < 0 || x.seconds[k] < x.seconds[x.best]))
            x.best = k;
    }
    for (int i = 0; i < WAYS; i++) {
        x.to_best[i] = x.best < 0 ? 0 : ratio_of(time, x.best, FIXED_24 + i);
        x.to_ours[i] = ratio_of(time, FP32, FIXED_24 + i);
    }
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

/* Names are words without quotes. */
static void write_row(FILE *json, const shape *s, const row *x) {
    if (!json)
        return;
    fprintf(json,
            "{\"benchmark\": \"exact\", \"isa\": \"%s\", \"threads\": %d, \"engine24\": \"%s\", "
            "\"engine16\": \"%s\", \"engine8\": \"%s\", \"product\": \"%s\", \"trans_a\": %d, "
            "\"trans_b\": %d, "
            "\"m\": %lld, \"n\": %lld, \"k\": %lld, \"rounds\": %d",
            options.isa, options.threads, engine_of(RO_FIXED_24), engine_of(RO_FIXED_16),
            engine_of(RO_FIXED_8), s->name, s->trans_a, s->trans_b, (long long)s->m,
            (long long)s->n, (long long)s->k, options.rounds);
    for (int k = 0; k < PEERS; k++)
        if (x->seconds[k] > 0)
            fprintf(json, ", \"%s_s\": %.6g", peers[k].name, x->seconds[k]);
    fprintf(json, ", \"fp32_s\": %.6g", x->seconds[FP32]);
    for (int w = 0; w < WAYS; w++) {
        fprintf(json, ", \"fixed%d_s\": %.6g, \"fixed%d_to_fp32\": %.4f", way_bits[w],
                x->seconds[FIXED_24 + w], way_bits[w], x->to_ours[w]);
        if (x->best >= 0)
            fprintf(json, ", \"fixed%d_to_best\": %.4f", way_bits[w], x->to_best[w]);
    }
    if (x->best >= 0)
        fprintf(json, ", \"best\": \"%s\"", peers[x->best].name);
    fprintf(json, "}\n");
    fflush(json);
}

static void table(ro_ctx *ctx, FILE *json) {
    bench_mean mean[WAYS][2] = {{{0}}}; /* to the best, to ours */
    print_header();
    for (int i = 0; i < SHAPES; i++) {
        if (!strstr(shapes[i].name, options.only))
            continue;
        const row x = measure(ctx, &shapes[i]);
        print_row(&shapes[i], &x);
        write_row(json, &shapes[i], &x);
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
    "             [--json FILE]\n"
    "Fixed products beside FP32: the better of OpenBLAS, BLIS and oneDNN, those that are\n"
    "installed, held to the same instructions, and our own. Default: the widest that this\n"
    "processor has, 1 thread, 7 rounds, all products.\n"
    "--only: products with TEXT in their names. --json: an object a line, added to FILE.\n"
    "Example: exact --isa avx2 --threads 2 --only square";

static void parse(int argc, char **argv) {
    const bench_option known[] = {{"--isa", &options.isa, NULL, 0, 0},
                                  {"--only", &options.only, NULL, 0, 0},
                                  {"--json", &options.json, NULL, 0, 0},
                                  {"--threads", NULL, &options.threads, 1, 1024},
                                  {"--rounds", NULL, &options.rounds, 1, MAX_ROUNDS}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
}

int main(int argc, char **argv) {
    ro_ctx *ctx;
    parse(argc, argv);
    FILE *json = options.json ? fopen(options.json, "a") : NULL;
    if (options.json && !json)
        return perror(options.json), 1;
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
    table(ctx, json);
    ro_ctx_destroy(ctx);
    return json && fclose(json) != 0;
}
