/* Fixed convolutions of 24, 16 and 8 bits beside our own in FP32: ResNet-50 for images of 224 x
 * 224, layers of few channels, and groups.
 *
 * Usage: exact_conv [--isa avx512|avx2|neon|scalar] [--threads N] [--rounds N] [--batch N]
 *                   [--only TEXT] [--csv FILE]
 *
 * Each round times every kind once, in turn, so that a slow moment of the machine affects all of
 * them. A ratio is FP32's time over the fixed convolution's, from the least times of all rounds,
 * since other work only ever adds to a time. One thread is measured by its CPU time, several by
 * wall-clock time. The table is in Markdown. */
#include "repops/op_image.h"
#include "bench/bench.h"

enum { FP32, FIXED_24, FIXED_16, FIXED_8, KINDS, DIRECTIONS = 3 };

static const int bits_of[KINDS] = {0, RO_FIXED_24, RO_FIXED_16, RO_FIXED_8};

static const double sample_s = 0.02; /* seconds of one kind in a round; at least one call */

static struct {
    const char *isa, *only, *csv;
    int threads, rounds, batch;
} options = {NULL, "", NULL, 1, 5, 8};

typedef struct {
    const char *table;
    int64_t size, channels, filters, kernel, stride, groups;
    int times; /* how often the net has this layer */
} layer;

static const char resnet[] = "ResNet-50", few[] = "few channels", groups[] = "groups";

static const layer layers[] = {
    {resnet, 224, 3, 64, 7, 2, 1, 1},     {resnet, 56, 64, 64, 1, 1, 1, 1},
    {resnet, 56, 256, 64, 1, 1, 1, 2},    {resnet, 56, 64, 64, 3, 1, 1, 3},
    {resnet, 56, 64, 256, 1, 1, 1, 4},    {resnet, 56, 256, 128, 1, 1, 1, 1},
    {resnet, 28, 512, 128, 1, 1, 1, 3},   {resnet, 56, 128, 128, 3, 2, 1, 1},
    {resnet, 28, 128, 128, 3, 1, 1, 3},   {resnet, 28, 128, 512, 1, 1, 1, 4},
    {resnet, 56, 256, 512, 1, 2, 1, 1},   {resnet, 28, 512, 256, 1, 1, 1, 1},
    {resnet, 14, 1024, 256, 1, 1, 1, 5},  {resnet, 28, 256, 256, 3, 2, 1, 1},
    {resnet, 14, 256, 256, 3, 1, 1, 5},   {resnet, 14, 256, 1024, 1, 1, 1, 6},
    {resnet, 28, 512, 1024, 1, 2, 1, 1},  {resnet, 14, 1024, 512, 1, 1, 1, 1},
    {resnet, 7, 2048, 512, 1, 1, 1, 2},   {resnet, 14, 512, 512, 3, 2, 1, 1},
    {resnet, 7, 512, 512, 3, 1, 1, 2},    {resnet, 7, 512, 2048, 1, 1, 1, 3},
    {resnet, 14, 1024, 2048, 1, 2, 1, 1}, {few, 32, 3, 64, 3, 1, 1, 1},
    {few, 32, 3, 16, 3, 1, 1, 1},         {few, 32, 16, 16, 3, 1, 1, 1},
    {few, 32, 16, 32, 3, 2, 1, 1},        {few, 32, 32, 32, 3, 1, 1, 1},
    {few, 64, 8, 32, 5, 1, 1, 1},         {groups, 28, 128, 128, 3, 1, 32, 1},
    {groups, 28, 96, 96, 3, 1, 96, 1},
};

static void die(const char *what) {
    fprintf(stderr, "exact_conv: %s\n", what);
    exit(1);
}

typedef struct {
    ro_ctx *ctx;
    ro_call call[KINDS];
    ro_shape in[2];
    float *data[2], *out;
} work;

static work open_work(const layer *l, int direction) {
    const int64_t size = l->size / l->stride, pad = l->kernel / 2;
    const ro_shape x = {RO_F32, 4, {options.batch, l->size, l->size, l->channels}};
    const ro_shape w = {RO_F32, 4, {l->kernel, l->kernel, l->channels / l->groups, l->filters}};
    const ro_shape y = {RO_F32, 4, {options.batch, size, size, l->filters}};
    const ro_shape in[DIRECTIONS][2] = {{x, w}, {y, w}, {x, y}}, out[DIRECTIONS] = {y, x, w};
    work c = {.in = {in[direction][0], in[direction][1]}};
    for (int k = 0; k < KINDS; k++) {
        const int op = k == FP32 ? RO_OP_CONV2D : RO_OP_CONV2D_FIXED;
        c.call[k] = (ro_call){op + direction,
                              2,
                              {l->stride, l->stride, pad, pad, 1, 1, l->groups},
                              NULL,
                              out[direction]};
        if (k != FP32)
            c.call[k].attr[RO_CONV_FIXED_BITS] = bits_of[k];
    }
    for (int i = 0; i < 2; i++)
        c.data[i] = bench_normal(ro_shape_numel(&c.in[i]), (uint64_t)(i + 1) << 40);
    c.out = bench_uniform(ro_shape_numel(&out[direction]), 1);
    if (!c.data[0] || !c.data[1] || !c.out)
        die("out of memory");
    return c;
}

static void close_work(work *w) {
    free(w->data[0]), free(w->data[1]), free(w->out);
}

static double sample(void *user, int kind, int64_t calls) {
    work *w = user;
    char why[200];
    w->call[kind].input = w->in;
    if (ro_infer(&w->call[kind], why, sizeof why) != RO_OK)
        die(why);
    const double start = bench_now(options.threads);
    for (int64_t i = 0; i < calls; i++)
        if (ro_run(w->ctx, &w->call[kind], (const void *[]){w->data[0], w->data[1]}, w->out) !=
            RO_OK)
            die(ro_ctx_error(w->ctx));
    return (bench_now(options.threads) - start) / (double)calls;
}

