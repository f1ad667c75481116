/* Shared by tests of products on a device: a context, and the operands and results of one product.
 * Plain C and librepops only, like the tests. */
#ifndef REPOPS_TEST_CUDA_PRODUCTS_H
#define REPOPS_TEST_CUDA_PRODUCTS_H

#include <stdio.h>
#include <stdlib.h>

#include "repops/device.h"
#include "tests/cuda/options.h"

typedef struct {
    ro_ctx *ctx;
    float *a, *b, *out, *z; /* on the device */
    float *host, *want, *got;
    long products, flips, failed;
} tally;

/* Runs a call on a and b with output t->out. */
static inline ro_status run_call(const tally *t, ro_call *call) {
    char why[200];
    const ro_status status = ro_infer(call, why, sizeof why);
    if (status != RO_OK)
        printf("  %s\n", why);
    return status == RO_OK ? ro_run(t->ctx, call, (const void *const[]){t->a, t->b}, t->out)
                           : status;
}

/* Allocates `elements` numbers for each array. Returns 0 with a message if that fails. */
static inline int open_all(tally *t, const options *o, const char *test, size_t elements) {
    const size_t size = elements * sizeof(float);
    const ro_options wanted = {.size = sizeof wanted, .backend = o->device};
    if (ro_ctx_create(&wanted, &t->ctx) != RO_OK) {
        fprintf(stderr, "%s: %s\n", test, ro_ctx_error(NULL));
        return 0;
    }
    t->a = ro_alloc(t->ctx, size), t->b = ro_alloc(t->ctx, size);
    t->out = ro_alloc(t->ctx, size), t->z = ro_alloc(t->ctx, size);
    t->host = malloc(size), t->want = malloc(size), t->got = malloc(size);
    if (t->a && t->b && t->out && t->z && t->host && t->want && t->got)
        return 1;
    fprintf(stderr, "%s: no memory\n", test);
    return 0;
}

static inline void close_all(tally *t) {
    if (t->ctx) {
        ro_free(t->ctx, t->a), ro_free(t->ctx, t->b), ro_free(t->ctx, t->out),
            ro_free(t->ctx, t->z);
        ro_ctx_destroy(t->ctx);
    }
    free(t->host), free(t->want), free(t->got);
}

#endif
