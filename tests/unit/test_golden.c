/* Golden hashes: tests/golden/ops.txt fixes the bits of every operator for all time. Each line is a
 * case with the SHA-256 of its output's bytes, and must hold on every backend of this processor.
 *
 * GOLDEN_UPDATE=1 writes the hashes of the scalar backend into the file. Do that for new lines
 * only: a hash that changes is a new version of SPEC.md. The file's header describes its columns;
 * the inputs' formula is in op_data.h, its seed is the FNV-1a hash of the case's name. */
#include "op_data.h"

#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <stdio.h>

#define GOLDEN_FILE "tests/golden/ops.txt"

enum { MAX_CASES = 400, HASH_TEXT = 65 };

typedef struct {
    char op[24], name[40], inputs[160], output[40], attrs[120], class[12];
    long long ids;
    char hash[HASH_TEXT];
} golden;

/* ---- the file ---- */

static char header[4096];
static golden cases[MAX_CASES];

static int read_file(void) {
    FILE *file = fopen(GOLDEN_FILE, "r");
    char line[600];
    int count = 0;
    cr_assert(file, "cannot open " GOLDEN_FILE ": run from the top of the repository");
    while (fgets(line, sizeof line, file)) {
        golden *g = &cases[count];
        if (*line == '#') {
            strncat(header, line, sizeof header - strlen(header) - 1);
            continue;
        }
        strcpy(g->hash, "-");
        const int fields = sscanf(line, "%23s %39s %159s %39s %119s %lld %11s %64s", g->op, g->name,
                                  g->inputs, g->output, g->attrs, &g->ids, g->class, g->hash);
        cr_assert(fields >= 7, "%s: line \"%s\"", GOLDEN_FILE, line);
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
        const golden *g = &cases[i];
        fprintf(file, "%s %s %s %s %s %lld %s %s\n", g->op, g->name, g->inputs, g->output, g->attrs,
                g->ids, g->class, g->hash);
    }
    cr_assert(fclose(file) == 0);
}

/* ---- a case ---- */

/* "f2x3": f32 [2, 3]. Returns what follows. */
static const char *parse_shape(const char *text, ro_shape *shape) {
    const char *types = "?fibh"; /* position: ro_dtype */
    const char *type = strchr(types, *text);
    char *at = (char *)text;
    cr_assert(type && type > types, "type of \"%s\"", text);
    *shape = (ro_shape){.dtype = (int32_t)(type - types)};
    do {
        cr_assert(shape->ndim < RO_MAX_DIMS);
        shape->dim[shape->ndim++] = strtoll(at + 1, &at, 10);
    } while (*at == 'x');
    return at;
}

/* "-", or integers and "f"-prefixed floats, separated by commas. */
static void parse_attrs(const char *text, int64_t *attr) {
    char *at = (char *)text;
    for (int i = 0; *text != '-' && i < RO_MAX_ATTRS; i++) {
        attr[i] = *at == 'f' ? ro_attr_f32(strtof(at + 1, &at)) : (int64_t)strtoull(at, &at, 0);
        if (*at++ != ',')
            break;
    }
}

static data_class parse_class(const char *text) {
    static const char *const names[] = {"normal", "wide", "special", "rare",
                                        "tiny",   "zero", "masked"};
    int i = 0;
    while (i < DATA_END && strcmp(text, names[i]) != 0)
        i++;
    cr_assert(i < DATA_END, "class \"%s\"", text);
    return (data_class)i;
}

static uint64_t seed_of(const char *name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h;
}

static void build(const golden *g, op_case *c) {
    char why[200] = "";
    memset(c, 0, sizeof *c);
    c->call.op = ro_op_by_name(g->op);
    c->call.input = c->in;
    c->ids = g->ids;
    for (const char *at = g->inputs; *at != '-' && c->call.input_count < CASE_INPUTS; at++) {
        at = parse_shape(at, &c->in[c->call.input_count++]);
        if (*at != ',')
            break;
    }
    if (*g->output != '-')
        parse_shape(g->output, &c->call.output);
    parse_attrs(g->attrs, c->call.attr);
    cr_assert(ro_infer(&c->call, why, sizeof why) == RO_OK, "%s %s: %s", g->op, g->name, why);
    case_fill(c, seed_of(g->name), parse_class(g->class));
}

static void hash_of(const op_case *c, char *text) {
    uint8_t digest[32];
    cr_assert(EVP_Digest(c->out, case_out_bytes(c), digest, NULL, EVP_sha256(), NULL) == 1);
    for (int i = 0; i < 32; i++)
        sprintf(text + 2 * i, "%02x", digest[i]);
}

static void run(ro_ctx *ctx, golden *g, char *hash) {
    op_case c;
    build(g, &c);
    memset(c.out, 0x5a, case_out_bytes(&c));
    cr_assert(ro_run(ctx, &c.call, (const void *const *)c.data, c.out) == RO_OK, "%s",
              ro_ctx_error(ctx));
    hash_of(&c, hash);
    case_free(&c);
}

static void check_backend(const char *backend, int threads, int count) {
    ro_ctx *ctx;
    char hash[HASH_TEXT];
    if (ro_ctx_create(&(ro_options){.backend = backend, .threads = threads}, &ctx) != RO_OK)
        return; /* not on this processor */
    for (int i = 0; i < count; i++) {
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
        cr_assert(ro_ctx_create(&(ro_options){.backend = "scalar", .threads = 1}, &ctx) == RO_OK);
        for (int i = 0; i < count; i++)
            run(ctx, &cases[i], cases[i].hash);
        ro_ctx_destroy(ctx);
        write_file(count);
    }
    check_backend("scalar", 2, count);
    check_backend("avx2", 1, count);
    check_backend("avx512", 1, count);
    check_backend("neon", 1, count);
    check_backend("cpu", 3, count);
}

Test(golden, every_operator_has_a_line) {
    const int count = read_file();
    for (int op = 1; op < RO_OP_END; op++) {
        int lines = 0;
        if (!ro_op_describe(op))
            continue;
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
