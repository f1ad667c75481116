/* The work of all programs in this folder, in the common subset of C and C++: a product that
 * several threads share, and an elementary function, hashed. */
#ifndef TESTS_LINK_WORKLOAD_H
#define TESTS_LINK_WORKLOAD_H

#include <repops/repops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions that it calls, for programs that look them up by name. */
typedef struct {
    ro_status (*create)(const ro_options *options, ro_ctx **out);
    void (*destroy)(ro_ctx *ctx);
    ro_status (*infer)(ro_call *call, char *why, size_t why_size);
    ro_status (*run)(ro_ctx *ctx, const ro_call *call, const void *const *input, void *output);
    int64_t (*attr_f32)(float value);
} workload_api;

#define WORKLOAD_LINKED                                                                            \
    { ro_ctx_create, ro_ctx_destroy, ro_infer, ro_run, ro_attr_f32 }

enum { WORKLOAD_SIDE = 300, WORKLOAD_COUNT = WORKLOAD_SIDE * WORKLOAD_SIDE };

/* Fills with multiples of 2^-9, and subnormals given by their bits, so that floating-point modes do
 * not matter. */
static void workload_fill(float *x, int seed) {
    unsigned bits;
    int i;
    for (i = 0; i < WORKLOAD_COUNT; i++) {
        x[i] = (float)((i * 7919 + seed) % 1021 - 510) * 0.001953125f;
        bits = (unsigned)(i + seed);
        if (i % 5 == 0)
            memcpy(&x[i], &bits, sizeof bits);
    }
}

static unsigned long long workload_hash(const float *x) {
    unsigned long long h = 0xcbf29ce484222325ULL;
    size_t i;
    for (i = 0; i < WORKLOAD_COUNT * sizeof *x; i++)
        h = (h ^ ((const unsigned char *)x)[i]) * 0x100000001b3ULL;
    return h;
}

static ro_status workload_apply(const workload_api *api, ro_ctx *ctx, int op, int inputs,
                                const ro_shape *shapes, const void *const *data, float *out) {
    ro_call call;
    char why[200];
    ro_status status;
    memset(&call, 0, sizeof call);
    call.op = op;
    call.input_count = inputs;
    call.input = shapes;
    if (op == RO_OP_MATMUL) {
        call.attr[RO_MATMUL_ALPHA] = api->attr_f32(1.0f);
        call.attr[RO_MATMUL_CHUNK] = RO_DOT_CHUNK;
    }
    status = api->infer(&call, why, sizeof why);
    return status == RO_OK ? api->run(ctx, &call, data, out) : status;
}

/* Returns 0 if anything failed. */
static unsigned long long workload(const workload_api *api, ro_ctx *ctx) {
    const ro_shape square = {RO_F32, 2, {WORKLOAD_SIDE, WORKLOAD_SIDE, 0, 0, 0, 0, 0, 0}};
    const ro_shape shapes[2] = {square, square};
    float *memory = (float *)malloc(4 * WORKLOAD_COUNT * sizeof *memory);
    float *a = memory, *b = a + WORKLOAD_COUNT, *c = b + WORKLOAD_COUNT, *d = c + WORKLOAD_COUNT;
    const void *factors[2], *product[1];
    unsigned long long hash = 0;
    if (!memory)
        return 0;
    workload_fill(a, 1);
    workload_fill(b, 2);
    factors[0] = a, factors[1] = b, product[0] = c;
    if (workload_apply(api, ctx, RO_OP_MATMUL, 2, shapes, factors, c) == RO_OK &&
        workload_apply(api, ctx, RO_OP_GELU, 1, shapes, product, d) == RO_OK)
        hash = workload_hash(c) ^ workload_hash(d);
    free(memory);
    return hash;
}

/* Runs the workload in a new context with `threads` threads. */
static unsigned long long workload_once(const workload_api *api, int threads) {
    ro_options options;
    ro_ctx *ctx;
    unsigned long long hash;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.threads = threads;
    if (api->create(&options, &ctx) != RO_OK)
        return 0;
    hash = workload(api, ctx);
    api->destroy(ctx);
    return hash;
}

#endif
