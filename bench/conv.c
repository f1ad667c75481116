/* Speed of convolutions, pooling and batch norm beside PyTorch's: the layers of ResNet-50 for CIFAR
 * (He et al., 2015), grouped convolutions, and the layers between convolutions. A ratio is
 * PyTorch's time over ours, the median of the rounds: above 1 we are faster. One thread is measured
 * by its CPU time, several by wall-clock time. With --isa avx2 the peer is limited to AVX2 too.
 * Tables are in Markdown. */
#include "bench/bench.h"
#include "bench/process.h"
#include "repops/repops.h"
#include "repops/op_image.h"
#include "repops/op_reduce.h"

enum { PAUSE_MS = 40, BATCH = 64 };

static const double sample_s = 0.03; /* seconds of one side in a round; at least one call */
static const double settle_s = 0.06; /* woken threads are slow for so long, on either side */

static struct {
    const char *isa, *only, *layer, *python, *csv;
    int threads, rounds, direction;
} options = {NULL, "", "", NULL, NULL, 1, 7, -1};

static ro_ctx *ctx;
static bench_csv csv;
static process peer;

/* ---- one measurement ---- */

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* A call with its own tensors; i32 inputs are indices below `ids`. */
typedef struct {
    ro_call call;
    void *in[RO_MAX_INPUTS], *out;
} work;

static void *tensor(const ro_shape *shape, int ids) {
    const int64_t count = ro_shape_numel(shape);
    float *x = bench_uniform(count, 1);
    for (int64_t i = 0; x && shape->dtype == RO_I32 && i < count; i++)
        ((int32_t *)(void *)x)[i] = (int32_t)(bench_word((uint64_t)i) % (uint64_t)ids);
    if (!x)
        die("out of memory");
    return x;
}

static work open_work(ro_call call, int ids) {
    work w = {.call = call};
    char why[200];
    if (ro_infer(&w.call, why, sizeof why) != RO_OK)
        die(why);
    for (int i = 0; i < call.input_count; i++)
        w.in[i] = tensor(&call.input[i], ids);
    w.out = tensor(&w.call.output, 1);
    return w;
}

static void close_work(work *w) {
    for (int i = 0; i < w->call.input_count; i++)
        free(w->in[i]);
    free(w->out);
}

/* Works that are timed as one, and the question that asks the peer for the same. */
typedef struct {
    work *w;
    int works;
    int64_t calls; /* 0: not yet known */
    const char *question;
} measured;

static double time_of(work *w, int64_t calls) {
    const double start = bench_now(options.threads);
    for (int64_t i = 0; i < calls; i++)
        if (ro_run(ctx, &w->call, (const void *const *)w->in, w->out) != RO_OK)
            die(ro_ctx_error(ctx));
    return (bench_now(options.threads) - start) / (double)calls;
}

static double time_all(const measured *m, int64_t calls) {
    double seconds = 0;
    for (int i = 0; i < m->works; i++)
        seconds += time_of(&m->w[i], calls);
    return seconds;
}

/* Waits after the peer's turn, until its idle threads have stopped polling and ours are awake. */
static void settle(const measured *m) {
    if (options.threads > 1)
        bench_pause(PAUSE_MS);
    const double until = bench_now(options.threads) + settle_s;
    do
        time_all(m, 1);
    while (bench_now(options.threads) < until);
}

static double peer_time(const char *question) {
    char line[100];
    if (!process_ask(&peer, question, line, sizeof line))
        die("the peer is gone");
    return atof(line);
}

enum { OURS, PEER, SIDES };

/* Each side finds out by itself how many calls a sample takes. */
static double sample(void *user, int way, int64_t calls) {
    measured *m = user;
    (void)calls;
    if (way == PEER) {
        const char *question = m->question;
        m->question = "again";
        return peer.pid ? peer_time(question) : 0;
    }
    settle(m);
    if (m->calls == 0)
        m->calls = (int64_t)fmax(1, sample_s / time_all(m, 1));
    return time_all(m, m->calls);
}

typedef struct {
    double ours, ratio; /* medians: seconds; the peer's over ours, 0 without a peer */
} result;

static result measure(work *w, int works, const char *question) {
    bench_turns t;
    measured m = {w, works, 0, question};
    bench_in_turn(&t, SIDES, options.rounds, 0, sample, &m);
    return (result){bench_seconds(&t, OURS), bench_ratio(&t, PEER, OURS)};
}

