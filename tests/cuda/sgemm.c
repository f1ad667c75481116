/* Random products of ro_sgemm and ro_sgemm_batch on a device and on this machine's CPU: all bytes
 * are equal, also those between c's rows. Covers transposes, odd leading dimensions and addresses,
 * strides, shared inputs, alpha and beta; few rows or columns, and several chunks of k.
 *
 * Usage: sgemm [--device cuda:0] [--seeds N] [--first SEED] [--most MULTIPLY-ADDS]
 * Plain C and librepops alone. */
#include "repops/device.h"
#include "tests/cuda/options.h"

#include <stdio.h>

typedef struct {
    int64_t rows, cols, ld, next, shift, count; /* shift: first element; count: all elements */
    float *host;
    void *block;
    float *device;
} matrix;

typedef struct {
    int trans_a, trans_b;
    int64_t m, n, k, batch;
    float alpha, beta;
    matrix a, b, c;
} products;

static uint64_t state;

static int64_t draw(int64_t below) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static int64_t draw_size(void) {
    switch (draw(8)) {
    case 0: return draw(3);
    case 1:
    case 2: return 1 + draw(20);
    case 3: return 100 + draw(300);
    case 4: return 4 * (1 + draw(64));
    default: return 1 + draw(140);
    }
}

static int64_t *largest(products *p) {
    int64_t *most = p->m > p->n ? &p->m : &p->n;
    most = p->k > *most ? &p->k : most;
    return p->batch > *most ? &p->batch : most;
}

static void draw_matrix(matrix *x, int64_t rows, int64_t cols, int64_t batch, int shared) {
    const int even = draw(2) == 0; /* then vectors are aligned */
    x->rows = rows, x->cols = cols;
    x->ld = cols + (even ? (4 - cols % 4) % 4 + 4 * draw(2) : draw(6));
    x->ld += x->ld == 0;
    x->next = shared ? 0 : rows * x->ld + (even ? (4 - rows * x->ld % 4) % 4 : draw(6));
    x->shift = even ? 0 : draw(4);
    x->count = x->shift + rows * x->ld + (batch - 1) * x->next + 1;
}

static int place(matrix *x, ro_ctx *device, int poison) {
    x->host = malloc((size_t)x->count * sizeof *x->host);
    x->block = ro_alloc(device, (size_t)x->count * sizeof *x->host);
    if (!x->host || !x->block)
        return 0;
    for (int64_t i = 0; i < x->count; i++) {
        const uint32_t bits = 0x7fc00000u | (uint32_t)i;
        x->host[i] = (float)(draw(1 << 24) - (1 << 23)) * 0x1p-22f;
        if (poison)
            memcpy(&x->host[i], &bits, sizeof bits);
    }
    x->device = (float *)x->block + x->shift;
    return ro_write(device, x->block, x->host, (size_t)x->count * sizeof *x->host) == RO_OK;
}

static void draw_products(products *p, int64_t most) {
    static const float factors[] = {1.0f, 0.0f, -0.75f, 1.3f};
    *p = (products){.trans_a = (int)draw(2), .trans_b = (int)draw(2)};
    p->m = draw_size(), p->n = draw_size();
    p->k = draw(3) ? draw_size() : draw(3000);
    p->batch = draw(2) ? 1 : 1 + draw(5);
    while (p->m * p->n * p->k * p->batch > most)
        *largest(p) /= 2;
    p->alpha = factors[draw(8) ? 2 * draw(2) : draw(4)];
    p->beta = factors[draw(4)];
    draw_matrix(&p->a, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->batch, draw(4) == 0);
    draw_matrix(&p->b, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->batch, draw(4) == 0);
    draw_matrix(&p->c, p->m, p->n, p->batch, 0);
}

static ro_status run(ro_ctx *ctx, const products *p, const float *a, const float *b, float *c) {
    if (p->batch == 1 && p->m % 2)
        return ro_sgemm(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, a, p->a.ld, b,
                        p->b.ld, p->beta, c, p->c.ld);
    return ro_sgemm_batch(ctx, p->trans_a, p->trans_b, p->m, p->n, p->k, p->alpha, a, p->a.ld, b,
                          p->b.ld, p->beta, c, p->c.ld, p->a.next, p->b.next, p->c.next, p->batch);
}

/* Returns 1 if the bytes are equal to the CPU's. c is all NaN if it must not be read. */
static int is_same(const products *p, ro_ctx *cpu, ro_ctx *device, const char **why) {
    const size_t size = (size_t)p->c.count * sizeof(float);
    float *got = malloc(size);
    ro_status status = got ? run(device, p, p->a.device, p->b.device, p->c.device) : RO_ERR_MEMORY;
    *why = ro_ctx_error(device);
    if (status == RO_OK)
        status = ro_read(device, got, p->c.block, size);
    if (status == RO_OK) {
        *why = "other bits";
        status =
            run(cpu, p, p->a.host + p->a.shift, p->b.host + p->b.shift, p->c.host + p->c.shift);
    }
    const int same = status == RO_OK && memcmp(got, p->c.host, size) == 0;
    free(got);
    return same;
}

static int check(uint64_t seed, int64_t most, ro_ctx *cpu, ro_ctx *device) {
    const char *why = "no memory";
    products p;
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    (void)draw(2);
    draw_products(&p, most);
    const int placed =
        place(&p.a, device, 0) && place(&p.b, device, 0) && place(&p.c, device, p.beta == 0);
    const int same = placed && is_same(&p, cpu, device, &why);
    if (!same)
        printf("  case %llu, %lld of %lld x %lld x %lld: %s\n", (unsigned long long)seed,
               (long long)p.batch, (long long)p.m, (long long)p.n, (long long)p.k, why);
    matrix *const all[] = {&p.a, &p.b, &p.c};
    for (int i = 0; i < 3; i++) {
        ro_free(device, all[i]->block);
        free(all[i]->host);
    }
    return same;
}

int main(int argc, char **argv) {
    options o = {.device = "cuda:0", .seeds = 100, .first = 1, .most = INT64_C(1) << 28};
    ro_ctx *cpu = NULL, *device = NULL;
    long same = 0, differ = 0;
    if (!parse_options(argc, argv, &o) || o.wanted_count) {
        fprintf(stderr, "usage: sgemm [--device NAME] [--seeds N] [--first SEED] [--most N]\n");
        return 2;
    }
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "cpu"}, &cpu) != RO_OK ||
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = o.device}, &device) !=
            RO_OK) {
        fprintf(stderr, "sgemm: %s\n", ro_ctx_error(NULL));
        ro_ctx_destroy(cpu);
        return 2;
    }
    for (uint64_t i = 0; i < o.seeds; i++)
        *(check(o.first + i, o.most, cpu, device) ? &same : &differ) += 1;
    printf("%s: %ld products of ro_sgemm have the CPU's bits, %ld differ\n", ro_ctx_device(device),
           same, differ);
    ro_ctx_destroy(device);
    ro_ctx_destroy(cpu);
    return differ ? 1 : 0;
}
