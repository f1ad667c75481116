/* Golden hashes: tests/golden/ops.txt fixes the bits of every operator for all time. Each line is a
 * case with the SHA-256 of its output's bytes, and must hold on every backend of this processor.
 *
 * GOLDEN_UPDATE=1 writes the hashes of the scalar backend into the file. Do that for new lines
 * only: a hash that changes is a new version of SPEC.md. The file's header describes its columns;
 * the inputs' formula is in repops/tools/op_data.h, its seed is the FNV-1a hash of the case's
 * name. */
#include "each_operator.h"
#include "repops/tools/golden.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <stdio.h>

#define GOLDEN_FILE "tests/golden/ops.txt"

enum { MAX_CASES = 1000 };

/* ---- the file ---- */

static char header[4096];
static golden_case cases[MAX_CASES];

static int read_file(void) {
    FILE *file = fopen(GOLDEN_FILE, "r");
    char line[600];
    int count = 0;
    cr_assert(file, "cannot open " GOLDEN_FILE ": run from the top of the repository");
    while (fgets(line, sizeof line, file)) {
        golden_case *g = &cases[count];
        if (*line == '#') {
            strncat(header, line, sizeof header - strlen(header) - 1);
            continue;
        }
        cr_assert(golden_parse(line, g), "%s: line \"%s\"", GOLDEN_FILE, line);
        cr_assert(++count < MAX_CASES);
    }
    fclose(file);
    return count;
}

static void write_file(int count) {
    FILE *file = fopen(GOLDEN_FILE, "w");
    cr_assert(file);
    fputs(header, file);
    for (int i = 0; i < count; i++) {
        const golden_case *g = &cases[i];
        fprintf(file, "%s %s %s %s %s %lld %s %s\n", g->op, g->name, g->inputs, g->output, g->attrs,
                g->ids, g->class, g->hash);
    }
    cr_assert(fclose(file) == 0);
}

/* ---- a case ---- */

static void hash_of(const op_case *c, char *text) {
    uint8_t digest[32];
    cr_assert(EVP_Digest(c->out, case_out_bytes(c), digest, NULL, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 32; i++)
        sprintf(text + 2 * i, "%02x", digest[i]);
}

static void run(ro_ctx *ctx, golden_case *g, char *hash) {
    op_case c;
    char why[200] = "";
    cr_assert(golden_build(g, &c, why, sizeof why), "%s %s: %s", g->op, g->name, why);
    memset(c.out, 0x5a, case_out_bytes(&c));
    cr_assert(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK, "%s",
              ro_ctx_error(ctx));
    hash_of(&c, hash);
    case_free(&c);
}

static void check_backend(const char *backend, int threads, int count) {
    ro_ctx *ctx;
    char hash[GOLDEN_HASH_TEXT];
    if (ro_ctx_create(
            &(ro_options){.size = sizeof(ro_options), .backend = backend, .threads = threads},
            &ctx) != RO_OK)
        return; /* not on this processor */
    for (int i = 0; i < count; i++) {
        if (!is_tested(ro_op_by_name(cases[i].op)))
            continue;
        run(ctx, &cases[i], hash);
        cr_expect_str_eq(hash, cases[i].hash, "%s %s on %s with %d threads", cases[i].op,
                         cases[i].name, backend, threads);
    }
    ro_ctx_destroy(ctx);
}

Test(golden, every_backend_gives_the_recorded_bits) {
    const int count = read_file();
    if (getenv("GOLDEN_UPDATE")) {
        ro_ctx *ctx;
        cr_assert(ro_ctx_create(
                      &(ro_options){.size = sizeof(ro_options), .backend = "scalar", .threads = 1},
                      &ctx) == RO_OK);
        for (int i = 0; i < count; i++)
            run(ctx, &cases[i], cases[i].hash);
        ro_ctx_destroy(ctx);
        write_file(count);
    }
    check_backend("scalar", 2, count);
    check_backend("avx2", 1, count);
    check_backend("avx512", 1, count);
    check_backend("neon", 1, count);
    for (int threads = 2; threads <= 8; threads++)
        check_backend("cpu", threads, count);
}

Test(golden, every_operator_has_a_line) {
    const int count = read_file();
    for (int op = next_operator(0); op; op = next_operator(op)) {
        int lines = 0;
        for (int i = 0; i < count; i++)
            lines += ro_op_by_name(cases[i].op) == op;
        cr_expect(lines > 0, "%s has no line in " GOLDEN_FILE, ro_op_describe(op)->name);
    }
}

Test(golden, names_of_cases_are_unique) {
    const int count = read_file();
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            cr_expect_str_neq(cases[i].name, cases[j].name);
}
