/* Speed of conv2d and its gradients on the layers of ResNet-50 for CIFAR (He et al., 2015), beside
 * matmul of the same size and, where a Python with PyTorch is named, PyTorch: best of repeated
 * runs, in GFLOP/s. Usage: conv [backend [threads [python]]]. */
#include "bench/process.h"
#include "repops/repops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 64 };

typedef struct {
    int64_t size, channels, filters, kernel, stride;
} layer;

static const layer layers[] = {
    {32, 3, 64, 3, 1},     {32, 64, 64, 1, 1},   {32, 64, 64, 3, 1},    {32, 64, 256, 1, 1},
    {32, 256, 64, 1, 1},   {32, 256, 128, 1, 1}, {32, 128, 128, 3, 2},  {16, 128, 512, 1, 1},
    {32, 256, 512, 1, 2},  {16, 512, 128, 1, 1}, {16, 128, 128, 3, 1},  {16, 512, 256, 1, 1},
    {16, 256, 256, 3, 2},  {8, 256, 1024, 1, 1}, {16, 512, 1024, 1, 2}, {8, 1024, 256, 1, 1},
    {8, 256, 256, 3, 1},   {8, 1024, 512, 1, 1}, {8, 512, 512, 3, 2},   {4, 512, 2048, 1, 1},
    {8, 1024, 2048, 1, 2}, {4, 2048, 512, 1, 1}, {4, 512, 512, 3, 1},
};

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static float *numbers(int64_t count) {
    float *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; x && i < count; i++)
        x[i] = (float)(i * 7919 % 1000) * 1e-3f - 0.5f;
    return x;
}

/* Seconds of the fastest run within a third of a second or so; exits on failure. */
static double best_time(ro_ctx *ctx, ro_call *call) {
    char why[160];
    if (ro_infer(call, why, sizeof why) != RO_OK) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    float *a = numbers(ro_shape_numel(&call->input[0]));
    float *b = numbers(ro_shape_numel(&call->input[1]));
    float *c = numbers(ro_shape_numel(&call->output));
    const double start = seconds();
    double best = 1e30;
    do {
        const double from = seconds();
        if (!a || !b || !c || ro_run(ctx, call, (const void *[]){a, b}, c) != RO_OK)
            exit(1);
        const double time = seconds() - from;
        best = time < best ? time : best;
    } while (seconds() - start < 0.3);
    free(a);
    free(b);
    free(c);
    return best;
}

typedef struct {
    double conv[3], gemm[3], peer[3]; /* seconds: forward, input gradient, weight gradient */
} times;

/* Seconds; 0: it does not tell. */
static double peer_time(process *peer, int direction, const layer *l) {
    char question[160], line[80];
    snprintf(question, sizeof question, "%d %d %lld %lld %lld %lld %lld", direction, BATCH,
             (long long)l->size, (long long)l->channels, (long long)l->filters,
             (long long)l->kernel, (long long)l->stride);
    return peer->pid && process_ask(peer, question, line, sizeof line) ? atof(line) : 0;
}

static void measure(ro_ctx *ctx, process *peer, const layer *l, times *sum) {
    const int64_t size = l->size / l->stride, pad = l->kernel / 2, m = BATCH * size * size;
    const int64_t n = l->filters, k = l->kernel * l->kernel * l->channels;
    const ro_shape x = {RO_F32, 4, {BATCH, l->size, l->size, l->channels}};
    const ro_shape w = {RO_F32, 4, {l->kernel, l->kernel, l->channels, n}};
    const ro_shape y = {RO_F32, 4, {BATCH, size, size, n}};
    const ro_shape conv_in[3][2] = {{x, w}, {y, w}, {x, y}}, conv_out[3] = {y, x, w};
    const ro_shape a = {RO_F32, 2, {m, k}}, b = {RO_F32, 2, {k, n}}, c = {RO_F32, 2, {m, n}};
    const ro_shape gemm_in[3][2] = {{a, b}, {c, b}, {a, c}};
    const int64_t trans[3] = {0, 2, 1};
    const double work = 2e-9 * (double)m * (double)n * (double)k;
    printf("%2lldx%lld %4lld to %4lld by %lldx%lld, stride %lld ", (long long)l->size,
           (long long)l->size, (long long)l->channels, (long long)n, (long long)l->kernel,
           (long long)l->kernel, (long long)l->stride);
    for (int i = 0; i < 3; i++) {
        ro_call conv = {RO_OP_CONV2D + i,
                        2,
                        {l->stride, l->stride, pad, pad, 1, 1, 1},
                        conv_in[i],
                        conv_out[i]};
        ro_call gemm = {
            RO_OP_MATMUL, 2, {0, trans[i], ro_attr_f32(1), RO_DOT_CHUNK, 0}, gemm_in[i], {0}};
        const double t = best_time(ctx, &conv), g = best_time(ctx, &gemm);
        const double p = peer_time(peer, i, l);
        printf("%8.1f %6.1f %5.2f", work / t, work / g, g / t);
        if (p > 0)
            printf(" %6.1f %5.2f", work / p, p / t);
        sum->peer[i] += p;
        fflush(stdout);
        sum->conv[i] += t;
        sum->gemm[i] += g;
    }
    printf("\n");
}

int main(int argc, char **argv) {
    const ro_options options = {.backend = argc > 1 ? argv[1] : NULL,
                                .threads = argc > 2 ? atoi(argv[2]) : 1};
    ro_ctx *ctx;
    times sum = {{0}, {0}, {0}};
    process peer = {0};
    char line[200];
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    if (argc > 3) {
        char threads[24];
        snprintf(threads, sizeof threads, "%d", ro_ctx_threads(ctx));
        peer = process_open((const char *[]){argv[3], "bench/conv_torch.py", threads, NULL});
        if (process_ask(&peer, "hello", line, sizeof line))
            printf("peer: %s\n", line);
        else
            process_close(&peer);
    }
    const int width = peer.pid ? 35 : 22;
    printf("%s, %d threads; each: convolution, product of the same size, its time / ours%s\n"
           "%-37s %-*s%-*s%s\n",
           ro_ctx_backend(ctx), ro_ctx_threads(ctx), peer.pid ? "; the same of PyTorch" : "", "",
           width, "forward", width, "input gradient", "weight gradient");
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        measure(ctx, &peer, &layers[i], &sum);
    for (int i = 0; i < 3; i++)
        printf("%s%.1f ms, products %.1f ms", i ? "; " : "sum: ", 1e3 * sum.conv[i],
               1e3 * sum.gemm[i]);
    printf("\n");
    if (peer.pid)
        printf("PyTorch's time / ours: forward %.2f, input gradient %.2f, weight gradient %.2f\n",
               sum.peer[0] / sum.conv[0], sum.peer[1] / sum.conv[1], sum.peer[2] / sum.conv[2]);
    process_close(&peer);
    ro_ctx_destroy(ctx);
    return 0;
}
