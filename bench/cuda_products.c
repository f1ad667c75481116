/* Products of matrices beside cuBLAS: squares, and the products of a step of GPT-2 124M (B=8,
 * T=1024) and of ResNet-50. */
#include "repops/op_product.h"
#include "bench/cuda.h"
#include "bench/cuda_blas.h"
#include "verde/base/base.h"

#include <math.h>
#include <stdio.h>

typedef struct {
    const char *name;
    int trans; /* bit 0: a is k x m; bit 1: b is n x k */
    int64_t m, n, k;
    double floor;
    int bits; /* of a fixed product; 0: FP32 */
} shape;

static const shape shapes[] = {
    {"square 1024", 0, 1024, 1024, 1024, 0.95},
    {"square 2048", 0, 2048, 2048, 2048, 0.95},
    {"square 4096", 0, 4096, 4096, 4096, 0.95},
    {"square 8192", 0, 8192, 8192, 8192, 0.95},
    {"gpt2 qkv", 0, 8192, 2304, 768, 0.9},
    {"gpt2 projection", 0, 8192, 768, 768, 0.9},
    {"gpt2 up", 0, 8192, 3072, 768, 0.9},
    {"gpt2 down", 0, 8192, 768, 3072, 0.9},
    {"gpt2 up, dw", 1, 768, 3072, 8192, 0.9},
    {"gpt2 down, dx", 2, 8192, 3072, 768, 0.9},
    {"gpt2 logits", 2, 8192, 50257, 768, 0.9},
    {"gpt2 logits, dx", 0, 8192, 768, 50257, 0.9},
    {"gpt2 logits, dw", 1, 50257, 768, 8192, 0.9},
    {"resnet50 stage 1, 1x1", 0, 65536, 256, 64, 0.9},
    {"resnet50 stage 2, 1x1", 0, 16384, 512, 128, 0.9},
    {"resnet50 stage 3, 1x1", 0, 4096, 1024, 256, 0.9},
    {"resnet50 stage 4, 1x1", 0, 1024, 2048, 512, 0.9},
    {"resnet50 stage 4, dw", 1, 512, 2048, 1024, 0.9},
};
static const shape small_shapes[] = {
    {"square 64", 0, 64, 64, 64, 0.95},
    {"weight gradient", 1, 40, 48, 300, 0.9},
};

/* Fixed products, as exact sums of integers on matrix units, beside FP32. */
static const shape fixed_shapes[] = {
    {"fixed24 2048", 0, 2048, 2048, 2048, 1, 24},
    {"fixed24 4096", 0, 4096, 4096, 4096, 1, 24},
    {"fixed24 8192", 0, 8192, 8192, 8192, 1, 24},
    {"fixed24 gpt2 up", 0, 8192, 3072, 768, 1, 24},
    {"fixed24 gpt2 up, dw", 1, 768, 3072, 8192, 1, 24},
    {"fixed24 gpt2 logits", 2, 8192, 50257, 768, 1, 24},
    {"fixed16 2048", 0, 2048, 2048, 2048, 1, 16},
    {"fixed16 4096", 0, 4096, 4096, 4096, 1, 16},
    {"fixed16 8192", 0, 8192, 8192, 8192, 1, 16},
    {"fixed16 gpt2 up", 0, 8192, 3072, 768, 1, 16},
    {"fixed16 gpt2 up, dw", 1, 768, 3072, 8192, 1, 16},
    {"fixed16 gpt2 logits", 2, 8192, 50257, 768, 1, 16},
    {"fixed8 2048", 0, 2048, 2048, 2048, 0, 8},
    {"fixed8 4096", 0, 4096, 4096, 4096, 0, 8},
    {"fixed8 8192", 0, 8192, 8192, 8192, 0, 8},
    {"fixed8 gpt2 up", 0, 8192, 3072, 768, 0, 8},
    {"fixed8 gpt2 up, dw", 1, 768, 3072, 8192, 0, 8},
    {"fixed8 gpt2 logits", 2, 8192, 50257, 768, 0, 8},
};
static const shape small_fixed_shapes[] = {
    {"fixed24 64", 0, 64, 64, 64, 1, 24},
    {"fixed16 64", 0, 64, 64, 64, 1, 16},
    {"fixed8 64", 0, 64, 64, 64, 0, 8},
};

typedef struct {
    const bench *b;
    const shape *s;
    const float *x, *y;
    float *out;
    ro_shape in[2];
    ro_call call;
} work;

static int run_ours(void *user, int times) {
    work *w = user;
    for (int i = 0; i < times; i++)
        if (ro_run(w->b->ctx, &w->call, (const void *[]){w->x, w->y}, w->out) != RO_OK)
            return 0;
    return ro_wait(w->b->ctx) == RO_OK;
}

