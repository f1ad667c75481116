/* Compares ro_tree_roots on a device with RFC 6962, section 2.1, by recursion on this CPU.
 *
 * Usage: tree [DEVICE]. Plain C and librepops alone. */
#include "repops/device.h"
#include "repops/tools/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAF = 1024, TENSORS = 14 };

static void leaf_hash(const uint8_t *data, size_t size, uint8_t out[32]) {
    uint8_t message[LEAF + 1] = {0};
    memcpy(message + 1, data, size);
    sha256(message, size + 1, out);
}

static void root_of(const uint8_t *data, size_t size, uint8_t out[32]) {
    size_t leaves = (size + LEAF - 1) / LEAF, left = 1;
    uint8_t message[65] = {1};
    if (leaves == 1) {
        leaf_hash(data, size, out);
        return;
    }
    while (2 * left < leaves)
        left *= 2;
    root_of(data, left * LEAF, message + 1);
    root_of(data + left * LEAF, size - left * LEAF, message + 33);
    sha256(message, sizeof message, out);
}

/* Sizes of tensors that follow each other with an odd byte between, so that most are unaligned. */
static const size_t sizes[TENSORS] = {
    1,        1023,     1024,     1025,          2048, 3 * 1024, 3 * 1024 + 5,
    7 * 1024, 8 * 1024, 9 * 1024, 40 * 1024 + 1, 64,   55,       56};

static int compare(ro_ctx *ctx, const uint8_t *host, const uint8_t *device, size_t gap) {
    const void *data[TENSORS];
    const uint8_t *from[TENSORS];
    uint8_t got[TENSORS][32], want[32];
    size_t at = 0;
    int bad = 0;
    for (int i = 0; i < TENSORS; i++) {
        data[i] = device + at;
        from[i] = host + at;
        at += (sizes[i] + 63) / 64 * 64 + gap;
    }
    if (ro_tree_roots(ctx, TENSORS, data, sizes, got[0]) != RO_OK) {
        printf("tree: %s\n", ro_ctx_error(ctx));
        return TENSORS;
    }
    for (int i = 0; i < TENSORS; i++) {
        root_of(from[i], sizes[i], want);
        if (memcmp(want, got[i], sizeof want) != 0)
            bad++, printf("  %zu bytes, %zu apart: another root\n", sizes[i], gap);
    }
    return bad;
}

int main(int argc, char **argv) {
    enum { TOTAL = 1 << 17 };
    ro_ctx *ctx;
    uint8_t *host = malloc(TOTAL);
    int bad = -1;
    if (!host || ro_ctx_create(&(ro_options){.size = sizeof(ro_options),
                                             .backend = argc > 1 ? argv[1] : "cuda:0"},
                               &ctx)) {
        fprintf(stderr, "tree: %s\n", ro_ctx_error(NULL));
        return 2;
    }
    for (size_t i = 0; i < TOTAL; i++)
        host[i] = (uint8_t)(i * 2654435761u >> 13);
    uint8_t *device = ro_alloc(ctx, TOTAL);
    if (device && ro_write(ctx, device, host, TOTAL) == RO_OK)
        bad = compare(ctx, host, device, 0) + compare(ctx, host, device, 1);
    printf("%s: %d of %d roots differ\n", ro_ctx_device(ctx), bad, 2 * TENSORS);
    ro_free(ctx, device);
    ro_ctx_destroy(ctx);
    free(host);
    return bad == 0 ? 0 : 1;
}