typedef struct {
    double seconds[KINDS]; /* the least of all rounds */
} row;

static row measure(ro_ctx *ctx, const layer *l, int direction) {
    work w = open_work(l, direction);
    bench_turns t;
    row x;
    w.ctx = ctx;
    bench_in_turn(&t, KINDS, options.rounds, sample_s, sample, &w);
    for (int k = 0; k < KINDS; k++)
        x.seconds[k] = bench_least(&t, k);
    close_work(&w);
    return x;
}

/* ---- tables ---- */

static double gflop(const layer *l) {
    const int64_t size = l->size / l->stride;
    return 2e-9 * options.batch * (double)(size * size * l->filters * l->kernel * l->kernel) *
           (double)(l->channels / l->groups);
}

static void name_layer(const layer *l, char *to, size_t size) {
    char in_groups[30] = "", stride[30] = "";
    if (l->groups > 1)
        snprintf(in_groups, sizeof in_groups, " in %lld", (long long)l->groups);
    if (l->stride > 1)
        snprintf(stride, sizeof stride, " by %lld", (long long)l->stride);
    snprintf(to, size, "%lld, %lldx%lld%s, %lld to %lld%s", (long long)l->size,
             (long long)l->kernel, (long long)l->kernel, stride, (long long)l->channels,
             (long long)l->filters, in_groups);
}

static void write_row(const bench_csv *csv, const char *name, int direction, const row *x) {
    static const char *const directions[] = {"forward", "dx", "dw"};
    for (int k = FIXED_24; k < KINDS; k++) {
        char text[140];
        snprintf(text, sizeof text, "%s, %s, fixed%d", name, directions[direction], bits_of[k]);
        bench_csv_row(csv, text, x->seconds[k], x->seconds[FP32]);
    }
}

static void put_ratios(const row *x) {
    for (int k = FIXED_24; k < KINDS; k++)
        printf(" | %.2f", x->seconds[FP32] / x->seconds[k]);
}

/* sum: total of all layers, each as often as the net has it. */
static void put_row(ro_ctx *ctx, const bench_csv *csv, const layer *l, const char *name,
                    row sum[DIRECTIONS]) {
    printf("| %s", name);
    for (int d = 0; d < DIRECTIONS; d++) {
        const row x = measure(ctx, l, d);
        printf(" | %.1f", gflop(l) / x.seconds[FP32]);
        put_ratios(&x);
        write_row(csv, name, d, &x);
        for (int k = 0; k < KINDS; k++)
            sum[d].seconds[k] += l->times * x.seconds[k];
        fflush(stdout);
    }
    printf(" |\n");
}

static void put_table(ro_ctx *ctx, const bench_csv *csv, const char *table) {
    row sum[DIRECTIONS] = {{{0}}};
    int rows = 0;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        char name[100];
        name_layer(&layers[i], name, sizeof name);
        if (layers[i].table != table ||
            !(strstr(name, options.only) || strstr(table, options.only)))
            continue;
        if (rows++ == 0)
            printf("\n%s, B=%d: GFLOP/s of FP32, and its time over that of 24, 16 and 8 "
                   "bits\n\n"
                   "| layer | forward | 24 | 16 | 8 | dx | 24 | 16 | 8 | dw | 24 | 16 | 8 |\n"
                   "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | "
                   "---: | ---: |\n",
                   table, options.batch);
        put_row(ctx, csv, &layers[i], name, sum);
    }
    if (table != resnet || rows == 0)
        return;
    printf("| all, as often as the net has them");
    for (int d = 0; d < DIRECTIONS; d++) {
        printf(" | ");
        put_ratios(&sum[d]);
    }
    printf(" |\n");
}

/* ---- the whole ---- */

static const char usage[] =
    "Usage: exact_conv [--isa avx512|avx2|neon|scalar] [--threads N] [--rounds N] [--batch N]\n"
    "                  [--only TEXT] [--csv FILE]\n"
    "Fixed convolutions beside FP32. Default: the widest instructions that this processor has,\n"
    "1 thread, 5 rounds, 8 images, all layers.\n"
    "--only: tables or layers with TEXT in their names. --csv: lines added to FILE.\n"
    "Example: exact_conv --isa avx2 --threads 2 --only \"few channels\"";

static void parse(int argc, char **argv) {
    const bench_option known[] = {
        {"--isa", &options.isa, NULL, 0, 0},        {"--only", &options.only, NULL, 0, 0},
        {"--csv", &options.csv, NULL, 0, 0},        {"--threads", NULL, &options.threads, 1, 1024},
        {"--rounds", NULL, &options.rounds, 1, 99}, {"--batch", NULL, &options.batch, 1, 1024}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
}

int main(int argc, char **argv) {
    ro_ctx *ctx;
    parse(argc, argv);
    const ro_options wants = {
        .size = sizeof wants, .backend = options.isa, .threads = options.threads};
    if (ro_ctx_create(&wants, &ctx) != RO_OK)
        die(ro_ctx_error(NULL));
    printf("repops %s, %d threads, %d rounds\n", ro_ctx_backend(ctx), options.threads,
           options.rounds);
    bench_csv csv = bench_csv_open(options.csv, "exact_conv", ro_ctx_backend(ctx), options.threads);
    const char *const tables[] = {resnet, few, groups};
    for (int t = 0; t < 3; t++)
        put_table(ctx, &csv, tables[t]);
    ro_ctx_destroy(ctx);
    return bench_csv_close(&csv);
}
