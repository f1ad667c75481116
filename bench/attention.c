/* Speed of fused attention, forward and backward, and of the operators one by one: best of repeated
 * runs. Usage: attention [backend [threads [heads]]]. bench/attention_torch.py measures PyTorch on
 * the same shapes. */
#include "repops/fused.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HEAD_SIZE = 64, TENSORS = 10 };

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

typedef struct {
    ro_ctx *ctx;
    ro_attention a;
    float *x[TENSORS]; /* q k v out m l dout dq dk dv */
} problem;

static ro_status forward(const problem *p) {
    return ro_attention_forward(p->ctx, &p->a, p->x[0], p->x[1], p->x[2], p->x[3], p->x[4],
                                p->x[5]);
}

static ro_status backward(const problem *p) {
    return ro_attention_backward(p->ctx, &p->a, p->x[0], p->x[1], p->x[2], p->x[3], p->x[4],
                                 p->x[5], p->x[6], p->x[7], p->x[8], p->x[9]);
}

/* Seconds of the fastest run within half a second or so; negative on failure. */
static double best_time(const problem *p, ro_status (*run)(const problem *)) {
    const double start = seconds();
    double best = -1;
    do {
        const double from = seconds();
        if (run(p) != RO_OK)
            return -1;
        const double time = seconds() - from;
        best = best < 0 || time < best ? time : best;
    } while (seconds() - start < 0.5);
    return best;
}

static int measure(problem *p) {
    const ro_attention *a = &p->a;
    const int64_t rows = a->batch * a->heads * a->queries;
    int failed = 0;
    for (int i = 0; i < TENSORS; i++) {
        p->x[i] = numbers(i == 4 || i == 5 ? rows : rows * HEAD_SIZE);
        failed |= !p->x[i];
    }
    const double there = failed ? -1 : best_time(p, forward);
    const double back = failed ? -1 : best_time(p, backward);
    /* Multiply-adds of the products that the mask leaves. */
    const double pairs = (double)rows * (double)(a->causal ? a->queries + 1 : 2 * a->queries) / 2;
    const double work = 2e-9 * pairs * HEAD_SIZE;
    printf("%-7s B=%-3lld H=%-3lld T=%-5lld forward %9.3f ms %6.1f GFLOP/s  backward %9.3f ms "
           "%6.1f GFLOP/s\n",
           a->causal ? "causal" : "full", (long long)a->batch, (long long)a->heads,
           (long long)a->queries, 1e3 * there, 2 * work / there, 1e3 * back, 5 * work / back);
    for (int i = 0; i < TENSORS; i++)
        free(p->x[i]);
    return there < 0 || back < 0;
}

int main(int argc, char **argv) {
    const ro_options options = {.backend = argc > 1 ? argv[1] : NULL,
                                .threads = argc > 2 ? atoi(argv[2]) : 1};
    const int heads = argc > 3 ? atoi(argv[3]) : 12;
    problem p = {0};
    int failed = 0;
    if (ro_ctx_create(&options, &p.ctx) != RO_OK)
        return fprintf(stderr, "%s\n", ro_ctx_error(NULL)), 1;
    printf("%s, %d threads, head size %d\n", ro_ctx_backend(p.ctx), ro_ctx_threads(p.ctx),
           HEAD_SIZE);
    for (int causal = 1; causal >= 0; causal--)
        for (int64_t t = 64; t <= 2048; t *= 2) {
            p.a = (ro_attention){.batch = t <= 256 ? 4 : 1, .heads = heads, .kv_heads = heads};
            p.a.queries = p.a.keys = t;
            p.a.head_size = HEAD_SIZE, p.a.causal = causal, p.a.scale = 0.125f;
            failed |= measure(&p);
        }
    ro_ctx_destroy(p.ctx);
    return failed;
}