/* ---- convolutions ---- */

typedef struct {
    const char *table;
    int64_t size, channels, filters, kernel, stride, groups;
} layer;

static const char resnet[] = "ResNet-50's layers", groups[] = "groups";

static const layer layers[] = {
    {resnet, 32, 3, 64, 3, 1, 1},      {resnet, 32, 64, 64, 1, 1, 1},
    {resnet, 32, 64, 64, 3, 1, 1},     {resnet, 32, 64, 256, 1, 1, 1},
    {resnet, 32, 256, 64, 1, 1, 1},    {resnet, 32, 256, 128, 1, 1, 1},
    {resnet, 32, 128, 128, 3, 2, 1},   {resnet, 16, 128, 512, 1, 1, 1},
    {resnet, 32, 256, 512, 1, 2, 1},   {resnet, 16, 512, 128, 1, 1, 1},
    {resnet, 16, 128, 128, 3, 1, 1},   {resnet, 16, 512, 256, 1, 1, 1},
    {resnet, 16, 256, 256, 3, 2, 1},   {resnet, 8, 256, 1024, 1, 1, 1},
    {resnet, 16, 512, 1024, 1, 2, 1},  {resnet, 8, 1024, 256, 1, 1, 1},
    {resnet, 8, 256, 256, 3, 1, 1},    {resnet, 8, 1024, 512, 1, 1, 1},
    {resnet, 8, 512, 512, 3, 2, 1},    {resnet, 4, 512, 2048, 1, 1, 1},
    {resnet, 8, 1024, 2048, 1, 2, 1},  {resnet, 4, 2048, 512, 1, 1, 1},
    {resnet, 4, 512, 512, 3, 1, 1},    {groups, 32, 96, 96, 3, 1, 96},
    {groups, 16, 192, 192, 3, 2, 192}, {groups, 16, 128, 128, 7, 1, 128},
    {groups, 8, 384, 384, 5, 1, 384},  {groups, 16, 128, 128, 3, 1, 32},
};

static double gflop(const layer *l) {
    const int64_t size = l->size / l->stride;
    return 2e-9 * BATCH * (double)(size * size * l->filters * l->kernel * l->kernel) *
           (double)(l->channels / l->groups);
}

static result measure_conv(const layer *l, int direction) {
    const int64_t size = l->size / l->stride, pad = l->kernel / 2;
    const ro_shape x = {RO_F32, 4, {BATCH, l->size, l->size, l->channels}};
    const ro_shape w = {RO_F32, 4, {l->kernel, l->kernel, l->channels / l->groups, l->filters}};
    const ro_shape y = {RO_F32, 4, {BATCH, size, size, l->filters}};
    const ro_shape in[3][2] = {{x, w}, {y, w}, {x, y}}, out[3] = {y, x, w};
    work conv = open_work((ro_call){RO_OP_CONV2D + direction,
                                    2,
                                    {l->stride, l->stride, pad, pad, 1, 1, l->groups},
                                    in[direction],
                                    out[direction]},
                          1);
    char question[160];
    snprintf(question, sizeof question, "conv %d %d %lld %lld %lld %lld %lld %lld", direction,
             BATCH, (long long)l->size, (long long)l->channels, (long long)l->filters,
             (long long)l->kernel, (long long)l->stride, (long long)l->groups);
    const result r = measure(&conv, 1, question);
    close_work(&conv);
    return r;
}

static void name_layer(const layer *l, char *to, size_t size) {
    char in_groups[30] = "";
    if (l->groups > 1)
        snprintf(in_groups, sizeof in_groups, " in %lld", (long long)l->groups);
    snprintf(to, size, "| %lldx%lld | %lld to %lld%s | %lldx%lld%s |", (long long)l->size,
             (long long)l->size, (long long)l->channels, (long long)l->filters, in_groups,
             (long long)l->kernel, (long long)l->kernel, l->stride == 2 ? ", stride 2" : "");
}

static void put_row(const layer *l, int direction, result r) {
    static const char *const directions[] = {"forward", "input gradient", "weight gradient"};
    char row[120];
    snprintf(row, sizeof row, "%lldx%lld, %lld to %lld in %lld, %lldx%lld stride %lld, %s",
             (long long)l->size, (long long)l->size, (long long)l->channels, (long long)l->filters,
             (long long)l->groups, (long long)l->kernel, (long long)l->kernel, (long long)l->stride,
             directions[direction]);
    bench_csv_row(&csv, row, r.ours, r.ratio * r.ours);
}

