/* A device's memory: each context counts its own; what is asked for beyond the device's is an error
 * of the device, after which the context goes on.
 *
 * Usage: memory [DEVICE]. Plain C and librepops alone. */
#include "repops/device.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

static int failed;

static void expect(int right, const char *what) {
    if (!right)
        failed++, printf("  not so: %s\n", what);
}

/* The hashes of so large tensors, 1.6 TB, have room nowhere; the tensors are not read. */
static void check_end(ro_ctx *ctx) {
    enum { TENSORS = 8 };
    uint8_t root[32 * TENSORS] = {0};
    const void *data[TENSORS];
    size_t size[TENSORS];
    void *block = ro_alloc(ctx, (size_t)1 << 50);
    expect(!block && strstr(ro_ctx_error(ctx), "no memory for"), "2^50 bytes are refused");
    block = ro_alloc(ctx, MIB);
    for (int i = 0; i < TENSORS; i++)
        data[i] = block, size[i] = (size_t)1 << 42;
    expect(ro_tree_roots(ctx, TENSORS, data, size, root) == RO_ERR_DEVICE,
           "no memory for hashes is an error of the device");
    expect(ro_write(ctx, block, root, sizeof root) == RO_OK && ro_wait(ctx) == RO_OK,
           "the context goes on");
    ro_free(ctx, block);
}

/* Another context's peak beside `ctx`, whose own is a MiB at least; after itself, another's again.
 */
static void check_peak(ro_ctx *ctx, const ro_options *options) {
    void *block = ro_alloc(ctx, MIB);
    expect(block && ro_ctx_peak(ctx) >= MIB, "a MiB counts");
    for (int i = 0; i < 2; i++) {
        ro_ctx *other = NULL;
        expect(ro_ctx_create(options, &other) == RO_OK && ro_ctx_peak(other) == 0,
               "a new context's peak is 0");
        void *small = other ? ro_alloc(other, 64) : NULL;
        expect(small && ro_ctx_peak(other) > 0 && ro_ctx_peak(other) < MIB, "it counts its own");
        if (other)
            ro_free(other, small);
        ro_ctx_destroy(other);
    }
    ro_free(ctx, block);
    expect(ro_ctx_peak(ctx) >= MIB, "the peak stays");
}

int main(int argc, char **argv) {
    const ro_options options = {.size = sizeof options, .backend = argc > 1 ? argv[1] : "cuda:0"};
    ro_ctx *ctx;
    if (ro_ctx_create(&options, &ctx) != RO_OK) {
        fprintf(stderr, "memory: %s\n", ro_ctx_error(NULL));
        return 2;
    }
    check_peak(ctx, &options);
    check_end(ctx);
    printf("%s: %d of what memory promises does not hold\n", ro_ctx_device(ctx), failed);
    ro_ctx_destroy(ctx);
    return failed ? 1 : 0;
}
