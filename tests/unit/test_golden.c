/* Golden hashes: tests/golden/ops.txt fixes the bits of every operator for all time. Each line is a
 * case with the SHA-256 of its output, which must hold on every backend of this processor.
 *
 * GOLDEN_UPDATE=1 writes the hashes of the scalar backend into new lines, whose hash is "-", and
 * adds two lines for an operator that has none, if it takes f32 tensors of one shape. A changed
 * hash needs a new version of SPEC.md, and is never overwritten. The file's header describes its
 * columns. The inputs' formula is in repops/tools/op_data.h; its seed is the FNV-1a hash of the
 * case's name. */
#include "each_operator.h"
#include "repops/tools/golden.h"
#include "tests/support/sample.h"

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

static int lines_of(int op, int count) {
    int lines = 0;
    for (int i = 0; i < count; i++)
        lines += ro_op_by_name(cases[i].op) == op;
    return lines;
}

/* Replaces the file in one step, since other tests may read it meanwhile. */
static void write_file(int count) {
    FILE *file = fopen(GOLDEN_FILE ".new", "w");
    cr_assert(file);
    fputs(header, file);
    for (int i = 0; i < count; i++) {
        const golden_case *g = &cases[i];
        fprintf(file, "%s %s %s %s %s %lld %s %s\n", g->op, g->name, g->inputs, g->output, g->attrs,
                g->ids, g->class, g->hash);
    }
    cr_assert(fclose(file) == 0 && rename(GOLDEN_FILE ".new", GOLDEN_FILE) == 0);
}

/* ---- lines for an operator that has none ---- */

static void put(char *text, size_t size, const char *between, const char *item) {
    const size_t length = strlen(text);
    snprintf(text + length, size - length, "%s%s", length ? between : "", item);
}

static golden_case default_case(int op, const char *class) {
    const ro_op_info *info = ro_op_describe(op);
    golden_case g = {.output = "-", .hash = "-"};
    int64_t attr[RO_MAX_ATTRS];
    char item[40];
    test_sample_attributes(op, attr);
    snprintf(g.op, sizeof g.op, "%s", info->name);
    snprintf(g.name, sizeof g.name, "%s_%s", info->name, class);
    snprintf(g.class, sizeof g.class, "%s", class);
    for (int i = 0; i < info->min_inputs; i++)
        put(g.inputs, sizeof g.inputs, ",", "f33x513");
    for (int i = 0; i < info->attr_count; i++) {
        if (info->attr[i].kind == 'f')
            snprintf(item, sizeof item, "f%a", (double)ro_attr_to_f32(attr[i]));
        else
            snprintf(item, sizeof item, "%lld", (long long)attr[i]);
        put(g.attrs, sizeof g.attrs, ",", item);
    }
    put(g.inputs, sizeof g.inputs, "", *g.inputs ? "" : "-");
    put(g.attrs, sizeof g.attrs, "", *g.attrs ? "" : "-");
    return g;
}

static bool is_valid(const golden_case *g) {
    op_case c;
    char why[200];
    const bool valid = golden_build(g, &c, why, sizeof why);
    case_free(&c);
    return valid;
}

/* Adds two lines for each operator that has none. Returns the new number of lines. */
static int add_lines(int count) {
    static const char *const classes[] = {"wide", "special"};
    for (int op = 1; op < RO_OP_END; op++) {
        if (!ro_op_describe(op) || lines_of(op, count))
            continue;
        for (int k = 0; k < 2; k++) {
            cr_assert(count + 1 < MAX_CASES);
            cases[count] = default_case(op, classes[k]);
            count += is_valid(&cases[count]);
        }
    }
    return count;
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
        return; /* this processor lacks the backend */
    for (int i = 0; i < count; i++) {
        if (!is_tested(ro_op_by_name(cases[i].op)))
            continue;
        run(ctx, &cases[i], hash);
        cr_expect_str_eq(hash, cases[i].hash, "%s %s on %s with %d threads", cases[i].op,
                         cases[i].name, backend, threads);
    }
    ro_ctx_destroy(ctx);
}

static int update(int count) {
    ro_ctx *ctx;
    count = add_lines(count);
    cr_assert(
        ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .backend = "scalar", .threads = 1},
                      &ctx) == RO_OK);
    for (int i = 0; i < count; i++)
        if (strcmp(cases[i].hash, "-") == 0)
            run(ctx, &cases[i], cases[i].hash);
    ro_ctx_destroy(ctx);
    write_file(count);
    return count;
}

Test(golden, every_backend_gives_the_recorded_bits) {
    int count = read_file();
    if (getenv("GOLDEN_UPDATE"))
        count = update(count);
    check_backend("scalar", 2, count);
    check_backend("avx2", 1, count);
    check_backend("avx512", 1, count);
    check_backend("neon", 1, count);
    for (int threads = 2; threads <= 8; threads++)
        check_backend("cpu", threads, count);
}

Test(golden, every_operator_has_a_line) {
    int count = read_file();
    if (getenv("GOLDEN_UPDATE"))
        count = add_lines(count); /* the test that writes them may run later */
    for (int op = next_operator(0); op; op = next_operator(op))
        cr_expect(lines_of(op, count) > 0,
                  "%s has no line in " GOLDEN_FILE ": GOLDEN_UPDATE=1 adds those of an elementwise "
                  "operator",
                  ro_op_describe(op)->name);
}

Test(golden, names_of_cases_are_unique) {
    const int count = read_file();
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            cr_expect_str_neq(cases[i].name, cases[j].name);
}