static void conv_table(const char *table) {
    bench_mean mean[3] = {{0, 0}, {0, 0}, {0, 0}};
    printf("\n%s, B=%d: GFLOP/s, and PyTorch's time / ours\n\n"
           "| image | channels | kernel | forward | | input gradient | | weight gradient | |\n"
           "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
           table, BATCH);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const layer *l = &layers[i];
        char name[100];
        name_layer(l, name, sizeof name);
        if (l->table != table || !strstr(name, options.layer))
            continue;
        printf("%s", name);
        for (int d = 0; d < 3; d++) {
            if (options.direction >= 0 && d != options.direction) {
                printf(" | |");
                continue;
            }
            const result r = measure_conv(l, d);
            bench_add(&mean[d], r.ratio);
            put_row(l, d, r);
            printf(" %.1f | %.2f |", gflop(l) / r.ours, r.ratio);
            fflush(stdout);
        }
        printf("\n");
    }
    printf("| geometric mean | | | | %.2f | | %.2f | | %.2f |\n", bench_value(&mean[0]),
           bench_value(&mean[1]), bench_value(&mean[2]));
}

/* ---- pooling and batch norm ---- */

enum { CHANNELS = 256, SIZE = 16, ROWS = BATCH * SIZE * SIZE };

static const ro_shape image = {RO_F32, 4, {BATCH, SIZE, SIZE, CHANNELS}};
static const ro_shape half = {RO_F32, 4, {BATCH, SIZE / 2, SIZE / 2, CHANNELS}};
static const ro_shape taps = {RO_I32, 4, {BATCH, SIZE / 2, SIZE / 2, CHANNELS}};
static const ro_shape channel = {RO_F32, 1, {CHANNELS}};
static const ro_shape parts = {RO_F32, 2, {ROWS / 64, CHANNELS}};

#define POOL                                                                                       \
    { 3, 3, 2, 2, 1, 1 }

/* Rows of the table: one call or several, and the peer's name for it. */
static const struct {
    const char *name, *question;
    int works;
    struct {
        int op, inputs;
        int64_t attr[RO_MAX_ATTRS];
        const ro_shape *in[RO_MAX_INPUTS], *out;
    } call[3];
} operators[] = {
    {"max pooling 3x3, stride 2", "max_pool 0", 1, {{RO_OP_MAX_POOL2D, 1, POOL, {&image}, NULL}}},
    {"its indices", "max_pool 1", 1, {{RO_OP_MAX_POOL2D_INDEX, 1, POOL, {&image}, NULL}}},
    {"its gradient", "max_pool 2", 1, {{RO_OP_MAX_POOL2D_GRAD, 2, POOL, {&half, &taps}, &image}}},
    {"average pooling 3x3, stride 2",
     "avg_pool 0",
     1,
     {{RO_OP_AVG_POOL2D, 1, POOL, {&image}, NULL}}},
    {"its gradient", "avg_pool 2", 1, {{RO_OP_AVG_POOL2D_GRAD, 1, POOL, {&half}, &image}}},
    {"batch norm, forward",
     "batch_norm 0",
     3,
     {{RO_OP_BN_MEAN, 1, {CHANNELS}, {&image}, &parts},
      {RO_OP_BN_SQDEV, 2, {CHANNELS}, {&image, &parts}, &parts},
      {RO_OP_BATCHNORM, 5, {0}, {&image, &channel, &channel, &channel, &channel}, NULL}}},
    {"batch norm, backward",
     "batch_norm 2",
     3,
     {{RO_OP_SUM_ROWS, 1, {CHANNELS}, {&image}, &parts},
      {RO_OP_BN_DGAMMA, 4, {CHANNELS}, {&image, &image, &channel, &channel}, &parts},
      {RO_OP_BN_DX,
       7,
       {0},
       {&image, &image, &channel, &channel, &channel, &channel, &channel},
       NULL}}},
};

static double bytes_of(const work *w) {
    double bytes = 4.0 * (double)ro_shape_numel(&w->call.output);
    for (int i = 0; i < w->call.input_count; i++)
        bytes += 4.0 * (double)ro_shape_numel(&w->call.input[i]);
    return bytes;
}

