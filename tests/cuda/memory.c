/* A device's memory: each context counts its own; a request beyond the device's memory is an error
 * that the context survives. A program may supply the stream and the memory.
 *
 * Usage: memory [DEVICE]. Plain C and librepops alone. */
#include "repops/device.h"
#include "repops/layers.h"

#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

static int failed;

static void expect(int right, const char *what) {
    if (!right)
        failed++, printf("  not so: %s\n", what);
}

/* Hashes of such large tensors, 1.6 TB, fit nowhere; the tensors are not read. */
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

/* Another context's peak while `ctx` has at least a MiB; then, after that context is gone,
 * another's. */
static void check_peak(ro_ctx *ctx, const ro_options *options) {
    void *block = ro_alloc(ctx, MIB);
    expect(block && ro_ctx_peak(ctx) >= MIB, "a MiB counts");
    expect(ro_ctx_available(ctx) > 0, "the device says what it has left");
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

/* ---- a stream and memory that the program supplies ---- */

static void *const legacy = (void *)(uintptr_t)1; /* cudaStreamLegacy */

/* Lends memory that belongs to another context. */
typedef struct {
    ro_ctx *from;
    int lent, given_back, off, empty; /* off: bytes of misalignment; empty: no memory */
} lender;

static void *lend(void *user, size_t size, void *stream) {
    lender *l = user;
    expect(stream == legacy, "device_alloc is told the stream");
    char *block = l->empty ? NULL : ro_alloc(l->from, size + 64);
    expect(l->empty || (block && ro_wait(l->from) == RO_OK), "the other context has memory");
    l->lent += block != NULL;
    return block ? block + l->off : NULL;
}

static void give_back(void *user, void *block, void *stream) {
    lender *l = user;
    expect(stream == legacy, "device_free is told the stream");
    l->given_back++;
    ro_free(l->from, (char *)block - l->off);
}

/* Sums of rows, with blocks of intermediate results, must be equal in both contexts. */
static void check_sums(ro_ctx *ctx, lender *l) {
    enum { ROWS = 3, COLS = 5000 };
    static float x[ROWS * COLS], got[ROWS], want[ROWS];
    ro_ctx *of[] = {ctx, l->from};
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = (float)(i % 977) / 7;
    for (int c = 0; c < 2; c++) {
        void *in = ro_alloc(of[c], sizeof x), *out = ro_alloc(of[c], sizeof got);
        expect(in && out && ro_write(of[c], in, x, sizeof x) == RO_OK &&
                   ro_sum(of[c], ROWS, COLS, in, out) == RO_OK &&
                   ro_read(of[c], c ? want : got, out, sizeof got) == RO_OK,
               ro_ctx_error(of[c]));
        ro_free(of[c], in);
        ro_free(of[c], out);
    }
    expect(memcmp(got, want, sizeof got) == 0, "a lent stream and lent memory keep the bits");
}

static void check_lent(ro_ctx *other, const ro_options *usual) {
    lender l = {.from = other};
    ro_options options = *usual;
    ro_ctx *ctx = NULL;
    options.stream = legacy, options.user = &l;
    expect(ro_ctx_create(&options, &ctx) == RO_OK, "a lent stream with memory of the context");
    if (ctx)
        check_sums(ctx, &l);
    expect(l.lent == 0, "nothing is lent where no function is given");
    ro_ctx_destroy(ctx);
    options.device_alloc = lend, options.device_free = give_back;
    expect(ro_ctx_create(&options, &ctx) == RO_OK, "a lent stream and lent memory");
    if (!ctx)
        return;
    check_sums(ctx, &l);
    expect(l.lent > 2 && l.lent == l.given_back,
           "what is lent is given back, temporary memory too");
    expect(ro_ctx_peak(ctx) == 0, "nobody counts memory that is lent");
    l.off = 4;
    expect(!ro_alloc(ctx, MIB) && strstr(ro_ctx_error(ctx), "not aligned to 64 bytes"),
           "an address off by 4 is refused");
    expect(l.lent == l.given_back, "and given back");
    l.empty = 1;
    expect(!ro_alloc(ctx, MIB) &&
               strstr(ro_ctx_error(ctx), "no memory for 1048576 bytes: device_alloc has none"),
           "no memory is an error");
    ro_ctx_destroy(ctx);
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
    check_lent(ctx, &options);
    printf("%s: %d of what memory promises does not hold\n", ro_ctx_device(ctx), failed);
    ro_ctx_destroy(ctx);
    return failed ? 1 : 0;
}
