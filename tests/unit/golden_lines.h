/* Golden files: each line ends in the SHA-256 of the data that the rest of the line describes.
 * GOLDEN_UPDATE=1 writes the scalar backend's hashes, but only for new lines ("-"). */
#ifndef TESTS_GOLDEN_LINES_H
#define TESTS_GOLDEN_LINES_H

#include "repops/repops.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOLDEN_LINES_MAX = 400, GOLDEN_LINE_SIZE = 400 };

/* Turns a line into the bytes that are hashed; the caller frees them. */
typedef void *golden_bytes(ro_ctx *ctx, const char *line, size_t *size);

typedef struct {
    const char *path;
    golden_bytes *bytes;
    char line[GOLDEN_LINES_MAX][GOLDEN_LINE_SIZE]; /* including comments */
    int count;
} golden_lines;

static inline char *golden_hash_of(char *line) {
    char *last = strrchr(line, ' ');
    cr_assert(last, "line \"%s\"", line);
    return last + 1;
}

static inline void golden_compute(const golden_lines *g, ro_ctx *ctx, int i, char hash[65]) {
    uint8_t digest[32];
    size_t size;
    void *bytes = g->bytes(ctx, g->line[i], &size);
    cr_assert(EVP_Digest(bytes, size, digest, NULL, EVP_sha256(), NULL) == 1);
    for (int k = 0; k < 32; k++)
        sprintf(hash + 2 * k, "%02x", digest[k]);
    free(bytes);
}

static inline void golden_read(golden_lines *g) {
    FILE *file = fopen(g->path, "r");
    cr_assert(file, "cannot open %s: run from the top of the repository", g->path);
    for (g->count = 0; fgets(g->line[g->count], GOLDEN_LINE_SIZE, file); g->count++) {
        cr_assert(g->count + 1 < GOLDEN_LINES_MAX);
        g->line[g->count][strcspn(g->line[g->count], "\n")] = 0;
    }
    fclose(file);
}

static inline ro_ctx *golden_context(const char *backend, int threads) {
    ro_ctx *ctx;
    const ro_options options = {.size = sizeof options, .backend = backend, .threads = threads};
    return ro_ctx_create(&options, &ctx) == RO_OK ? ctx : NULL; /* not on this processor */
}

static inline void golden_update(golden_lines *g) {
    ro_ctx *ctx = golden_context("scalar", 1);
    for (int i = 0; i < g->count; i++) {
        char *hash = *g->line[i] == '#' ? NULL : golden_hash_of(g->line[i]);
        if (hash && strcmp(hash, "-") == 0)
            golden_compute(g, ctx, i, hash);
    }
    FILE *file = fopen(g->path, "w"); /* only now, when no line can fail any more */
    cr_assert(file);
    for (int i = 0; i < g->count; i++)
        fprintf(file, "%s\n", g->line[i]);
    cr_assert(fclose(file) == 0);
    ro_ctx_destroy(ctx);
}

static inline void golden_check_lines(golden_lines *g, const char *backend, int threads) {
    ro_ctx *ctx = golden_context(backend, threads);
    for (int i = 0; ctx && i < g->count; i++) {
        char hash[65];
        if (*g->line[i] == '#')
            continue;
        golden_compute(g, ctx, i, hash);
        cr_expect_str_eq(hash, golden_hash_of(g->line[i]), "%.60s on %s with %d threads",
                         g->line[i], backend, threads);
    }
    ro_ctx_destroy(ctx);
}

static inline void golden_check(golden_lines *g) {
    static const char *const backends[] = {"scalar", "avx2", "avx512", "neon"};
    golden_read(g);
    if (getenv("GOLDEN_UPDATE"))
        golden_update(g);
    for (int b = 0; b < 4; b++)
        golden_check_lines(g, backends[b], 2);
    for (int threads = 1; threads <= 8; threads++)
        golden_check_lines(g, "cpu", threads);
}

#endif