/* Bytes per second that a copy reads and writes. */
static double copy_speed(void) {
    static double time[BENCH_ROUNDS];
    const size_t size = (size_t)ROWS * CHANNELS * sizeof(float);
    float *from = bench_uniform(ROWS * CHANNELS, 1), *to = bench_uniform(ROWS * CHANNELS, 2);
    for (int r = 0; from && to && r < options.rounds; r++) {
        const double start = bench_now(1);
        memcpy(to, from, size);
        time[r] = bench_now(1) - start;
    }
    free(from), free(to);
    return 2 * (double)size / bench_median(time, options.rounds);
}

static void operator_table(void) {
    printf("\npooling and batch norm, %dx%dx%dx%d: of the speed of a copy%s, and PyTorch's time / "
           "ours\n\n| operator | GB/s | of a copy | ratio |\n| --- | --- | --- | --- |\n",
           BATCH, SIZE, SIZE, CHANNELS, options.threads > 1 ? " (by one thread)" : "");
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        work w[3];
        ro_shape in[3][RO_MAX_INPUTS];
        double bytes = 0;
        for (int k = 0; k < operators[i].works; k++) {
            ro_call call = {.op = operators[i].call[k].op, .input = in[k]};
            call.input_count = operators[i].call[k].inputs;
            memcpy(call.attr, operators[i].call[k].attr, sizeof call.attr);
            for (int j = 0; j < call.input_count; j++)
                in[k][j] = *operators[i].call[k].in[j];
            if (operators[i].call[k].out)
                call.output = *operators[i].call[k].out;
            w[k] = open_work(call, 9);
            bytes += bytes_of(&w[k]);
        }
        const result r = measure(w, operators[i].works, operators[i].question);
        printf("| %s | %.1f | %.2f | %.2f |\n", operators[i].name, 1e-9 * bytes / r.ours,
               bytes / r.ours / copy_speed(), r.ratio);
        bench_csv_row(&csv, operators[i].question, r.ours, r.ratio * r.ours);
        for (int k = 0; k < operators[i].works; k++)
            close_work(&w[k]);
    }
}

/* ---- the whole ---- */

static const char usage[] =
    "Usage: conv [--isa NAME] [--threads N] [--rounds N] [--only TEXT] [--torch PYTHON]\n"
    "            [--layer TEXT] [--direction N] [--csv FILE]\n"
    "Convolutions, pooling and batch norm; --torch: beside PyTorch, of a Python that has it.\n"
    "--only: tables with TEXT in their names. --layer: rows with TEXT in them, as in\n"
    "\"16x16 | 128 to 512\". --direction: 0 forward, 1 the input's gradient, 2 the weights'.\n"
    "--csv: lines added to FILE.\n"
    "Example: conv --isa avx2 --threads 2 --layer \"128 to 512\" --torch python3";

static void parse(int argc, char **argv) {
    const bench_option known[] = {{"--isa", &options.isa, NULL, 0, 0},
                                  {"--only", &options.only, NULL, 0, 0},
                                  {"--layer", &options.layer, NULL, 0, 0},
                                  {"--torch", &options.python, NULL, 0, 0},
                                  {"--csv", &options.csv, NULL, 0, 0},
                                  {"--threads", NULL, &options.threads, 1, 1024},
                                  {"--rounds", NULL, &options.rounds, 1, BENCH_ROUNDS},
                                  {"--direction", NULL, &options.direction, 0, 2}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
}

static void open_peer(void) {
    char threads[24], line[200];
    snprintf(threads, sizeof threads, "%d", options.threads);
    peer = torch_open((const char *[]){options.python, "bench/conv_torch.py", threads, NULL},
                      options.isa);
    if (!process_ask(&peer, "hello", line, sizeof line))
        die("no peer");
    printf("%s; ", line);
}

int main(int argc, char **argv) {
    parse(argc, argv);
    if (options.python)
        open_peer();
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options),
                                    .backend = options.isa,
                                    .threads = options.threads},
                      &ctx) != RO_OK)
        die(ro_ctx_error(NULL));
    printf("repops %s, %d threads, %d rounds\n", ro_ctx_backend(ctx), options.threads,
           options.rounds);
    csv = bench_csv_open(options.csv, "conv", ro_ctx_backend(ctx), options.threads);
    if (strstr(resnet, options.only))
        conv_table(resnet);
    if (strstr(groups, options.only))
        conv_table(groups);
    if (strstr("pooling and batch norm", options.only))
        operator_table();
    process_close(&peer);
    ro_ctx_destroy(ctx);
    return bench_csv_close(&csv);
}