static int run_theirs(void *user, int times) {
    const work *w = user;
    for (int i = 0; i < times; i++)
        if (!blas_product(w->s->trans, w->s->m, w->s->n, w->s->k, w->x, w->y, w->out))
            return 0;
    return blas_wait();
}

enum { LOOKED_AT = 4096 };

/* Returns the distance of the first elements of both results, relative, by root mean squares: about
 * 1e-6 in FP32, 1e-3 in TF32, and 1 for another product. -1: unknown. */
static double distance(work *w) {
    static float ours[LOOKED_AT], theirs[LOOKED_AT];
    const int64_t all = w->s->m * w->s->n;
    const size_t count = all < LOOKED_AT ? (size_t)all : LOOKED_AT;
    double apart = 0, size = 0;
    if (!run_ours(w, 1) || ro_read(w->b->ctx, ours, w->out, count * sizeof *ours) != RO_OK ||
        !run_theirs(w, 1) || ro_read(w->b->ctx, theirs, w->out, count * sizeof *theirs) != RO_OK)
        return -1;
    for (size_t i = 0; i < count; i++) {
        apart += ((double)ours[i] - (double)theirs[i]) * ((double)ours[i] - (double)theirs[i]);
        size += (double)ours[i] * (double)ours[i];
    }
    return sqrt(apart / (size > 0 ? size : 1));
}

static work work_of(const bench *b, const shape *s) {
    const int at = s->trans & 1, bt = s->trans & 2;
    return (work){.b = b,
                  .s = s,
                  .x = bench_memory(b, s->m * s->k),
                  .y = bench_memory(b, s->k * s->n),
                  .out = bench_memory(b, s->m * s->n),
                  .in = {{RO_F32, 2, {at ? s->k : s->m, at ? s->m : s->k}},
                         {RO_F32, 2, {bt ? s->n : s->k, bt ? s->k : s->n}}}};
}

static int infer(work *w, char *why, size_t size) {
    if (w->s->bits)
        w->call =
            (ro_call){RO_OP_MATMUL_FIXED, 2, {0, w->s->trans, ro_attr_f32(1), w->s->bits}, w->in};
    else
        w->call = (ro_call){RO_OP_MATMUL, 2, {0, w->s->trans, ro_attr_f32(1), 256, 0}, w->in};
    return ro_infer(&w->call, why, size) == RO_OK;
}

static void free_work(const work *w) {
    ro_free(w->b->ctx, (void *)(uintptr_t)w->x);
    ro_free(w->b->ctx, (void *)(uintptr_t)w->y);
    ro_free(w->b->ctx, w->out);
}

void bench_warm(const bench *b) {
    static const shape square = {"before all", 0, 4096, 4096, 4096, 0};
    const double start = vd_seconds();
    char why[80];
    work w = work_of(b, &square);
    if (infer(&w, why, sizeof why))
        while (vd_seconds() - start < 0.5 && run_ours(&w, 4))
            ;
    free_work(&w);
}

static void bench_product(const bench *b, const shape *s) {
    char note[80];
    double ours, theirs;
    work w = work_of(b, s);
    if (!infer(&w, note, sizeof note)) {
        bench_failed(b, s->name, note);
        return;
    }
    bench_times(b, (turn){run_ours, &w}, (turn){b->blas ? run_theirs : NULL, &w}, &ours, &theirs);
    const int size = snprintf(note, sizeof note, "%.1f TFLOP/s",
                              2e-12 * (double)s->m * (double)s->n * (double)s->k / ours);
    if (theirs > 0)
        snprintf(note + size, sizeof note - (size_t)size, ", %.1e from theirs", distance(&w));
    bench_row(b, s->name, 1e3 * ours, 1e3 * theirs, theirs > 0 ? theirs / ours : 0, s->floor, note);
    free_work(&w);
}

static void bench_shapes(const bench *b, const shape *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        bench_product(b, &list[i]);
}

void bench_products(const bench *b) {
    if (b->small)
        bench_shapes(b, small_shapes, sizeof small_shapes / sizeof *small_shapes);
    else
        bench_shapes(b, shapes, sizeof shapes / sizeof *shapes);
}

void bench_fixed(const bench *b) {
    if (b->small)
        bench_shapes(b, small_fixed_shapes, sizeof small_fixed_shapes / sizeof *small_fixed_shapes);
    else
        bench_shapes(b, fixed_shapes, sizeof fixed_shapes / sizeof *fixed_shapes);
}
