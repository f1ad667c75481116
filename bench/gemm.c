/* Speed of matmul: best of repeated runs, in GFLOP/s. Usage: gemm [backend [threads]]. */
#include "repops/repops.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    const char *name;
    int64_t batch, m, n, k;
    int trans, mask, chunk;
} shape;

static const shape shapes[] = {
    {"square 512", 1, 512, 512, 512, 0, RO_MASK_NONE, 256},
    {"square 1024", 1, 1024, 1024, 1024, 0, RO_MASK_NONE, 256},
    {"square 2048", 1, 2048, 2048, 2048, 0, RO_MASK_NONE, 256},
    {"layer 1024x1536x384", 1, 1024, 1536, 384, 0, RO_MASK_NONE, 256},
    {"layer 1024x384x1536", 1, 1024, 384, 1536, 0, RO_MASK_NONE, 256},
    {"weight gradient", 1, 384, 1536, 1024, 1, RO_MASK_NONE, 256},
    {"input gradient", 1, 1024, 384, 1536, 2, RO_MASK_NONE, 256},
    {"96 of 64^3", 96, 64, 64, 64, 0, RO_MASK_NONE, 256},
    {"scores, 24 heads of 256", 24, 256, 256, 64, 2, RO_MASK_NONE, 256},
    {"dQ, 24 heads of 256", 24, 256, 64, 256, 0, RO_MASK_UPTO_ROW, 128},
    {"dV, 24 heads of 256", 24, 256, 64, 256, 1, RO_MASK_FROM_ROW, 128},
    {"row 1x768x2304", 1, 1, 768, 2304, 0, RO_MASK_NONE, 256},
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

/* Seconds of the fastest run within a second or so; negative on failure. */
static double best_time(ro_ctx *ctx, const ro_call *call, const void *const *in, void *out) {
    const double start = seconds();
    double best = -1;
    do {
        const double from = seconds();
        if (ro_run(ctx, call, in, out) != RO_OK)
            return -1;
        const double time = seconds() - from;
        best = best < 0 || time < best ? time : best;
    } while (seconds() - start < 1);
    return best;
}

static int measure(ro_ctx *ctx, const shape *s) {
    const ro_shape in[2] = {
        {RO_F32, 3, {s->batch, s->trans & 1 ? s->k : s->m, s->trans & 1 ? s->m : s->k}},
        {RO_F32, 3, {s->batch, s->trans & 2 ? s->n : s->k, s->trans & 2 ? s->k : s->n}}};
    ro_call call = {RO_OP_MATMUL, 2, {1, s->trans, ro_attr_f32(1), s->chunk, s->mask}, in, {0}};
    char why[160];
    if (ro_infer(&call, why, sizeof why) != RO_OK)
        return fprintf(stderr, "%s: %s\n", s->name, why), 1;
    float *a = numbers(ro_shape_numel(&in[0])), *b = numbers(ro_shape_numel(&in[1]));
    float *c = numbers(ro_shape_numel(&call.output));
    const double time = a && b && c ? best_time(ctx, &call, (const void *[]){a, b}, c) : -1;
    const double work = 2e-9 * (double)(s->batch * s->m * s->n * s->k) / (s->mask ? 2 : 1);
    printf("%-26s %8.1f GFLOP/s %10.1f us\n", s->name, work / time, 1e6 * time);
    free(a);
    free(b);
    free(c);
    return time < 0;
}

int main(int argc, char **argv) {
    const ro_options options = {.backend = argc > 1 ? argv[1] : NULL,
                                .threads = argc > 2 ? atoi(argv[2]) : 1};
    ro_ctx *ctx;
    int failed = 0;
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    printf("%s, %d threads\n", ro_ctx_backend(ctx), ro_ctx_threads(ctx));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        failed |= measure(ctx, &shapes[i]);
    ro_ctx_destroy(ctx);
    return failed;
}
