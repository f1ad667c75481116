/* Golden hashes of ro_sgemm and ro_sgemm_batch: tests/golden/sgemm.txt fixes their bits for all
 * time. GOLDEN_UPDATE=1 writes the hashes of the scalar backend into the file, for new lines only.
 */
#include "sgemm_product.h"

#include <openssl/evp.h>
#include <stdio.h>

#define GOLDEN_FILE "tests/golden/sgemm.txt"

enum { MAX_LINES = 100 };

typedef struct {
    char name[40], alpha[24], beta[24], class[12], hash[65];
    int trans;
    long long m, n, k, pad, batch;
} golden;

static data_class class_of(const char *name) {
    static const char *const names[] = {"normal", "wide", "special", "rare", "tiny", "zero"};
    int i = 0;
    while (i < DATA_MASKED && strcmp(name, names[i]) != 0)
        i++;
    cr_assert(i < DATA_MASKED, "class %s", name);
    return (data_class)i;
}

static void build(product *p, const golden *g) {
    *p = (product){.trans_a = g->trans & 1, .trans_b = g->trans >> 1};
    p->m = g->m, p->n = g->n, p->k = g->k, p->batch = g->batch;
    p->lda = (p->trans_a ? p->m : p->k) + g->pad, p->stride_a = p->lda * (p->trans_a ? p->k : p->m);
    p->ldb = (p->trans_b ? p->k : p->n) + g->pad, p->stride_b = p->ldb * (p->trans_b ? p->n : p->k);
    p->ldc = p->n + g->pad, p->stride_c = p->ldc * p->m;
    p->alpha = strtof(g->alpha, NULL), p->beta = strtof(g->beta, NULL);
    p->class = class_of(g->class);
    uint64_t seed = UINT64_C(0xcbf29ce484222325);
    for (const char *at = g->name; *at; at++)
        seed = (seed ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
    fill(p, seed);
}

static void hash_on(ro_ctx *ctx, const golden *g, char *text) {
    uint8_t digest[32];
    product p;
    build(&p, g);
    cr_assert(call(ctx, &p) == RO_OK, "%s: %s", g->name, ro_ctx_error(ctx));
    const size_t bytes = (size_t)p.c_count * sizeof(float);
    cr_assert(EVP_Digest(p.out, bytes, digest, NULL, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 32; i++)
        sprintf(text + 2 * i, "%02x", digest[i]);
    release(&p);
}

static char header[2000];
static golden lines[MAX_LINES];

static int read_golden(void) {
    FILE *file = fopen(GOLDEN_FILE, "r");
    char line[400];
    int count = 0;
    cr_assert(file, "cannot open " GOLDEN_FILE ": run from the top of the repository");
    while (fgets(line, sizeof line, file)) {
        golden *g = &lines[count];
        if (*line == '#') {
            strncat(header, line, sizeof header - strlen(header) - 1);
            continue;
        }
        const int fields =
            sscanf(line, "%39s %d %lldx%lldx%lld %lld %lld %23s %23s %11s %64s", g->name, &g->trans,
                   &g->m, &g->n, &g->k, &g->pad, &g->batch, g->alpha, g->beta, g->class, g->hash);
        cr_assert(fields >= 10, "line \"%s\"", line);
        cr_assert(++count < MAX_LINES);
    }
    fclose(file);
    return count;
}

static void write_golden(int count) {
    ro_ctx *ctx = context("scalar", 1);
    FILE *file = fopen(GOLDEN_FILE, "w");
    cr_assert(file && ctx);
    fputs(header, file);
    for (int i = 0; i < count; i++) {
        golden *g = &lines[i];
        hash_on(ctx, g, g->hash);
        fprintf(file, "%s %d %lldx%lldx%lld %lld %lld %s %s %s %s\n", g->name, g->trans, g->m, g->n,
                g->k, g->pad, g->batch, g->alpha, g->beta, g->class, g->hash);
    }
    cr_assert(fclose(file) == 0);
    ro_ctx_destroy(ctx);
}

Test(sgemm_golden, every_backend_gives_the_recorded_bits) {
    const int count = read_golden();
    if (getenv("GOLDEN_UPDATE"))
        write_golden(count);
    for (int b = 0; b < BACKENDS; b++) {
        ro_ctx *ctx = context(backends[b], 2);
        for (int i = 0; ctx && i < count; i++) {
            char hash[65];
            hash_on(ctx, &lines[i], hash);
            cr_expect_str_eq(hash, lines[i].hash, "%s on %s", lines[i].name, backends[b]);
        }
        ro_ctx_destroy(ctx);
    }
}
