/* Golden hashes of ro_sgemm and ro_sgemm_batch: tests/golden/sgemm.txt fixes their bits for all
 * time. GOLDEN_UPDATE=1 writes the hashes of the scalar backend into the file, for new lines only.
 */
#include "sgemm_product.h"

#include <openssl/evp.h>
#include <stdio.h>

#define GOLDEN_FILE "tests/golden/sgemm.txt"

enum { MAX_LINES = 100 };

static void hash_on(ro_ctx *ctx, const golden_product *g, char *text) {
    uint8_t digest[32];
    product p;
    cr_assert(golden_product_build(g, &p), "%s", g->name);
    cr_assert(product_run(ctx, &p) == RO_OK, "%s: %s", g->name, ro_ctx_error(ctx));
    const size_t bytes = (size_t)p.c_count * sizeof(float);
    cr_assert(EVP_Digest(p.out, bytes, digest, NULL, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 32; i++)
        sprintf(text + 2 * i, "%02x", digest[i]);
    product_free(&p);
}

static char header[2000];
static golden_product lines[MAX_LINES];

static int read_golden(void) {
    FILE *file = fopen(GOLDEN_FILE, "r");
    char line[400];
    int count = 0;
    cr_assert(file, "cannot open " GOLDEN_FILE ": run from the top of the repository");
    while (fgets(line, sizeof line, file)) {
        golden_product *g = &lines[count];
        if (*line == '#') {
            strncat(header, line, sizeof header - strlen(header) - 1);
            continue;
        }
        cr_assert(golden_product_parse(line, g), "line \"%s\"", line);
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
        golden_product *g = &lines[i];
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
